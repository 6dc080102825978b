"""What a text spells: the index's own reading of numbers and timestamps.

The oracle reads them with ``tamis.values``. This is written apart, so that a fault in either
shows as a difference between index and oracle.
"""

from __future__ import annotations

from datetime import date

from tamis.values.numeric import INT64_MAX, INT64_MIN, Number

_LONGEST_NUMBER = 64
_DAY = 24 * 60 * 60 * 1_000_000
_FIRST_DAY = date(1970, 1, 1).toordinal()
_FIRST, _LAST = (
    (day.toordinal() - _FIRST_DAY) * _DAY + more
    for day, more in ((date.min, 0), (date.max, _DAY - 1))
)


def number_spelt(text: str) -> Number | None:
    """The number a text spells in JSON's grammar, or None.

    >>> number_spelt("2016"), number_spelt("-1.5e3"), number_spelt("007"), number_spelt("1e999")
    (2016, -1500.0, None, None)
    """
    if len(text) > _LONGEST_NUMBER or not text.isascii():
        return None
    mantissa, has_power, power = text.removeprefix("-").replace("E", "e").partition("e")
    whole, has_point, part = mantissa.partition(".")
    if not whole.isdigit() or (whole[0] == "0" and len(whole) > 1):
        return None
    if (has_point and not part.isdigit()) or (has_power and not _is_power(power)):
        return None
    if has_point or has_power:
        number = float(text)
        return number if abs(number) != float("inf") else None
    integer = int(text)
    return integer if INT64_MIN <= integer <= INT64_MAX else None


def _is_power(text: str) -> bool:
    return (text[1:] if text[:1] in ("+", "-") else text).isdigit()


def micros_spelt(text: str) -> int | None:
    """Microseconds since 1970 of the instant a text spells (RFC 3339), or None.

    >>> micros_spelt("1970-01-01T01:00:00.5+01:00"), micros_spelt("1970-13-01")
    (500000, None)
    """
    if len(text) < 10 or not text.isascii():
        return None
    day = _day_spelt(text[:10])
    if day is None:
        return None
    if len(text) == 10:
        return day * _DAY
    clock, offset = _without_offset(text[11:])
    of_day = _clock_spelt(clock) if text[10] in "Tt " else None
    if of_day is None or offset is None:
        return None
    micros = day * _DAY + of_day - offset
    return micros if _FIRST <= micros <= _LAST else None


def _day_spelt(text: str) -> int | None:
    year, month, day = text[:4], text[5:7], text[8:]
    if text[4] + text[7] != "--" or not (year + month + day).isdigit():
        return None
    try:
        return date(int(year), int(month), int(day)).toordinal() - _FIRST_DAY
    except ValueError:
        return None


def _without_offset(text: str) -> tuple[str, int | None]:
    """The clock before an offset, and the offset; None if it is none."""
    if text[-1:] in ("Z", "z"):
        return text[:-1], 0
    if text[-6:-5] not in ("+", "-"):
        return text, 0
    offset = _clock_spelt(text[-5:])
    return text[:-6], offset if offset is None or text[-6] == "+" else -offset


def _clock_spelt(text: str) -> int | None:
    """Microseconds since midnight of HH:MM, HH:MM:SS or HH:MM:SS.ffffff."""
    clock, has_point, part = text.partition(".")
    fields = clock.split(":")
    if not (2 <= len(fields) <= 3) or any(len(one) != 2 or not one.isdigit() for one in fields):
        return None
    if has_point and (len(fields) == 2 or not part.isdigit() or len(part) > 6):
        return None
    hours, minutes, seconds = (int(one) for one in (*fields, "0")[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(part.ljust(6, "0"))
