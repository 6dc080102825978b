"""Instants in UTC with microseconds; a text without an offset is read as UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from tamis.errors import InvalidValue, quoted

# RFC 3339, also as a date alone or without an offset. Hours and the minutes of an offset are
# bounded here, as Python reads 24:00 and +01:99 too.
_HOUR, _MINUTE = r"(?:[01]\d|2[0-3])", r"[0-5]\d"
_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    rf"(?:[Tt ]{_HOUR}:{_MINUTE}(?::\d{{2}}(?:\.\d{{1,6}})?)?(?:[Zz]|[+-]{_HOUR}:{_MINUTE})?)?",
    re.ASCII,
)


def as_timestamp(moment: datetime | date) -> datetime:
    """The same instant in UTC; a naive datetime and a date are read as UTC.

    >>> as_timestamp(date(2026, 1, 2)).isoformat()
    '2026-01-02T00:00:00+00:00'
    """
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if getattr(moment, "nanosecond", 0):
        raise InvalidValue(f"{quoted(moment)} has nanoseconds; timestamps have microseconds")
    # Rebuilt field by field, so that a subclass (pandas.Timestamp) becomes a plain datetime.
    plain = datetime(
        moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second,
        moment.microsecond, tzinfo=moment.tzinfo or UTC, fold=moment.fold,
    )  # fmt: skip
    try:
        return plain.astimezone(UTC)
    except OverflowError:
        raise InvalidValue(f"{quoted(moment)} is outside the years 1 to 9999 in UTC") from None


def parse_timestamp(text: str) -> datetime | None:
    """The instant a text spells (RFC 3339), or None.

    >>> parse_timestamp("2026-01-02T03:04:05+01:00").isoformat()
    '2026-01-02T02:04:05+00:00'
    >>> parse_timestamp("soon") is None
    True
    """
    if len(text) < 10 or _RFC3339.fullmatch(text) is None:
        return None
    try:
        return as_timestamp(datetime.fromisoformat(text.upper()))
    except (ValueError, InvalidValue):
        return None


def timestamp_text(moment: datetime) -> str:
    """The shortest RFC 3339 text of an instant in UTC.

    >>> timestamp_text(as_timestamp(date(2026, 1, 2)))
    '2026-01-02T00:00:00Z'
    """
    return moment.isoformat().replace("+00:00", "Z")
