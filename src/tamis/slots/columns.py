"""Columns: an event as numbers, one column for each attribute and lane of test (``lanes``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PREFIX, PRESENT, TEXT, TIME
from tamis.slots.quick import quick_of
from tamis.slots.spelling import micros_spelt, number_spelt
from tamis.slots.texts import Texts
from tamis.values import Attributes, Point, Range, Value

Vector = npt.NDArray[np.float64]

_EXACT = 2**53
_NAN = float("nan")
_TAKEN = frozenset((float, bool, Point))  # values of these types need no check
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def is_exact(number: int | float) -> bool:
    """Whether float64 holds the number as it is."""
    if type(number) is float or -_EXACT <= number <= _EXACT:
        return True
    return int(float(number)) == number


@dataclass(slots=True)
class _Lanes:
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


_Values = tuple[_Lanes, tuple[Value, ...]]  # of an attribute


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


_NO_COLUMNS = 0, quick_of([])


class Columns:
    """All columns; grows as filters ask for new ones, never shrinks."""

    MAX_CHOICES = 64

    def __init__(self) -> None:
        self._lanes: dict[str, _Lanes] = {}
        self.names: list[tuple[str, int]] = []
        self._quick = _NO_COLUMNS  # how many columns it knows, and the way itself

    def __len__(self) -> int:
        return len(self.names)

    # -- what filters ask for

    def column(self, attribute: str, lane: int) -> int:
        """The column of a lane, made if new."""
        lanes = self._lanes.get(attribute) or self._lanes_of(attribute)
        column = lanes.columns[lane]
        if column < 0:
            column = lanes.columns[lane] = self._new(attribute, lane)
            lanes.notice()
        return column

    def code(self, attribute: str, text: str) -> float:
        """The code of a text in the text lane, made if new."""
        return _code(self._lanes_of(attribute).codes, text)

    def prefix(self, attribute: str, prefix: str) -> tuple[int, float]:
        """The column and code of a prefix of at least one letter, made if new."""
        lanes = self._lanes_of(attribute)
        length = len(prefix)
        if length not in lanes.prefixes:
            lanes.prefixes[length] = (self._new(attribute, PREFIX + length), Texts())
            lanes.notice()
        column, codes = lanes.prefixes[length]
        return column, _code(codes, prefix)

    def _lanes_of(self, attribute: str) -> _Lanes:
        lanes = self._lanes.get(attribute)
        if lanes is None:
            lanes = self._lanes[attribute] = _Lanes()
        return lanes

    def _new(self, attribute: str, lane: int) -> int:
        self.names.append((attribute, lane))
        return len(self.names) - 1

    # -- what is there

    def has(self, attribute: str) -> bool:
        """Whether any filter asks for the attribute."""
        return attribute in self._lanes

    def known(self, attribute: str, lane: int) -> int:
        """The column of a lane, or -1 if no filter asks for it."""
        lanes = self._lanes.get(attribute)
        return -1 if lanes is None else lanes.columns[lane]

    def columns_of(self, attribute: str) -> list[int]:
        """All columns of an attribute."""
        return self._lanes[attribute].in_use

    # -- files

    def dictionaries(self) -> Iterator[tuple[str, int, Texts]]:
        """The codes of each attribute (length 0) and of its prefixes (their length)."""
        for attribute, lanes in list(self._lanes.items()):  # others may add some
            yield attribute, 0, lanes.codes
            for length, (_, codes) in list(lanes.prefixes.items()):
                yield attribute, length, codes

    @classmethod
    def of(cls, names: list[tuple[str, int]], codes: dict[tuple[str, int], Texts]) -> Columns:
        """Columns as they were, from their names and dictionaries."""
        columns = cls()
        columns.names = names
        for column, (attribute, lane) in enumerate(names):
            lanes = columns._lanes.setdefault(attribute, _Lanes())
            if lane >= PREFIX:
                length = lane - PREFIX
                lanes.prefixes[length] = (column, codes[attribute, length])
            else:
                lanes.columns[lane] = column
        for (attribute, length), texts in codes.items():
            if length == 0:
                columns._lanes.setdefault(attribute, _Lanes()).codes = texts
        for lanes in columns._lanes.values():
            lanes.notice()
        return columns

    # -- what events hold

    def encode_quickly(self, raw: Mapping[str, Any]) -> Vector | None:
        """A mapping of single floats, and perhaps a point, unchecked; None if it holds more.

        The quick way for what events of numbers are; what it does not know it leaves to the others.
        """
        n_columns, quick = self._quick
        if n_columns != len(self.names):
            names = self.names.copy()
            self._quick = len(names), (quick := quick_of(names))
        return quick(raw)

    def encode_simply(self, raw: Mapping[str, Any]) -> Encoded | None:
        """A mapping of numbers, texts, lists of texts, booleans and points, unchecked.

        The second quickest way; None if it holds more, or what has to be checked: ``encode`` does.
        """
        if (vector := self.encode_quickly(raw)) is not None:
            return Encoded(vector)
        try:
            return self._encode_simply(raw)
        except IndexError:  # a column was added meanwhile
            return None

    def _encode_simply(self, raw: Mapping[str, Any]) -> Encoded | None:
        made = [_NAN] * len(self.names)
        several: list[_Values] = []
        for name, value in raw.items():
            kind, lanes = type(value), self._lanes.get(name)
            if lanes is None:
                if type(name) is not str or not name.isidentifier() or not name.isascii():
                    return None
                if not _is_simple(kind, value) and (kind is not list or _texts_in(value) is None):
                    return None
            elif kind is list:
                texts = _texts_in(value)
                if texts is None or not lanes.has_texts_only:
                    return None
                if len(texts) > 1:
                    several.append((lanes, texts))
                elif texts:
                    made[lanes.columns[TEXT]] = lanes.codes.number_of(texts[0])
            elif not _is_simple(kind, value):
                return None
            elif lanes.has_numbers_only and (kind is float or kind is int):
                made[lanes.columns[NUMBER]] = value
            elif lanes.has_texts_only and kind is str:
                made[lanes.columns[TEXT]] = lanes.codes.number_of(value)
            elif lanes.has_booleans_only and kind is bool:
                made[lanes.columns[BOOLEAN]] = value
            elif lanes.has_points_only and kind is Point:
                made[lanes.columns[LON]], made[lanes.columns[LAT]] = value.lon, value.lat
            else:
                return None
        if several:
            return _encode_several(made, several, [])
        return Encoded(np.array(made, np.float64))

    def encode(self, attributes: Attributes) -> Encoded:
        """An event in all columns there are."""
        while True:
            try:
                return self._encode(attributes)
            except IndexError:  # a column was added meanwhile
                continue

    def _encode(self, attributes: Attributes) -> Encoded:
        held = [_NAN] * len(self.names)  # written to more quickly than an array
        several: list[_Values] = []
        inexact: list[_Values] = []
        for name, values in attributes.items():
            lanes = self._lanes.get(name)
            if lanes is None:
                continue
            if len(values) > 1:
                several.append((lanes, values))
            elif not _put(lanes, values[0], held):
                inexact.append((lanes, values))
        if not several and not inexact:
            return Encoded(np.array(held, np.float64))
        return _encode_several(held, several, inexact)


def _is_simple(kind: type, value: Any) -> bool:
    """Whether a value is one, and is taken as it is."""
    if kind is str:
        return bool(value.isascii())
    return kind in _TAKEN or (kind is int and -_EXACT <= value <= _EXACT)


def _texts_in(values: list[Any]) -> tuple[str, ...] | None:
    """The texts of a list, each once; None if it holds anything else."""
    if all(type(value) is str and value.isascii() for value in values):
        return tuple(dict.fromkeys(values))
    return None


def _code(codes: Texts, text: str) -> float:
    number = codes.number_of(text)
    return float(number if number >= 0 else codes.append(text))


def _put(lanes: _Lanes, value: Value, vector: Vector | list[float]) -> bool:
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


def _put_text(lanes: _Lanes, text: str, vector: Vector | list[float]) -> bool:
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


def _encode_several(held: list[float], several: list[_Values], inexact: list[_Values]) -> Encoded:
    """An event with several values somewhere: each choice of one value, or the hull of all."""
    n_choices, needs_hull = 1, bool(inexact)
    for lanes, values in several:
        n_choices *= len(values)
        # Two one-sided predicates may be satisfied by two numbers, and predicates in two lanes
        # by two values: only the hull sees that.
        needs_hull |= lanes.columns[NUMBER] >= 0 or lanes.columns[TIME] >= 0
        needs_hull |= lanes.n_kinds > 1
    if needs_hull or n_choices > Columns.MAX_CHOICES:
        return _hull(held, several + inexact)
    vector = np.array(held, np.float64)
    choices = [vector]
    for lanes, values in several:
        choices = [_chosen(choice, lanes, value) for choice in choices for value in values]
    has_points = any(lanes.columns[LON] >= 0 for lanes, _ in several)
    chosen = tuple(column for lanes, _ in several for column in lanes.in_use)
    return Encoded(vector, tuple(choices), chosen, has_points=has_points)


def _chosen(vector: Vector, lanes: _Lanes, value: Value) -> Vector:
    made = vector.copy()
    _put(lanes, value, made)
    return made


def _hull(held: list[float], rough: list[_Values]) -> Encoded:
    """The smallest interval in each column that holds every value, widened where inexact.

    ``rough``: the attributes with several values, or with one that float64 cannot hold.
    """
    low, high = held, held.copy()
    for lanes, values in rough:
        columns = lanes.in_use
        for column in columns:
            low[column] = high[column] = _NAN
        for value in values:
            below, above = _ends(lanes, value, len(held))
            for column in columns:
                if below[column] != below[column]:
                    continue  # the value is not of this kind
                is_first = low[column] != low[column]
                low[column] = below[column] if is_first else min(low[column], below[column])
                high[column] = above[column] if is_first else max(high[column], above[column])
    return Encoded(np.array(low, np.float64), hull_high=np.array(high, np.float64))


def _ends(lanes: _Lanes, value: Value, n_columns: int) -> tuple[list[float], list[float]]:
    """The least and the greatest number that a value may be in each lane."""
    below = [_NAN] * n_columns
    is_exact = _put(lanes, value, below)
    above = below.copy()
    if isinstance(value, Range):
        _put_range(lanes, value, below, above)
    elif not is_exact:  # integers, far from where this overflows
        for column in (lanes.columns[NUMBER], lanes.columns[TIME]):
            if column >= 0:
                below[column] = math.nextafter(below[column], -math.inf)
                above[column] = math.nextafter(above[column], math.inf)
    return below, above


def _put_range(lanes: _Lanes, held: Range, low: list[float], high: list[float]) -> None:
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
