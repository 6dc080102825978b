"""Subscription: what somebody wants to hear about, and how they want to be told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tamis.errors import InvalidSubscription, InvalidValue, TamisError, quoted
from tamis.language import Filter, parse_filter, to_json
from tamis.language.tree import InBox, Near, Predicate, all_of
from tamis.model.event import LOCATION, place_of
from tamis.model.event_arrow import objects_of
from tamis.values import Point, load_json
from tamis.values.shapes import box_around

DEFAULT_PRIORITY = 5
LOWEST_PRIORITY = 9

CIRCLE, SQUARE = AREAS = ("circle", "square")

_FIELDS = frozenset(
    {"id", "filter", "priority", "owner", "delivery", "location", "radius_m", "area"}
)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A saved filter with its owner, priority (0 is the highest, 9 the lowest) and delivery.

    >>> Subscription("s1", "brand = 'Huawei' AND price < 3300", priority=0).filter
    ((col('brand') == 'Huawei') & (col('price') < 3300))

    With ``location`` and ``radius_m`` it also asks that the event's location lies within that
    distance, or with ``area="square"`` in the square around that circle; ``condition`` is the
    whole of what it asks.
    """

    id: str
    filter: Filter
    priority: int = DEFAULT_PRIORITY
    owner: str = ""
    delivery: Mapping[str, Any] = field(default_factory=dict)
    location: Point | None = None
    radius_m: float | None = None
    area: str = CIRCLE
    # The area around the location, where one is given.
    surroundings: Predicate | None = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        id: str,
        filter: str | Filter | Mapping[str, Any] | bool,
        priority: int = DEFAULT_PRIORITY,
        owner: str = "",
        delivery: Mapping[str, Any] | None = None,
        location: Point | tuple[float, float] | None = None,
        radius_m: float | None = None,
        area: str = CIRCLE,
    ) -> None:
        check_id(id)
        check_priority(priority, id)
        if not isinstance(owner, str) or not _is_unicode(owner):
            raise InvalidSubscription(
                f"subscription {quoted(id)}: owner {quoted(owner)} is not valid text"
            )
        settings = _check_delivery(id, delivery) if delivery else {}
        circle = _check_place(id, location, radius_m)
        place = None if circle is None else circle.center
        _check_area(id, area, place)
        around = circle if circle is None or area == CIRCLE else _square_around(circle)
        for name, held in (
            ("id", id), ("filter", parse_filter(filter)), ("priority", priority),
            ("owner", owner), ("delivery", settings), ("location", place),
            ("radius_m", None if circle is None else circle.metres), ("area", area),
            ("surroundings", around),
        ):  # fmt: skip
            object.__setattr__(self, name, held)

    @property
    def condition(self) -> Filter:
        """The filter, and where a location is given also the area around it."""
        surroundings = self.surroundings
        return self.filter if surroundings is None else all_of((self.filter, surroundings))

    def at(self, location: Point | tuple[float, float]) -> Subscription:
        """The same subscription at another place; it must have one."""
        held = {name: getattr(self, name) for name in _FIELDS}
        return Subscription(**{**held, "location": location})

    @classmethod
    def from_json(cls, raw: str | bytes | Mapping[str, Any]) -> Subscription:
        """Read a subscription from JSON text or an object of it."""
        if isinstance(raw, str | bytes):
            try:
                raw = load_json(raw)
            except (ValueError, RecursionError) as error:
                raise InvalidSubscription(f"the subscription is not JSON: {error}") from None
        if not isinstance(raw, Mapping):
            raise InvalidSubscription(
                f"a subscription is a JSON object; {type(raw).__name__} was given"
            )
        unknown = [name for name in raw if name not in _FIELDS]
        absent = [name for name in ("id", "filter") if name not in raw]
        if unknown or absent:
            trouble = (
                f"the unknown field {quoted(unknown[0])}" if unknown else f"no {quoted(absent[0])}"
            )
            raise InvalidSubscription(
                f"the subscription has {trouble}; expected {', '.join(sorted(_FIELDS))}"
            )
        try:
            return cls(**raw)
        except InvalidSubscription:
            raise
        except TamisError as error:
            raise InvalidSubscription(f"subscription {quoted(raw['id'])}: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """The subscription as a JSON object, its filter in the JSON spelling."""
        made: dict[str, Any] = {
            "id": self.id, "filter": to_json(self.filter), "priority": self.priority,
        }  # fmt: skip
        if self.owner:
            made["owner"] = self.owner
        if self.delivery:
            made["delivery"] = dict(self.delivery)
        if self.location is not None:
            made["location"] = [self.location.lon, self.location.lat]
            made["radius_m"] = self.radius_m
            if self.area != CIRCLE:
                made["area"] = self.area
        return made


def area_around(location: Point, radius_m: float, area: str) -> Predicate:
    """What an area around a place asks of an event's location."""
    circle = Near(LOCATION, location, radius_m)
    return _square_around(circle) if area == SQUARE else circle


def _square_around(circle: Near) -> InBox:
    """The square around a circle."""
    return InBox(LOCATION, *box_around(circle.center, circle.metres))


def subscriptions_from_arrow(table: pa.Table | pa.RecordBatch) -> Iterator[Subscription]:
    """The subscriptions of a table (id, filter, priority, …); null is absent."""
    names = table.schema.names
    if absent := {"id", "filter"} - set(names):
        raise InvalidSubscription(f"the table has no column {quoted(min(absent))}")
    if len(set(names)) < len(names):
        raise InvalidSubscription("the table has two columns of the same name")
    try:
        columns = [objects_of(table.column(name)) for name in names]
    except InvalidValue as error:
        raise InvalidSubscription(f"the table cannot be read: {error}") from None
    for row in zip(*columns, strict=True):
        held = {name: one for name, one in zip(names, row, strict=True) if one is not None}
        yield Subscription.from_json(held)


def check_id(id: object) -> None:
    """Raise InvalidSubscription unless the id is a non-empty text."""
    if not isinstance(id, str) or not id:
        raise InvalidSubscription(f"subscription id {quoted(id)} is not a non-empty text")
    if not _is_unicode(id):
        raise InvalidSubscription(f"subscription id {quoted(id)} is not valid Unicode")


def check_priority(priority: object, id: str) -> None:
    """Raise InvalidSubscription unless the priority is a whole number from 0 to 9."""
    is_whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not is_whole or not 0 <= priority <= LOWEST_PRIORITY:  # type: ignore[operator]
        raise InvalidSubscription(
            f"subscription {quoted(id)}: priority {quoted(priority)} is not a whole number from 0 "
            f"(highest) to {LOWEST_PRIORITY}"
        )


def _check_place(id: str, location: Any, radius_m: Any) -> Near | None:
    """The circle around a location, if one is given."""
    if (location is None) != (radius_m is None):
        raise InvalidSubscription(
            f"subscription {quoted(id)}: location and radius_m go together; give both or neither"
        )
    if location is None:
        return None
    try:
        place = place_of(location)
        return None if place is None else Near(LOCATION, place, radius_m)
    except TamisError as error:
        raise InvalidSubscription(f"subscription {quoted(id)}: {error}") from None


def _check_area(id: str, area: Any, place: Point | None) -> None:
    if area not in AREAS:
        raise InvalidSubscription(
            f"subscription {quoted(id)}: area {quoted(area)} is none of {', '.join(AREAS)}"
        )
    if area != CIRCLE and place is None:
        raise InvalidSubscription(
            f"subscription {quoted(id)}: a {area} around no place; give location and radius_m"
        )


def _check_delivery(id: str, delivery: object) -> dict[str, Any]:
    """The settings as JSON has them, so that an index that is saved and opened has the same."""
    try:
        if isinstance(delivery, Mapping):
            spelt = json.dumps(dict(delivery), allow_nan=False, ensure_ascii=False)
            settings: dict[str, Any] = load_json(spelt.encode())
            return settings
        trouble = f"{type(delivery).__name__}, not a mapping"
    except (TypeError, ValueError, RecursionError) as error:
        trouble = f"not JSON: {error}"
    raise InvalidSubscription(f"subscription {quoted(id)}: the delivery settings are {trouble}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
