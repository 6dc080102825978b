"""Slots: conjunctions as numbers.

A conjunction becomes a slot, which is

- *constraints*: at most one closed interval of float64 a column; a value must lie in it. They
  are what the index finds slots by.
- *tests*: what an interval cannot say (negations, sets, ``!=``, IS NULL, shapes); a slot that
  the index found is accepted only if its tests hold too.

Both are exact for plain events (see ``columns``). An interval merges the predicates on its
column: its low end is the highest one, its high end the lowest one, so it may be inverted
(low > high); only an event with several values can satisfy that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from tamis.kernels.tests import (
    ASK,
    DIFFERS,
    IN_POLYGON,
    IN_RANGE,
    IN_SET,
    IS_MISSING,
    IS_NEAR,
    NEGATED,
)
from tamis.language import Conjunction, Literal, Predicate
from tamis.language.calls import Call
from tamis.language.tree import (
    Equals,
    In,
    InBox,
    InRange,
    Missing,
    Near,
    NotEquals,
    Prefix,
    Present,
    Within,
)
from tamis.slots.columns import Columns
from tamis.slots.encoding import is_exact, micros_of
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PRESENT, TEXT, TIME
from tamis.slots.polygons import chains_of
from tamis.values import Kind, Point, Range, Value
from tamis.values.shapes import EARTH_RADIUS_M

MAX_EXPANSION = 64  # slots that the second IN of a conjunction, and any further one, may make
MAX_LITERALS = 131_072  # in all slots of a filter together
ANY = (-math.inf, math.inf)

_LANE_OF_KIND = {
    Kind.NUMBER: NUMBER,
    Kind.TIMESTAMP: TIME,
    Kind.TEXT: TEXT,
    Kind.BOOLEAN: BOOLEAN,
    Kind.POINT: LON,
}

Test = tuple[int, int, float, float]  # operation, column, two operands


@dataclass(slots=True)
class Slot:
    """A conjunction as constraints (by column) and tests."""

    constraints: dict[int, tuple[float, float]] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    lists: list[list[float]] = field(default_factory=list)
    # What intervals do not tell but Ranges in events do: equalities, and open ends.
    notes: list[tuple[int, str]] = field(default_factory=list)
    is_merged: bool = False

    def constrain(self, column: int, low: float, high: float, *, is_ordered: bool = False) -> None:
        """Ask for a value in the interval; on an ordered lane intervals merge."""
        known = self.constraints.get(column)
        if known is None:
            self.constraints[column] = (low, high)
        elif is_ordered or ANY in (known, (low, high)):
            self.constraints[column] = (max(low, known[0]), min(high, known[1]))
            self.is_merged = True
        elif known != (low, high):
            self.tests.append((IN_RANGE, column, low, high))

    def test_list(self, operation: int, column: int, numbers: list[float]) -> None:
        """Add a test that needs a list of numbers."""
        self.tests.append((operation, column, float(len(self.lists)), 0.0))
        self.lists.append(numbers)

    @property
    def says_all(self) -> bool:
        """Whether equal slots come only from filters that mean the same."""
        return not self.is_merged and not self.lists and all(t[0] != ASK for t in self.tests)

    def ask(self) -> None:
        """Ask for a look at the filter itself before this slot is accepted."""
        if not any(test[0] == ASK for test in self.tests):
            self.tests.append((ASK, 0, 0.0, 0.0))


def slots_of(conjunction: Conjunction, columns: Columns, n_conjunctions: int = 1) -> Iterable[Slot]:
    """The slots of one of a filter's conjunctions: one, or one for each choice from its INs."""
    for predicate, _ in conjunction:
        if type(predicate) is In:
            most = MAX_LITERALS // (n_conjunctions * len(conjunction))
            return _expanded(conjunction, columns, most)
    slot = slot_of(conjunction, columns)
    return () if slot is None else (slot,)


def _expanded(conjunction: Conjunction, columns: Columns, most: int) -> Iterator[Slot]:
    choices: list[list[Literal]] = []
    size = 1
    for literal in conjunction:
        predicate = literal.predicate
        if isinstance(predicate, In) and not literal.negated:
            n_choices = size * len(predicate.values)
            if n_choices <= most and (n_choices <= MAX_EXPANSION or size == 1):
                size = n_choices
                name, values = predicate.attribute, predicate.values
                choices.append([Literal(Equals(name, value)) for value in values])
                continue
        choices.append([literal])
    for chosen in itertools.product(*choices):
        slot = slot_of(chosen, columns)
        if slot is not None:
            yield slot


def slot_of(literals: tuple[Literal, ...], columns: Columns) -> Slot | None:
    """The slot of a conjunction, every IN a test; None if nothing satisfies a range of it."""
    slot = Slot()
    for predicate, negated in literals:
        if negated:
            _deny(slot, predicate, columns)
        elif type(predicate) is InRange:
            if not _require_range(slot, predicate.attribute, predicate.range, columns):
                return None
        else:
            _require(slot, predicate, columns)
    return slot


