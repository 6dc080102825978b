"""The filter tree: predicates under And, Or and Not. Every spelling parses to it.

    Filter
    ├── And, Or       none or at least two parts, no part of the same class (flattened)
    ├── Not           one part
    └── Predicate     a test on one attribute
        ├── Equals, NotEquals, In      against values
        ├── InRange                    < <= > >= BETWEEN: one value inside one interval
        ├── Prefix                     text that starts so
        ├── Present, Missing           IS NOT NULL, IS NULL
        ├── Within, InBox, Near        points in a polygon, a box, a distance
        └── Call                       what is spelt as the call of a word (see ``calls``)

``And(())`` accepts everything (TRUE), ``Or(())`` nothing (FALSE). Nodes are immutable,
comparable and hashable; their repr is their spelling in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from tamis.errors import FilterError, FilterTooComplex, InvalidValue, quoted
from tamis.values import Kind, Point, Polygon, Range, Value, check_value, kind_of

MAX_DEPTH = 100

_EQUALITY_KINDS = frozenset({Kind.TEXT, Kind.BOOLEAN, Kind.NUMBER, Kind.TIMESTAMP, Kind.POINT})


class Filter:
    """A node of the tree; combine filters with ``&``, ``|`` and ``~``."""

    __slots__ = ()

    @property
    def depth(self) -> int:
        """How many And, Or and Not stand above the deepest predicate."""
        return 0

    def __and__(self, other: Filter) -> Filter:
        return all_of((self, _check_filter(other)))

    def __or__(self, other: Filter) -> Filter:
        return any_of((self, _check_filter(other)))

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a filter has no truth of its own; combine filters with &, | and ~ (not with and, "
            "or, not), write .between(low, high) instead of low < x < high, and use "
            "evaluate(filter, event) to test an event"
        )

    def __repr__(self) -> str:
        from tamis.language.python import to_python

        return to_python(self)


class Predicate(Filter):
    """A test on one attribute."""

    __slots__ = ()
    attribute: str


@dataclass(frozen=True, slots=True, repr=False)
class Equals(Predicate):
    """Some value equals ``value``; a Point equals exactly the same coordinates."""

    attribute: str
    value: Value
    kind: Kind = field(init=False)  # tells 1 from True, which Python calls equal

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        object.__setattr__(self, "value", check_literal(self.value))
        object.__setattr__(self, "kind", kind_of(self.value))


@dataclass(frozen=True, slots=True, repr=False)
class NotEquals(Predicate):
    """Some value of the kind of ``value`` differs from it; false when the attribute is missing."""

    attribute: str
    value: Value
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        object.__setattr__(self, "value", check_literal(self.value))
        object.__setattr__(self, "kind", kind_of(self.value))


@dataclass(frozen=True, slots=True, repr=False)
class In(Predicate):
    """Some value equals one of ``values``, of which there are at least two (see ``is_in``)."""

    attribute: str
    values: tuple[Value, ...]
    kinds: tuple[Kind, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        checked = [check_literal(value) for value in self.values]
        unique = {(kind_of(value), value): value for value in checked}
        if len(unique) < 2:
            raise FilterError("In needs at least two different values; use is_in() for any number")
        object.__setattr__(self, "values", tuple(unique.values()))
        object.__setattr__(self, "kinds", tuple(kind for kind, _ in unique))


@dataclass(frozen=True, slots=True, repr=False)
class InRange(Predicate):
    """Some number or timestamp lies inside, or some Range intersects, ``range``."""

    attribute: str
    range: Range

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        if not isinstance(self.range, Range):
            raise FilterError(f"InRange needs a Range; {quoted(self.range)} was given")
        if self.range.low is None and self.range.high is None:
            raise FilterError("a range without borders tests nothing; use IS NOT NULL instead")


@dataclass(frozen=True, slots=True, repr=False)
class Prefix(Predicate):
    """Some text starts with ``prefix``."""

    attribute: str
    prefix: str

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        if not isinstance(self.prefix, str):
            raise FilterError(f"a prefix is text; {quoted(self.prefix)} was given")
        check_literal(self.prefix)


@dataclass(frozen=True, slots=True, repr=False)
class Present(Predicate):
    """The attribute has a value."""

    attribute: str

    def __post_init__(self) -> None:
        check_attribute(self.attribute)


@dataclass(frozen=True, slots=True, repr=False)
class Missing(Predicate):
    """The attribute has no value."""

    attribute: str

    def __post_init__(self) -> None:
        check_attribute(self.attribute)


@dataclass(frozen=True, slots=True, repr=False)
class Within(Predicate):
    """Some point lies in ``polygon`` or on its border."""

    attribute: str
    polygon: Polygon

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        if not isinstance(self.polygon, Polygon):
            raise FilterError(f"within needs a Polygon; {quoted(self.polygon)} was given")


@dataclass(frozen=True, slots=True, repr=False)
class InBox(Predicate):
    """Some point lies between two corners; ``lon1 > lon2`` spans the antimeridian."""

    attribute: str
    lon1: float
    lat1: float
    lon2: float
    lat2: float

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        for name, corner in (
            ("1", point_of(self.lon1, self.lat1)),
            ("2", point_of(self.lon2, self.lat2)),
        ):
            object.__setattr__(self, "lon" + name, corner.lon)
            object.__setattr__(self, "lat" + name, corner.lat)
        if self.lat1 > self.lat2:
            raise FilterError(
                f"a box from latitude {self.lat1} up to {self.lat2}; give the southern one first"
            )
        if self.lon1 > self.lon2 and max(abs(self.lon1), abs(self.lon2)) > 180:
            raise FilterError(
                f"a box from longitude {self.lon1} to {self.lon2}; one that spans the antimeridian "
                "needs longitudes from -180 to 180, any other the western one first"
            )


@dataclass(frozen=True, slots=True, repr=False)
class Near(Predicate):
    """Some point is at most (or, if open, less than) ``metres`` from ``center``."""

    attribute: str
    center: Point
    metres: float
    open: bool = False

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        metres = check_literal(self.metres)
        if isinstance(metres, bool) or not isinstance(metres, int | float):
            raise FilterError(f"a distance is a number of metres; {quoted(self.metres)} was given")
        if not (0 <= metres < math.inf):
            raise FilterError(f"a distance of {metres} metres; expected 0 or more, and finite")
        if not isinstance(self.center, Point):
            raise FilterError(f"a distance is from a Point; {quoted(self.center)} was given")
        if not self.center.is_place:
            raise FilterError(
                f"({self.center.lon}, {self.center.lat}) is not a place; expected a longitude from "
                "-180 to 180 and a latitude from -90 to 90, in this order"
            )
        object.__setattr__(self, "metres", float(metres))


@dataclass(frozen=True, slots=True, repr=False)
class Not(Filter):
    """Accepts what ``part`` does not: the complement, also for missing attributes."""

    part: Filter
    depth: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check_filter(self.part)
        object.__setattr__(self, "depth", _check_depth(self.part.depth + 1))


@dataclass(frozen=True, slots=True, repr=False)
class And(Filter):
    """Accepts what every part accepts."""

    parts: tuple[Filter, ...]
    depth: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _flatten_parts(self)


@dataclass(frozen=True, slots=True, repr=False)
class Or(Filter):
    """Accepts what some part accepts."""

    parts: tuple[Filter, ...]
    depth: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _flatten_parts(self)


def all_of(parts: Iterable[Filter]) -> Filter:
    """The filter that accepts what every part accepts; a single part is returned as it is."""
    given = tuple(parts)
    return given[0] if len(given) == 1 else And(given)


def any_of(parts: Iterable[Filter]) -> Filter:
    """The filter that accepts what some part accepts; a single part is returned as it is."""
    given = tuple(parts)
    return given[0] if len(given) == 1 else Or(given)


def is_in(attribute: str, values: Iterable[Value]) -> Filter:
    """``In``, or ``Equals`` if only one different value is given."""
    given = list(values)
    if not given:
        raise FilterError(f"IN for {quoted(attribute)} has no values; give at least one")
    first = Equals(attribute, given[0])
    if all(Equals(attribute, value) == first for value in given):
        return first
    return In(attribute, tuple(given))


def _flatten_parts(node: And | Or) -> None:
    parts: list[Filter] = []
    for part in node.parts:
        # TRUE inside an And and FALSE inside an Or stay visible: they are what was written.
        nested = isinstance(part, type(node)) and part.parts
        parts.extend(part.parts if nested else (_check_filter(part),))  # type: ignore[attr-defined]
    if len(parts) == 1:
        raise FilterError(f"{type(node).__name__} of a single part; use the part itself")
    object.__setattr__(node, "parts", tuple(parts))
    deepest = max((part.depth for part in parts), default=-1)
    object.__setattr__(node, "depth", _check_depth(deepest + 1))


def _check_filter(part: object) -> Filter:
    if isinstance(part, Filter):
        return part
    raise FilterError(f"{quoted(part)} is not a filter; expected e.g. col('price') < 3300")


def _check_depth(depth: int) -> int:
    if depth > MAX_DEPTH:
        raise FilterTooComplex("levels of nesting", depth, MAX_DEPTH, "flatten or split it")
    return depth


def check_attribute(name: object) -> None:
    """Raise FilterError unless it can be the name of an attribute."""
    if not isinstance(name, str) or not name:
        raise FilterError(
            f"{quoted(name)} is not the name of an attribute; expected non-empty text"
        )
    try:
        check_value(name)
    except InvalidValue as error:
        raise FilterError(str(error)) from None


def point_of(lon: float, lat: float) -> Point:
    """A point in a filter."""
    try:
        return Point(lon, lat)
    except InvalidValue as error:
        raise FilterError(str(error)) from None


def range_of(low: object = None, high: object = None, ends: str = "[]") -> Range:
    """A range in a filter."""
    try:
        return Range(low, high, ends)  # type: ignore[arg-type]  # it checks
    except InvalidValue as error:
        raise FilterError(str(error)) from None


def check_literal(raw: object) -> Value:
    """A single value that a filter compares with; raises FilterError."""
    if isinstance(raw, Filter):
        raise FilterError(f"{quoted(raw)} is a filter where a value was expected")
    try:
        value = check_value(raw)
    except InvalidValue as error:
        raise FilterError(str(error)) from None
    if value is None:
        raise FilterError(f"{quoted(raw)} compares with nothing; use IS NULL or IS NOT NULL")
    if kind_of(value) not in _EQUALITY_KINDS:
        raise FilterError(
            f"{quoted(value)} cannot be compared for equality; use BETWEEN for ranges and within() "
            "for polygons"
        )
    return value


TRUE = And(())
FALSE = Or(())
