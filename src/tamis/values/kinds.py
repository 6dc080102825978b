"""The kinds of value, and the check that a Python object is one."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from enum import Enum

import numpy as np

from tamis.errors import InvalidValue, quoted
from tamis.values.numeric import check_integer
from tamis.values.ranges import Range
from tamis.values.shapes import Point, Polygon
from tamis.values.timestamps import as_timestamp

Value = str | bool | int | float | datetime | Range | Point | Polygon


class Kind(Enum):
    """What sort of value an attribute holds; the value of the member is its name in schemas."""

    TEXT = "text"
    BOOLEAN = "boolean"
    NUMBER = "number"
    TIMESTAMP = "timestamp"
    RANGE = "range"
    POINT = "point"
    POLYGON = "polygon"


def kind_of(value: Value) -> Kind:
    """The kind of a checked value.

    >>> kind_of(True), kind_of(1), kind_of("1")
    (<Kind.BOOLEAN: 'boolean'>, <Kind.NUMBER: 'number'>, <Kind.TEXT: 'text'>)
    """
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    raise InvalidValue(f"{quoted(value)} is of no kind Tamis knows")


# bool comes before int, of which it is a subclass.
_KINDS: tuple[tuple[type | tuple[type, ...], Kind], ...] = (
    (str, Kind.TEXT),
    (bool, Kind.BOOLEAN),
    ((int, float), Kind.NUMBER),
    (datetime, Kind.TIMESTAMP),
    (Range, Kind.RANGE),
    (Point, Kind.POINT),
    (Polygon, Kind.POLYGON),
)


def check_value(raw: object) -> Value | None:
    """The value a Python or NumPy object stands for; None for None and NaN, which are missing.

    >>> check_value(float("nan")) is None, check_value(np.int32(7)), check_value(Decimal("7.5"))
    (True, 7, 7.5)
    """
    kind = type(raw)
    if kind is str:
        return _check_text(raw)  # type: ignore[arg-type]
    if kind is float:
        return None if math.isnan(raw) else raw  # type: ignore[arg-type, return-value]
    if kind is int:
        return check_integer(raw)  # type: ignore[arg-type]
    if raw is None or kind in (bool, Range, Point, Polygon):
        return raw  # type: ignore[return-value]
    return _check_foreign(raw)


def _check_text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"the text {quoted(text)} holds a lone surrogate at {error.start}; give valid "
                "Unicode"
            ) from None
    return text


def _check_foreign(raw: object) -> Value | None:
    """Objects that stand for a value without being of its own type."""
    if _is_missing(raw):
        return None
    if isinstance(raw, np.datetime64):
        return _from_datetime64(raw)
    if isinstance(raw, np.longdouble):
        return float(raw)
    if isinstance(raw, np.generic) and not isinstance(raw, np.timedelta64):
        return check_value(raw.item())
    if isinstance(raw, date):
        return as_timestamp(raw)
    if isinstance(raw, Decimal):
        return _from_decimal(raw)
    if isinstance(raw, str):  # an enum member, a subclass; str() may give a name instead
        return check_value(str.__str__(raw))
    for base in (int, float):
        if isinstance(raw, base):
            return check_value(base(raw))
    raise InvalidValue(
        f"{type(raw).__name__} {quoted(raw)} is not a value; expected text, a number, a "
        "boolean, a timestamp, a Range, a Point, a Polygon, or a list of these"
    )


def _is_missing(raw: object) -> bool:
    """NaN and NaT of any library, and pandas.NA, differ from themselves or refuse to say."""
    if isinstance(raw, Decimal):
        return raw.is_nan()
    try:
        return bool(raw != raw)
    except TypeError:  # pandas.NA
        return True
    except ValueError:  # an array
        return False


def _from_decimal(raw: Decimal) -> Value:
    if raw.is_finite() and raw == raw.to_integral_value():
        if raw.adjusted() > 19:  # 1e999999999 is an integer nobody wants to see written out
            raise InvalidValue(f"{str(raw)[:30]} is outside int64; give it as a float or as text")
        return check_integer(int(raw))
    return float(raw)


def _from_datetime64(raw: np.datetime64) -> datetime:
    micros = raw.astype("datetime64[us]")
    if micros != raw:
        raise InvalidValue(f"{quoted(raw)} has nanoseconds; timestamps have microseconds")
    moment = micros.item()
    # NumPy wraps around where microseconds overflow; on the way back the difference shows.
    if not isinstance(moment, datetime) or micros.astype(raw.dtype) != raw:
        raise InvalidValue(f"{quoted(raw)} is outside the years 1 to 9999")
    return as_timestamp(moment)
