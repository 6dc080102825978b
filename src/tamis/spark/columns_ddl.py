"""The columns of a table as Spark spells them (``id string, price double``), without Spark.

Only what is cheap to see and surely a mistake is refused; Spark itself reads the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from tamis.errors import quoted

__all__ = ["names_of"]

_SIGN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[<(]|[>)]|,")
_COLUMN = re.compile(r"(`(?:[^`]|``)+`|[^\s`:<>()]+)(?:\s*:\s*|\s+)([A-Za-z_]+)(?=[\s(<]|$)")
_TYPES = frozenset({
    "array", "bigint", "binary", "boolean", "byte", "char", "character", "date", "dec", "decimal",
    "double", "float", "geography", "geometry", "int", "integer", "interval", "long", "map",
    "numeric", "real", "short", "smallint", "string", "struct", "time", "timestamp",
    "timestamp_ltz", "timestamp_ntz", "tinyint", "varchar", "variant", "void",
})  # fmt: skip


def names_of(ddl: str) -> list[str]:
    """The names of the columns; ValueError where one is none.

    >>> names_of("id string, `the price` decimal(10, 2), tags array<string>")
    ['id', 'the price', 'tags']
    """
    names = [_name_of(column.strip()) for column in _columns_of(ddl)]
    folded = [name.lower() for name in names]  # Spark takes ID for id
    twice = sorted({name for name in names if folded.count(name.lower()) > 1})
    if twice:
        raise ValueError(f"the column {quoted(twice[0])} is there twice; expected it once")
    return names


def _columns_of(ddl: str) -> Iterator[str]:
    """The parts between the commas that stand in no brackets and no quotes."""
    begin = depth = 0
    for sign in _SIGN.finditer(ddl):
        depth += (sign[0] in "<(") - (sign[0] in ">)")
        if sign[0] == "," and not depth:
            yield ddl[begin : sign.start()]
            begin = sign.end()
    yield ddl[begin:]


def _name_of(column: str) -> str:
    found = _COLUMN.match(column)
    if found is None:
        raise ValueError(
            f"{quoted(column)} is no column; expected a name and a type, as in "
            "'id string, price double'"
        )
    name, type = found[1], found[2].lower()
    if type not in _TYPES:
        close = get_close_matches(type, _TYPES, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ", as string, double or timestamp"
        raise ValueError(f"{type!r} of the column {quoted(name)} is no type of Spark{hint}")
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