def _require(slot: Slot, predicate: Predicate, columns: Columns) -> None:
    """Add what a predicate asks for."""
    attribute = predicate.attribute
    if isinstance(predicate, InRange):
        _require_range(slot, attribute, predicate.range, columns)
    elif isinstance(predicate, Equals):
        _require_value(slot, attribute, predicate.value, predicate.kind, columns)
    elif isinstance(predicate, NotEquals):
        _require_other(slot, predicate, columns)
    elif isinstance(predicate, Prefix):
        if predicate.prefix:
            column, code = columns.prefix(attribute, predicate.prefix)
            slot.constrain(column, code, code)
        else:
            slot.constrain(columns.column(attribute, TEXT), *ANY)
    elif isinstance(predicate, Present):
        slot.constrain(columns.column(attribute, PRESENT), 0.0, 0.0)
    elif isinstance(predicate, Missing):
        slot.tests.append((IS_MISSING, columns.column(attribute, PRESENT), 0.0, 0.0))
    elif isinstance(predicate, In):
        _require_set(slot, predicate, columns)
    elif isinstance(predicate, Call):
        slot.constrain(columns.column(attribute, PRESENT), 0.0, 0.0)
        slot.ask()
    else:
        require_shape(slot, predicate, columns)


def _require_range(slot: Slot, attribute: str, wanted: Range, columns: Columns) -> bool:
    """Add what a range asks for; False if nothing lies in it."""
    if type(wanted.low) is float and type(wanted.high) is float and wanted.ends == "[]":  # mostly
        slot.constrain(columns.column(attribute, NUMBER), wanted.low, wanted.high, is_ordered=True)
        return wanted.low <= wanted.high
    low, high = ANY
    lane = NUMBER
    if wanted.low is not None:
        number = wanted.low
        if isinstance(number, datetime):
            lane, number = TIME, micros_of(number)
        low = float(number)
        if not is_exact(number):
            low = math.nextafter(low, -math.inf)
            slot.ask()
        elif wanted.low_open:
            if low == math.inf:  # x > inf: true of no number, but of some ranges
                slot.ask()
            low = math.nextafter(low, math.inf)
    if wanted.high is not None:
        number = wanted.high
        if isinstance(number, datetime):
            lane, number = TIME, micros_of(number)
        high = float(number)
        if not is_exact(number):
            high = math.nextafter(high, math.inf)
            slot.ask()
        elif wanted.high_open:
            if high == -math.inf:
                slot.ask()
            high = math.nextafter(high, -math.inf)
        if low >= high and wanted.is_empty:
            return False
    column = columns.column(attribute, lane)
    if wanted.ends != "[]":
        slot.notes.append((column, wanted.ends))
    slot.constrain(column, low, high, is_ordered=True)
    return True


def _require_value(slot: Slot, attribute: str, value: Value, kind: Kind, columns: Columns) -> None:
    if isinstance(value, Point):
        slot.constrain(columns.column(attribute, LON), value.lon, value.lon)
        slot.constrain(columns.column(attribute, LAT), value.lat, value.lat)
        return
    code, exact = _code(attribute, value, columns)
    column = columns.column(attribute, _LANE_OF_KIND[kind])
    slot.notes.append((column, "="))
    if exact:
        slot.constrain(column, code, code)
    else:
        slot.constrain(column, math.nextafter(code, -math.inf), math.nextafter(code, math.inf))
        slot.ask()


def _code(attribute: str, value: Value, columns: Columns) -> tuple[float, bool]:
    """The float64 a value is in its lane, and whether that is exact."""
    if isinstance(value, str):
        return columns.code(attribute, value), True
    number = micros_of(value) if isinstance(value, datetime) else value
    assert isinstance(number, int | float)
    return float(number), is_exact(number)


def _require_other(slot: Slot, predicate: NotEquals, columns: Columns) -> None:
    """``!=``: some value of that kind, and the test that it differs."""
    column = columns.column(predicate.attribute, _LANE_OF_KIND[predicate.kind])
    slot.constrain(column, *ANY)
    _test_other(slot, predicate, columns, 0)


def _test_other(slot: Slot, predicate: NotEquals, columns: Columns, negated: int) -> None:
    if isinstance(predicate.value, Point):
        slot.ask()
        return
    code, exact = _code(predicate.attribute, predicate.value, columns)
    if not exact:
        slot.ask()
        return
    column = columns.column(predicate.attribute, _LANE_OF_KIND[predicate.kind])
    slot.tests.append((DIFFERS | negated, column, code, 0.0))


def _require_set(slot: Slot, predicate: In, columns: Columns) -> None:
    """An IN too large to expand."""
    if len(set(predicate.kinds)) == 1 and predicate.kinds[0] is not Kind.POINT:
        column = columns.column(predicate.attribute, _LANE_OF_KIND[predicate.kinds[0]])
        slot.constrain(column, *ANY)
    else:
        slot.constrain(columns.column(predicate.attribute, PRESENT), 0.0, 0.0)
    _test_set(slot, predicate, columns, 0)


