"""Encoding: what an event holds of one attribute, and of all, as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PREFIX, PRESENT, TEXT, TIME
from tamis.slots.spelling import micros_spelt, number_spelt
from tamis.slots.texts import Texts
from tamis.values import Point, Range, Value

Vector = npt.NDArray[np.float64]

MAX_CHOICES = 64  # vectors of an event; with more it has a hull
EXACT = 2**53  # up to here float64 holds every whole number
NAN = float("nan")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def is_exact(number: int | float) -> bool:
    """Whether float64 holds the number as it is."""
    if type(number) is float or -EXACT <= number <= EXACT:
        return True
    return int(float(number)) == number


@dataclass(slots=True)
class LanesOfAttribute:
    """The columns of one attribute: a column a lane, -1 where nobody asks."""

    columns: list[int] = field(default_factory=lambda: [-1] * PREFIX)
    has_numbers_only: bool = False
    has_texts_only: bool = False
    has_booleans_only: bool = False
    has_points_only: bool = False
    n_kinds: int = 0  # lanes that one value cannot fill all by itself
    codes: Texts = field(default_factory=Texts)
    prefixes: dict[int, tuple[int, Texts]] = field(default_factory=dict)

    @property
    def in_use(self) -> list[int]:
        """All columns that there are."""
        prefixes = [column for column, _ in list(self.prefixes.values())]  # others may be added
        return [column for column in self.columns if column >= 0] + prefixes

    def notice(self) -> None:
        """Note whether only one lane is asked for, which makes encoding quick."""
        used = {lane for lane, column in enumerate(self.columns) if column >= 0}
        self.has_numbers_only = used == {NUMBER} and not self.prefixes
        self.has_texts_only = used == {TEXT} and not self.prefixes
        self.has_booleans_only = used == {BOOLEAN} and not self.prefixes
        self.has_points_only = used == {LON, LAT} and not self.prefixes
        self.n_kinds = len(used - {PRESENT, LAT}) + len(self.prefixes)


Values = tuple[LanesOfAttribute, tuple[Value, ...]]  # of an attribute


@dataclass(slots=True)
class Encoded:
    """An event as numbers.

    A plain event has one exactly held value in each column: ``vector`` says it all. Otherwise
    ``choices`` lists the vectors of which one must be accepted (several texts, booleans or
    points), and where that is not enough ``vector`` and ``hull_high`` bound each column.
    """

    vector: Vector
    choices: tuple[Vector, ...] = ()
    chosen: tuple[int, ...] = ()  # the columns in which choices differ
    hull_high: Vector | None = None
    has_points: bool = False  # several of one attribute, whose lanes are tested apart

    @property
    def is_plain(self) -> bool:
        """Whether the vector says all there is."""
        return not self.choices and self.hull_high is None

    @property
    def decides(self) -> bool:
        """Whether the numbers say all that tests ask (``kernels.tests.judge_any``)."""
        return self.hull_high is None and not self.has_points


def put(lanes: LanesOfAttribute, value: Value, vector: Vector | list[float]) -> bool:
    """Write a value into the lanes that are asked for; False if float64 cannot hold it."""
    columns, kind = lanes.columns, type(value)
    if columns[PRESENT] >= 0:
        vector[columns[PRESENT]] = 0.0
    if kind is float or kind is int:
        if columns[NUMBER] >= 0:
            vector[columns[NUMBER]] = value  # type: ignore[assignment]
            return is_exact(value)  # type: ignore[arg-type]
    elif kind is str:
        return _put_text(lanes, value, vector)  # type: ignore[arg-type]
    elif kind is bool:
        if columns[BOOLEAN] >= 0:
            vector[columns[BOOLEAN]] = value  # type: ignore[assignment]
    elif isinstance(value, datetime):
        if columns[TIME] >= 0:
            micros = micros_of(value)
            vector[columns[TIME]] = micros
            return is_exact(micros)
    elif isinstance(value, Point):
        if columns[LON] >= 0:
            vector[columns[LON]] = value.lon
        if columns[LAT] >= 0:  # `!=` asks for a point, but not where it is
            vector[columns[LAT]] = value.lat
    elif isinstance(value, Range):
        return columns[NUMBER] < 0 and columns[TIME] < 0
    return True


def _put_text(lanes: LanesOfAttribute, text: str, vector: Vector | list[float]) -> bool:
    columns, exact = lanes.columns, True
    if columns[TEXT] >= 0:
        vector[columns[TEXT]] = lanes.codes.number_of(text)
    if columns[NUMBER] >= 0:
        number = number_spelt(text)
        if number is not None:
            vector[columns[NUMBER]] = number
            exact = is_exact(number)
    if columns[TIME] >= 0:
        micros = micros_spelt(text)
        if micros is not None:
            vector[columns[TIME]] = micros
            exact = exact and is_exact(micros)
    for length, (column, codes) in list(lanes.prefixes.items()):  # others may be added meanwhile
        if len(text) >= length:
            vector[column] = codes.number_of(text[:length])
    return exact


def encode_several(held: list[float], several: list[Values], inexact: list[Values]) -> Encoded:
    """An event with several values somewhere: each choice of one value, or the hull of all."""
    n_choices, needs_hull = 1, bool(inexact)
    for lanes, values in several:
        n_choices *= len(values)
        # Two one-sided predicates may be satisfied by two numbers, and predicates in two lanes
        # by two values: only the hull sees that.
        needs_hull |= lanes.columns[NUMBER] >= 0 or lanes.columns[TIME] >= 0
        needs_hull |= lanes.n_kinds > 1
    if needs_hull or n_choices > MAX_CHOICES:
        return _hull(held, several + inexact)
    vector = np.array(held, np.float64)
    choices = [vector]
    for lanes, values in several:
        choices = [_chosen(choice, lanes, value) for choice in choices for value in values]
    has_points = any(lanes.columns[LON] >= 0 for lanes, _ in several)
    chosen = tuple(column for lanes, _ in several for column in lanes.in_use)
    return Encoded(vector, tuple(choices), chosen, has_points=has_points)


def _chosen(vector: Vector, lanes: LanesOfAttribute, value: Value) -> Vector:
    made = vector.copy()
    put(lanes, value, made)
    return made


def _hull(held: list[float], rough: list[Values]) -> Encoded:
    """The smallest interval in each column that holds every value, widened where inexact.

    ``rough``: the attributes with several values, or with one that float64 cannot hold.
    """
    low, high = held, held.copy()
    for lanes, values in rough:
        columns = lanes.in_use
        for column in columns:
            low[column] = high[column] = NAN
        for value in values:
            below, above = _ends(lanes, value, len(held))
            for column in columns:
                if below[column] != below[column]:
                    continue  # the value is not of this kind
                is_first = low[column] != low[column]
                low[column] = below[column] if is_first else min(low[column], below[column])
                high[column] = above[column] if is_first else max(high[column], above[column])
    return Encoded(np.array(low, np.float64), hull_high=np.array(high, np.float64))


def _ends(lanes: LanesOfAttribute, value: Value, n_columns: int) -> tuple[list[float], list[float]]:
    """The least and the greatest number that a value may be in each lane."""
    below = [NAN] * n_columns
    is_exact = put(lanes, value, below)
    above = below.copy()
    if isinstance(value, Range):
        _put_range(lanes, value, below, above)
    elif not is_exact:  # integers, far from where this overflows
        for column in (lanes.columns[NUMBER], lanes.columns[TIME]):
            if column >= 0:
                below[column] = math.nextafter(below[column], -math.inf)
                above[column] = math.nextafter(above[column], math.inf)
    return below, above


def _put_range(lanes: LanesOfAttribute, held: Range, low: list[float], high: list[float]) -> None:
    column = lanes.columns[TIME if held.is_of_timestamps else NUMBER]
    if column < 0:
        return
    borders = [held.low, held.high]
    low[column], high[column] = -math.inf, math.inf
    for side, border in enumerate(borders):
        if border is not None:
            number = micros_of(border) if isinstance(border, datetime) else border
            away = -math.inf if side == 0 else math.inf
            (low, high)[side][column] = math.nextafter(float(number), away)
