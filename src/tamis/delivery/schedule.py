"""When a match is due: the instants a schedule names, exact through changes of the clocks.

A schedule is a rule that gives every match the first of its instants that is not before it. There
are three kinds, spelled as texts:

- ``immediate``: every instant.
- ``every 15 minutes``, ``every 2 hours``: the whole multiples of that time since 1970-01-01 UTC.
- ``daily at 09:00 Europe/Berlin``: one instant for each date, the first at which the clocks of that
  zone show that time of that date, or a later time. Where the clocks jump over the time, that is
  the moment of the jump; where they show it twice, the first of the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidDelivery

__all__ = ["IMMEDIATE", "Daily", "Every", "Immediate", "Schedule", "Times", "parse_schedule"]

Times: TypeAlias = npt.NDArray[np.datetime64]
"""Instants as ``datetime64[us]`` in UTC; NaT where there is none."""

LONGEST_MINUTES = 7 * 24 * 60

_EVERY = re.compile(r"every (?:(\d{1,9}) )?(minute|hour)s?", re.ASCII)
_DAILY = re.compile(r"daily at (\d\d):(\d\d)(?: (\S+))?", re.ASCII)
_FORMS = "'immediate', 'every 15 minutes', 'every 2 hours' or 'daily at 09:00 Europe/Berlin'"
_DAY_US = 86_400_000_000
_DAY_0 = date(1970, 1, 1)
# An instant of the date d lies less than two days from midnight UTC of d, in every zone.
_NEAR_DAYS = np.arange(-2, 3)
_DAYS = (date(1, 1, 4) - _DAY_0).days, (date(9999, 12, 28) - _DAY_0).days


@dataclass(frozen=True, slots=True)
class Immediate:
    """Every instant is one of this schedule."""

    def due(self, times: Times) -> Times:
        """A match is due at once."""
        return _microseconds(times)

    def __str__(self) -> str:
        return "immediate"


@dataclass(frozen=True, slots=True)
class Every:
    """The whole multiples of some minutes since 1970-01-01 UTC."""

    minutes: int

    def due(self, times: Times) -> Times:
        """The first multiple that is not before each time.

        >>> Every(15).due(np.array(["2026-03-01T10:00:01", "2026-03-01T10:15"], "M8[us]"))
        array(['2026-03-01T10:15:00.000000', '2026-03-01T10:15:00.000000'],
              dtype='datetime64[us]')
        """
        given = _microseconds(times)
        period = self.minutes * 60_000_000
        since = given.astype(np.int64)
        made = (-(-since // period) * period).astype("M8[us]")
        made[np.isnat(given)] = np.datetime64("NaT")
        return made

    def __str__(self) -> str:
        count, unit = (
            (self.minutes // 60, "hour") if self.minutes % 60 == 0 else (self.minutes, "minute")
        )
        return f"every {count} {unit}s" if count > 1 else f"every {unit}"


@dataclass(frozen=True, slots=True)
class Daily:
    """One instant for each date of a time zone."""

    minute_of_day: int
    zone: tzinfo

    def due(self, times: Times) -> Times:
        """The first of the instants that is not before each time.

        On 29 March 2026 the clocks of Berlin jump from 02:00 to 03:00, which is 01:00 UTC:

        >>> schedule = parse_schedule("daily at 02:30 Europe/Berlin")
        >>> schedule.due(np.array(["2026-03-28T01:30:01", "2026-03-29T01:00:01"], "M8[us]"))
        array(['2026-03-29T01:00:00.000000', '2026-03-30T00:30:00.000000'],
              dtype='datetime64[us]')
        """
        given = _microseconds(times)
        made = given.copy()
        known = ~np.isnat(given)
        since = given[known].astype(np.int64)
        days = np.unique(since // _DAY_US)
        if len(days) and not _DAYS[0] <= days[0] <= days[-1] <= _DAYS[1]:
            raise InvalidDelivery("a daily schedule has instants from the year 1 to 9999 only")
        near = np.unique(days[:, None] + _NEAR_DAYS)
        instants = np.array([_instant(self, int(day)) for day in near], np.int64)
        made[known] = instants[np.searchsorted(instants, since)].astype("M8[us]")
        return made

    def __str__(self) -> str:
        name = "UTC" if self.zone is UTC else str(self.zone)
        return f"daily at {self.minute_of_day // 60:02}:{self.minute_of_day % 60:02} {name}"


Schedule: TypeAlias = Immediate | Every | Daily
IMMEDIATE = Immediate()


def parse_schedule(text: object) -> Schedule:
    """Read the text of a schedule; raise InvalidDelivery if there is no such schedule.

    >>> parse_schedule("every 15 minutes")
    Every(minutes=15)
    >>> str(parse_schedule("daily at 09:00"))
    'daily at 09:00 UTC'
    """
    if not isinstance(text, str):
        raise InvalidDelivery(f"the schedule {text!r} is not a text; expected {_FORMS}")
    if text == "immediate":
        return IMMEDIATE
    if found := _EVERY.fullmatch(text):
        return _parse_every(text, int(found[1] or 1), found[2])
    if found := _DAILY.fullmatch(text):
        hour, minute = int(found[1]), int(found[2])
        if hour > 23 or minute > 59:
            raise InvalidDelivery(f"schedule {text!r}: expected a time from 00:00 to 23:59")
        return Daily(hour * 60 + minute, find_zone(found[3] or "UTC"))
    raise InvalidDelivery(f"the schedule {text!r} is not known; expected {_FORMS}")


@lru_cache(maxsize=1024)
def find_zone(name: str) -> tzinfo:
    """The time zone of that name, as the IANA database spells it."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        close = get_close_matches(name, sorted(available_timezones()), 1)
        hint = f"did you mean {close[0]!r}?" if close else "expected a name like 'Europe/Berlin'"
        raise InvalidDelivery(f"there is no time zone {name!r}; {hint}") from None


def _parse_every(text: str, count: int, unit: str) -> Every:
    minutes = count * (60 if unit == "hour" else 1)
    if not 1 <= minutes <= LONGEST_MINUTES:
        raise InvalidDelivery(f"schedule {text!r}: expected from 1 minute to 168 hours (7 days)")
    return Every(minutes)


def _microseconds(times: Times) -> Times:
    return np.asarray(times).astype("M8[us]")


@lru_cache(maxsize=65_536)
def _instant(schedule: Daily, day: int) -> int:
    """The first instant at which the zone's clocks show the time of that date, or a later one."""
    zone = schedule.zone
    midnight = datetime.combine(_DAY_0 + timedelta(day), datetime.min.time())
    wanted = midnight + timedelta(minutes=schedule.minute_of_day)
    before, after = (_offset_s(wanted.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    wall_s = day * 86_400 + schedule.minute_of_day * 60
    late = wall_s - before
    if before >= after:  # shown once, or twice; `before` is the offset of the first time
        return late * 1_000_000
    early = wall_s - after  # jumped over: the jump is after `early` and not after `late`
    while late - early > 1:
        middle = (early + late) // 2
        shown = middle + _offset_s(datetime.fromtimestamp(middle, zone))
        early, late = (early, middle) if shown >= wall_s else (middle, late)
    return late * 1_000_000


def _offset_s(moment: datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None
    return round(offset.total_seconds())
