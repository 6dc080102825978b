"""Moments: instants as microseconds since 1970, as the store keeps them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tamis.errors import InvalidValue
from tamis.slots.encoding import micros_of
from tamis.values import as_timestamp

NEVER = 2**63 - 1  # until of an event that is valid for ever
LONG_AGO = -(2**63)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_or(moment: datetime | None, otherwise: int) -> int:
    """Microseconds since 1970, or another number where there is no moment."""
    return otherwise if moment is None else micros_of(moment)


def micros_now(now: datetime | None) -> int:
    """The microseconds of a given moment, or of the clock."""
    if now is None:
        return micros_of(datetime.now(UTC))
    if not isinstance(now, datetime):
        raise InvalidValue(f"now is {now!r}; expected a datetime, or None for the clock")
    return micros_of(now if now.tzinfo is UTC else as_timestamp(now))


def datetime_of(micros: int) -> datetime:
    """The moment so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=micros)