def _test_set(slot: Slot, predicate: In, columns: Columns, negated: int) -> None:
    coded = [
        _code(predicate.attribute, value, columns)
        for value in predicate.values
        if not isinstance(value, Point)
    ]
    is_simple = len(set(predicate.kinds)) == 1 and len(coded) == len(predicate.values)
    if not is_simple or not all(exact for _, exact in coded):
        slot.ask()
        return
    column = columns.column(predicate.attribute, _LANE_OF_KIND[predicate.kinds[0]])
    slot.test_list(IN_SET | negated, column, sorted(code for code, _ in coded))


def require_shape(slot: Slot, predicate: Predicate, columns: Columns) -> None:
    """A box that holds the shape, and the test for the shape itself."""
    require_place(slot, predicate, *_place_columns(predicate, columns))


def _place_columns(predicate: Predicate, columns: Columns) -> tuple[int, int]:
    attribute = predicate.attribute
    return columns.column(attribute, LON), columns.column(attribute, LAT)


def require_place(slot: Slot, predicate: Predicate, lon: int, lat: int) -> None:
    """``require_shape`` of the columns of a longitude and a latitude."""
    lon1, lat1, lon2, lat2 = _bounds(predicate)
    slot.constrain(lon, lon1, lon2)
    slot.constrain(lat, lat1, lat2)
    if isinstance(predicate, Within | Near):
        _test_shape(slot, predicate, lon, lat, 0)
    elif isinstance(predicate, InBox) and predicate.lon1 > predicate.lon2:
        east = math.nextafter(predicate.lon2, math.inf)
        west = math.nextafter(predicate.lon1, -math.inf)
        slot.tests.append((IN_RANGE | NEGATED, lon, east, west))


def _test_shape(slot: Slot, predicate: Within | Near, lon: int, lat: int, negated: int) -> None:
    if isinstance(predicate, Within):
        slot.test_list(IN_POLYGON | negated, lon, [float(lat), *chains_of(predicate.polygon)])
        return
    center_lon, center_lat = math.radians(predicate.center.lon), math.radians(predicate.center.lat)
    h = math.sin(min(math.pi / 2, predicate.metres / EARTH_RADIUS_M / 2)) ** 2
    # Angles are rounded to about 1e-15; what that makes of h stays far within this margin.
    margin = 1e-12 * (math.sqrt(h) + h)
    numbers = [float(lat), center_lon, center_lat, math.cos(center_lat), h, margin]
    slot.test_list(IS_NEAR | negated, lon, numbers)


def _bounds(predicate: Predicate) -> tuple[float, float, float, float]:
    """A box that holds every point the predicate accepts."""
    if isinstance(predicate, Within):
        return predicate.polygon.bounds
    if isinstance(predicate, InBox):
        if predicate.lon1 <= predicate.lon2:
            return predicate.lon1, predicate.lat1, predicate.lon2, predicate.lat2
        return -180.0, max(-90.0, predicate.lat1), 180.0, min(90.0, predicate.lat2)
    assert isinstance(predicate, Near)
    # A little wider than the circle, for the rounding of the distance itself.
    angle = predicate.metres / EARTH_RADIUS_M * (1 + 1e-9) + 1e-9
    lat, reach = predicate.center.lat, math.degrees(angle)
    south, north = max(-90.0, lat - reach), min(90.0, lat + reach)
    if south <= -90.0 or north >= 90.0 or angle >= math.pi / 2:
        return -180.0, south, 180.0, north
    # The easternmost point of a circle on the globe lies at this longitude.
    ratio = math.sin(angle) / math.cos(math.radians(lat))
    spread = math.degrees(math.asin(min(1.0, ratio))) * (1 + 1e-9) + 1e-9
    west, east = predicate.center.lon - spread, predicate.center.lon + spread
    if west < -180.0 or east > 180.0:
        return -180.0, south, 180.0, north
    return west, south, east, north


def _deny(slot: Slot, predicate: Predicate, columns: Columns) -> None:
    """Add the test that a predicate does not hold."""
    if isinstance(predicate, NotEquals):
        _test_other(slot, predicate, columns, NEGATED)
    elif isinstance(predicate, In):
        _test_set(slot, predicate, columns, NEGATED)
    elif isinstance(predicate, Equals | InRange | Prefix):
        denied = Slot()
        _require(denied, predicate, columns)
        if isinstance(predicate, InRange) and predicate.range.is_empty:
            return  # what nothing satisfies is denied by everything
        if denied.tests or len(denied.constraints) != 1:
            slot.ask()
            return
        slot.notes += denied.notes
        ((column, (low, high)),) = denied.constraints.items()
        slot.tests.append((IN_RANGE | NEGATED, column, low, high))
    elif isinstance(predicate, Within | Near):
        _test_shape(slot, predicate, *_place_columns(predicate, columns), NEGATED)
    else:
        slot.ask()
