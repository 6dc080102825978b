"""Columns: an event as numbers, one column for each attribute and lane of test (``lanes``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tamis.slots.encoding import (
    EXACT,
    NAN,
    Encoded,
    LanesOfAttribute,
    Values,
    Vector,
    encode_several,
    put,
)
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PREFIX, TEXT
from tamis.slots.quick import quick_of
from tamis.slots.texts import Texts
from tamis.values import Attributes, Point

_TAKEN = frozenset((float, bool, Point))  # values of these types need no check
_NO_COLUMNS = 0, quick_of([])


class Columns:
    """All columns; grows as filters ask for new ones, never shrinks."""

    def __init__(self) -> None:
        self._lanes: dict[str, LanesOfAttribute] = {}
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

    def _lanes_of(self, attribute: str) -> LanesOfAttribute:
        lanes = self._lanes.get(attribute)
        if lanes is None:
            lanes = self._lanes[attribute] = LanesOfAttribute()
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
            lanes = columns._lanes.setdefault(attribute, LanesOfAttribute())
            if lane >= PREFIX:
                length = lane - PREFIX
                lanes.prefixes[length] = (column, codes[attribute, length])
            else:
                lanes.columns[lane] = column
        for (attribute, length), texts in codes.items():
            if length == 0:
                columns._lanes.setdefault(attribute, LanesOfAttribute()).codes = texts
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
        made = [NAN] * len(self.names)
        several: list[Values] = []
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
            return encode_several(made, several, [])
        return Encoded(np.array(made, np.float64))

    def encode(self, attributes: Attributes) -> Encoded:
        """An event in all columns there are."""
        while True:
            try:
                return self._encode(attributes)
            except IndexError:  # a column was added meanwhile
                continue

    def _encode(self, attributes: Attributes) -> Encoded:
        held = [NAN] * len(self.names)  # written to more quickly than an array
        several: list[Values] = []
        inexact: list[Values] = []
        for name, values in attributes.items():
            lanes = self._lanes.get(name)
            if lanes is None:
                continue
            if len(values) > 1:
                several.append((lanes, values))
            elif not put(lanes, values[0], held):
                inexact.append((lanes, values))
        if not several and not inexact:
            return Encoded(np.array(held, np.float64))
        return encode_several(held, several, inexact)


def _is_simple(kind: type, value: Any) -> bool:
    """Whether a value is one, and is taken as it is."""
    if kind is str:
        return bool(value.isascii())
    return kind in _TAKEN or (kind is int and -EXACT <= value <= EXACT)


def _texts_in(values: list[Any]) -> tuple[str, ...] | None:
    """The texts of a list, each once; None if it holds anything else."""
    if all(type(value) is str and value.isascii() for value in values):
        return tuple(dict.fromkeys(values))
    return None


def _code(codes: Texts, text: str) -> float:
    number = codes.number_of(text)
    return float(number if number >= 0 else codes.append(text))
