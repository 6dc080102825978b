"""``parse_filter``: a filter from any of its spellings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tamis.errors import FilterError, FilterSyntaxError, quoted
from tamis.language.json import from_json, parse_json_text
from tamis.language.query import parse_query
from tamis.language.sql import parse_sql
from tamis.language.tree import Filter

_SPELLINGS: dict[str, Callable[[str], Filter]] = {
    "sql": parse_sql,
    "json": parse_json_text,
    "query": parse_query,
}


def parse_filter(given: str | Filter | Mapping[str, Any] | bool, spelling: str = "") -> Filter:
    """The tree of a filter.

    Text is SQL, or JSON if it begins with ``{``; say ``spelling="query"`` for HTTP query
    notation. A mapping is the JSON spelling, a Filter is returned as it is.

    >>> spelled = {"attribute": "price", "op": "<", "value": 3300}
    >>> parse_filter("price < 3300") == parse_filter(spelled)
    True
    >>> parse_filter("mark=FORD&year_from=2014", spelling="query")
    ((col('mark') == 'FORD') & (col('year') >= 2014))
    """
    if spelling and spelling not in _SPELLINGS:
        raise FilterError(f"spelling {quoted(spelling)} is not one of {', '.join(_SPELLINGS)}")
    if isinstance(given, Filter):
        return given
    if isinstance(given, Mapping | bool):
        return from_json(given)
    if not isinstance(given, str):
        raise FilterError(
            f"{type(given).__name__} is not a filter; expected SQL text, an expression such as "
            "col('price') < 3300, or a JSON object"
        )
    if spelling:
        return _SPELLINGS[spelling](given)
    if given.lstrip().startswith("{"):
        return parse_json_text(given)
    try:
        return parse_sql(given)
    except FilterSyntaxError as error:
        if "&" in given:
            error.add_note('if this is HTTP query notation, read it with spelling="query"')
        raise
