"""Lanes: the values of an event as numbers, one span for each attribute and lane.

The lanes are those of ``tamis.slots.columns``, filled by what an event holds rather than by what
filters ask: a text that spells a number stands in the text lane and in the number lane. The
present lane holds only what stands in no other, polygons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain, compress
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.slots.encoding import is_exact, micros_of
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PRESENT, TEXT, TIME
from tamis.slots.spelling import micros_spelt, number_spelt
from tamis.values import Attributes, Point, Range, Value

Name = tuple[str, int]  # an attribute and a lane
Span = tuple[Name, float, float]  # from where to where the values of one lane lie
CodeOf = Callable[[str, str], float]  # the number of a text of an attribute


def encode(attributes: Attributes, code_of: CodeOf) -> tuple[list[Span], bool]:
    """An event as spans, and whether they say all that it holds.

    They do not where an attribute has several values, a Range, a polygon or a number that
    float64 cannot hold: then they only bound what is there.

    >>> encode({"price": (3,), "tag": ("a", "b")}, lambda attribute, text: ord(text))
    ([(('price', 0), 3, 3), (('tag', 2), 97, 98)], False)
    """
    made: list[Span] = []
    is_plain = True
    for name, values in attributes.items():
        if len(values) == 1:
            value = values[0]
            if type(value) is float:  # mostly
                made.append(((name, NUMBER), value, value))
            else:
                is_plain &= _put(made, name, value, code_of)
            continue
        is_plain = False
        many: list[Span] = []
        for value in values:
            _put(many, name, value, code_of)
        made += _hull(many)
    return made, is_plain


class Spans(NamedTuple):
    """The spans of many events, one entry each, and which events they say all of."""

    columns: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    is_whole: npt.NDArray[np.bool_]  # whether the number was an integer
    is_plain: npt.NDArray[np.bool_]  # of each event


def encode_many(events: Sequence[Attributes], code_of: CodeOf, column_of: dict[Name, int]) -> Spans:
    """``encode`` for each of many; new names get the next columns in ``column_of``.

    >>> columns = {}
    >>> spans = encode_many([{"a": (3.0,)}, {"b": (2,), "a": (1.0,)}], lambda *_: 0, columns)
    >>> columns, spans.columns.tolist(), spans.rows.tolist(), spans.low.tolist()
    ({('a', 0): 0, ('b', 0): 1}, [0, 0, 1], [0, 1, 1], [3.0, 1.0, 2.0])
    """
    names = list(chain.from_iterable(events))
    values = list(chain.from_iterable([held.values() for held in events]))
    rows = np.repeat(np.arange(len(events)), list(map(len, events)))
    is_plain = np.ones(len(events), np.bool_)
    # Single floats, which are most values, are handed over as they are.
    if (numbers := _all_floats(values)) is not None:
        columns = _number_columns(names, column_of)
        return Spans(columns, rows, numbers, numbers, np.zeros(len(numbers), np.bool_), is_plain)
    is_float = _single_floats(values)
    columns = _number_columns(list(compress(names, is_float)), column_of)
    chosen = np.array(is_float, np.bool_)
    more: list[tuple[int, int, float, float, bool]] = []
    others = np.flatnonzero(~chosen)
    for i, row in zip(others.tolist(), rows[others].tolist(), strict=True):
        spans, says_all = encode({names[i]: values[i]}, code_of)
        is_plain[row] &= says_all
        for name, least, most in spans:
            column = column_of.setdefault(name, len(column_of))
            more.append((column, row, least, most, type(least) is int and name[1] == NUMBER))
    numbers = np.array(list(map(itemgetter(0), compress(values, is_float))), np.float64)
    last = list(zip(*more, strict=True))
    return Spans(
        np.concatenate([columns, np.array(last[0], np.intp)]),
        np.concatenate([rows[chosen], np.array(last[1], np.intp)]),
        np.concatenate([numbers, np.array(last[2], np.float64)]),
        np.concatenate([numbers, np.array(last[3], np.float64)]),
        np.concatenate([np.zeros(len(numbers), np.bool_), np.array(last[4], np.bool_)]),
        is_plain,
    )


def _all_floats(values: Sequence[tuple[Value, ...]]) -> npt.NDArray[np.float64] | None:
    """The values of attributes, if they are one float each."""
    try:
        single = [value for (value,) in values]
    except ValueError:
        return None
    return np.array(single, np.float64) if set(map(type, single)) <= {float} else None


def _number_columns(names: list[str], column_of: dict[Name, int]) -> npt.NDArray[np.intp]:
    """The columns of numbers of some attributes."""
    number_of = {
        name: column_of.setdefault((name, NUMBER), len(column_of)) for name in dict.fromkeys(names)
    }
    return np.fromiter(map(number_of.__getitem__, names), np.intp, len(names))


def _single_floats(values: Sequence[tuple[Value, ...]]) -> list[bool]:
    """Which of the values of attributes are one float each."""
    kinds = map(type, map(itemgetter(0), values))
    if sum(map(len, values)) == len(values):
        return [kind is float for kind in kinds]
    return [kind is float and len(held) == 1 for kind, held in zip(kinds, values, strict=True)]


def _hull(spans: list[Span]) -> list[Span]:
    hulls: dict[Name, Span] = {}
    for name, low, high in spans:
        _, lowest, highest = hulls.get(name, (name, low, high))
        hulls[name] = name, min(lowest, low), max(highest, high)
    return list(hulls.values())


def _put(made: list[Span], name: str, value: Value, code_of: CodeOf) -> bool:
    """Append the spans of one value; False if they do not say all of it."""
    kind = type(value)
    if kind is int or kind is float:
        return _put_number(made, (name, NUMBER), value)  # type: ignore[arg-type]
    if kind is str:
        return _put_text(made, name, value, code_of)  # type: ignore[arg-type]
    if kind is bool:
        made.append(((name, BOOLEAN), float(value), float(value)))  # type: ignore[arg-type]
        return True
    if isinstance(value, datetime):
        return _put_number(made, (name, TIME), micros_of(value))
    if isinstance(value, Point):
        made.append(((name, LON), value.lon, value.lon))
        made.append(((name, LAT), value.lat, value.lat))
        return True
    if isinstance(value, Range):
        made.append(_span_of_range(name, value))
    else:
        made.append(((name, PRESENT), 0.0, 0.0))
    return False


def _put_number(made: list[Span], name: Name, number: int | float) -> bool:
    if is_exact(number):
        made.append((name, number, number))
        return True
    near = float(number)
    made.append((name, math.nextafter(near, -math.inf), math.nextafter(near, math.inf)))
    return False


def _put_text(made: list[Span], name: str, text: str, code_of: CodeOf) -> bool:
    code, is_exact = code_of(name, text), True
    made.append(((name, TEXT), code, code))
    number, micros = number_spelt(text), micros_spelt(text)
    if number is not None:
        is_exact = _put_number(made, (name, NUMBER), number)
    if micros is not None:
        is_exact &= _put_number(made, (name, TIME), micros)
    return is_exact


def _span_of_range(name: str, held: Range) -> Span:
    """A little wider than the range, as its borders may be inexact."""
    low, high = (
        micros_of(border) if isinstance(border, datetime) else border
        for border in (held.low, held.high)
    )
    return (
        (name, TIME if held.is_of_timestamps else NUMBER),
        -math.inf if low is None else math.nextafter(float(low), -math.inf),
        math.inf if high is None else math.nextafter(float(high), math.inf),
    )
