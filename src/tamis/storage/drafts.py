"""Drafts: subscriptions as JSON objects that somebody wants saved, checked against rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic_core import from_json, to_json

from tamis.delivery import check_delivery, parse_settings
from tamis.errors import InvalidSubscription, InvalidValue, NotAllowed, TamisError, quoted
from tamis.language import Filter, normal_form, parse_filter
from tamis.language.normal import DEFAULT_CAP
from tamis.model import Subscription
from tamis.model.subscription import DEFAULT_PRIORITY, LOWEST_PRIORITY
from tamis.storage.plain_filters import is_plain
from tamis.storage.saved import Saved

FIELDS = frozenset(
    {
        "id", "filter", "spelling", "priority", "owner", "delivery", "location", "radius_m",
        "area", "is_paused",
    }
)  # fmt: skip
SPELLINGS = ("sql", "json", "query")
LONGEST_NAME = 500  # of an id or an owner; a database indexes no text of any length

_PLAIN = frozenset({"id", "filter", "priority", "owner", "delivery"})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SUBSCRIPTION_FIELDS = ("priority", "delivery", "location", "radius_m", "area")


@dataclass(frozen=True, slots=True)
class Rules:
    """What is asked of a draft.

    ``owner`` has what says nothing of an owner, and everything unless ``may_choose_owner``.
    ``most_conjunctions`` bounds the normal form of a filter; ``check_transports`` raises
    InvalidDelivery for settings that a sender cannot use.
    """

    owner: str = ""
    may_choose_owner: bool = False
    most_conjunctions: int = DEFAULT_CAP
    check_transports: Callable[[Mapping[str, Any]], object] | None = None


def read_draft(held: Mapping[str, Any], rules: Rules) -> Saved:
    """The subscription that an object describes; raises what is wrong with it.

    >>> draft = {"id": "s1", "filter": "mark=FORD&year_from=2014", "spelling": "query"}
    >>> read_draft(draft, Rules("zoe")).subscription.filter
    ((col('mark') == 'FORD') & (col('year') >= 2014))
    """
    _check_fields(held)
    filter, spelling = read_filter(held["filter"], held.get("spelling"))
    owner = _owner(held.get("owner"), rules)
    given = {name: held[name] for name in _SUBSCRIPTION_FIELDS if held.get(name) is not None}
    subscription = Subscription(check_name(held["id"], "id"), filter, owner=owner, **given)
    is_paused = held.get("is_paused", False)
    if not isinstance(is_paused, bool):
        raise InvalidSubscription(f"is_paused {quoted(is_paused)} is not true or false")
    return check_saved(Saved(subscription, spelling, is_paused), rules)


def plain_row(held: Mapping[str, Any], rules: Rules, now: str) -> tuple[Any, ...] | None:
    """The row of what ``read_draft`` would read, in a fraction of the time; None if it must.

    For the drafts that an import has by the million: a filter in JSON, in no place. Whatever is
    wrong or unusual is left to ``read_draft``.
    """
    id, filter, priority = held.get("id"), held.get("filter"), held.get("priority")
    priority = DEFAULT_PRIORITY if priority is None else priority
    if not held.keys() <= _PLAIN or type(filter) is not dict or filter.keys() == {"query"}:
        return None
    if type(id) is not str or type(priority) is not int or not 0 <= priority <= LOWEST_PRIORITY:
        return None
    try:
        check_name(id, "id")
        owner = _owner(held.get("owner"), rules)
        spelling = _spelt(filter) if is_plain(filter, rules.most_conjunctions) else None
        if spelling is None:
            normal_form(parse_filter(filter), cap=rules.most_conjunctions)
            spelling = _ENCODER.encode(filter)
            spelling.encode()
        settings = held.get("delivery")
        delivery = _ENCODER.encode(settings) if settings else "{}"
        told = _checked_settings(delivery, rules.check_transports)
        delivery.encode()
    except (TamisError, ValueError):
        return None
    if not told:
        return None
    return (
        id, owner, spelling, spelling, priority, delivery, None, None, None, None, False, 1,
        now, now,
    )  # fmt: skip


def _spelt(filter: Mapping[str, Any]) -> str:
    """A plain filter as JSON text, as ``_ENCODER`` writes it; its numbers are below 2^53."""
    text = to_json(filter).decode()
    # Small numbers are spelt differently, and polygons may have numbers of any size.
    if "e-" in text or "0.0000" in text or "polygon" in text:
        return _ENCODER.encode(filter)
    return text


def plain_row_of(line: bytes, rules: Rules, now: str) -> tuple[Any, ...] | None:
    """``plain_row`` of what strict JSON stands for, by a quicker parser; None if it cannot tell.

    That parser keeps the last of several values of a key. But every key is followed by a colon, so
    that none was lost if as many colons are in what was kept. An escape may hide one.
    """
    if b"\\" in line:
        return None
    try:
        held = from_json(line, allow_inf_nan=False)
    except ValueError:
        return None
    row = plain_row(held, rules, now) if type(held) is dict else None
    if row is None:
        return None
    id, owner, _, spelling, _, delivery, *_ = row
    kept = len(held) + id.count(":") + spelling.count(":") + delivery.count(":")
    if held.get("owner") is not None:
        kept += owner.count(":")
    return row if kept == line.count(b":") else None


@lru_cache(maxsize=4_096)
def _checked_settings(
    text: str, check_transports: Callable[[Mapping[str, Any]], object] | None
) -> bool:
    """True; what is wrong with settings is raised. Many subscriptions have the same."""
    delivery = json.loads(text)
    if not isinstance(delivery, dict):
        return False
    parse_settings(delivery)
    if check_transports is not None:
        check_transports(delivery)
    return True


def read_changes(changes: Mapping[str, Any]) -> Callable[[Saved, Rules], Saved]:
    """What makes of a subscription what some changes to its fields ask for; null takes one away.

    A filter is read here and now: what is returned is used while a database waits.
    """
    parsed: tuple[Filter, Any] | None = None
    if "filter" in changes:
        parsed = read_filter(changes["filter"], changes.get("spelling"))
    elif changes.get("spelling") is not None:
        raise InvalidSubscription("a spelling says how a filter is written; give the filter too")
    return lambda saved, rules: _changed(saved, changes, parsed, rules)


def _changed(
    saved: Saved, changes: Mapping[str, Any], parsed: tuple[Filter, Any] | None, rules: Rules
) -> Saved:
    held = saved.subscription
    filter, spelling = parsed or (held.filter, saved.spelling)
    kept = {name: getattr(held, name) for name in _SUBSCRIPTION_FIELDS}
    kept |= {name: changes[name] for name in _SUBSCRIPTION_FIELDS if name in changes}
    if kept["location"] is None:
        del kept["area"]
    kept = {name: value for name, value in kept.items() if value is not None}
    is_paused = changes.get("is_paused", saved.is_paused)
    made = Subscription(held.id, filter, owner=held.owner, **kept)
    return check_saved(
        replace(saved, subscription=made, spelling=spelling, is_paused=bool(is_paused)), rules
    )


def check_saved(saved: Saved, rules: Rules) -> Saved:
    """The same, if it can be told and can be indexed."""
    check_delivery(saved.subscription)
    if rules.check_transports is not None:
        rules.check_transports(saved.subscription.delivery)
    normal_form(saved.subscription.condition, cap=rules.most_conjunctions)
    return saved


def read_filter(given: Any, spelling: str | None = None) -> tuple[Filter, Any]:
    """The tree of a filter, and what is kept of how it was written.

    Query notation is kept as ``{"query": text}``, for else it would look like SQL.
    """
    if spelling is not None and spelling not in SPELLINGS:
        raise InvalidSubscription(
            f"the spelling {quoted(spelling)} is not one of {', '.join(SPELLINGS)}"
        )
    if spelling == "query":
        return parse_filter(given, "query"), {"query": given}
    if spelling is not None and isinstance(given, str):
        return parse_filter(given, spelling), given
    return parse_filter(given), given


def told_spelling(kept: Any) -> tuple[Any, str]:
    """A filter as its owner wrote it, and the name of its spelling.

    >>> told_spelling({"query": "mark=FORD"}), told_spelling("price < 3")
    (('mark=FORD', 'query'), ('price < 3', 'sql'))
    """
    if isinstance(kept, Mapping) and kept.keys() == {"query"}:
        return kept["query"], "query"
    is_sql = isinstance(kept, str) and not kept.lstrip().startswith("{")
    return kept, "sql" if is_sql else "json"


def check_name(name: Any, what: str) -> str:
    """The name, if a database can hold it."""
    if not isinstance(name, str) or not name:
        raise InvalidSubscription(f"the {what} {quoted(name)} is not a non-empty text")
    if len(name) > LONGEST_NAME:
        raise InvalidSubscription(
            f"the {what} has {len(name):,} characters, more than the {LONGEST_NAME} allowed"
        )
    if not name.isprintable():
        raise InvalidSubscription(
            f"the {what} {quoted(name)} holds characters that cannot be shown; leave them out"
        )
    return name


def _check_fields(held: Mapping[str, Any]) -> None:
    for name in held:
        if name not in FIELDS:
            raise InvalidSubscription(
                f"the subscription has the unknown field {quoted(name)}; expected "
                f"{', '.join(sorted(FIELDS))}"
            )
    for name in ("id", "filter"):
        if name not in held:
            raise InvalidSubscription(f"the subscription has no {quoted(name)}")


def _owner(given: Any, rules: Rules) -> str:
    if given is None or given == rules.owner:
        return rules.owner
    if not rules.may_choose_owner:
        raise NotAllowed(
            f"this key is of the owner {quoted(rules.owner)} and saves nothing for "
            f"{quoted(given)}; leave the owner out"
        )
    try:
        return check_name(given, "owner")
    except InvalidValue as error:
        raise InvalidSubscription(str(error)) from None
