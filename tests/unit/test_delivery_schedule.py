"""Schedules: how they are spelled, and the instants they name, through changes of the clocks."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tamis.delivery import Daily, Every, Immediate, Schedule, parse_schedule
from tamis.errors import InvalidDelivery


def due(schedule: Schedule | str, time: str) -> str:
    held = parse_schedule(schedule) if isinstance(schedule, str) else schedule
    made = held.due(np.array([time], "M8[us]"))[0]
    return str(made.astype("M8[s]" if made.astype(np.int64) % 1_000_000 == 0 else "M8[us]"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("immediate", Immediate()),
        ("every minute", Every(1)),
        ("every 1 minute", Every(1)),
        ("every 15 minutes", Every(15)),
        ("every hour", Every(60)),
        ("every 168 hours", Every(10_080)),
        ("daily at 09:00", Daily(540, UTC)),
        ("daily at 00:00 UTC", Daily(0, UTC)),
        ("daily at 23:59 Asia/Tokyo", Daily(1439, ZoneInfo("Asia/Tokyo"))),
    ],
)
def test_spelling(text: str, expected: Schedule) -> None:
    assert parse_schedule(text) == expected
    assert parse_schedule(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hourly", "'hourly' is not known; expected 'immediate', 'every 15 minutes'"),
        ("", "is not known"),
        ("Immediate", "is not known"),
        ("every 0 minutes", "from 1 minute to 168 hours"),
        ("every 169 hours", "from 1 minute to 168 hours"),
        ("every -5 minutes", "is not known"),
        ("every 1.5 hours", "is not known"),
        ("every ١ minutes", "is not known"),
        ("daily at 9:00", "is not known"),
        ("daily at 24:00", "from 00:00 to 23:59"),
        ("daily at 12:60 UTC", "from 00:00 to 23:59"),
        ("daily at 09:00 Europe/Berlino", "did you mean 'Europe/Berlin'"),
        ("daily at 09:00 ../../etc/passwd", "there is no time zone"),
        ("daily at 09:00 Europe", "there is no time zone"),
        ("daily at 09:00 \x00", "there is no time zone"),
        (15, "15 is not a text"),
        (None, "None is not a text"),
    ],
)
def test_mistakes(text: object, complaint: str) -> None:
    with pytest.raises(InvalidDelivery, match=complaint):
        parse_schedule(text)


@pytest.mark.parametrize(
    ("schedule", "time", "expected"),
    [
        ("immediate", "2026-01-01T10:00:00.000001", "2026-01-01T10:00:00.000001"),
        ("every 15 minutes", "2026-01-01T10:00", "2026-01-01T10:00:00"),
        ("every 15 minutes", "2026-01-01T10:00:00.000001", "2026-01-01T10:15:00"),
        ("every 15 minutes", "1969-12-31T23:59:59", "1970-01-01T00:00:00"),
        ("every 7 minutes", "1970-01-01T00:07:01", "1970-01-01T00:14:00"),
        ("daily at 09:00", "2026-01-01T09:00", "2026-01-01T09:00:00"),
        ("daily at 09:00", "2026-01-01T09:00:00.000001", "2026-01-02T09:00:00"),
        ("daily at 09:00 Europe/Berlin", "2026-07-01T06:59", "2026-07-01T07:00:00"),
        # Berlin: 02:30 is jumped over on 29 March 2026, and shown twice on 25 October.
        ("daily at 02:30 Europe/Berlin", "2026-03-29T00:00", "2026-03-29T01:00:00"),
        ("daily at 03:00 Europe/Berlin", "2026-03-29T00:00", "2026-03-29T01:00:00"),
        ("daily at 02:30 Europe/Berlin", "2026-03-29T01:00:01", "2026-03-30T00:30:00"),
        ("daily at 02:30 Europe/Berlin", "2026-10-25T00:00", "2026-10-25T00:30:00"),
        ("daily at 02:30 Europe/Berlin", "2026-10-25T00:30:01", "2026-10-26T01:30:00"),
        # Lord Howe Island moves its clocks by half an hour.
        ("daily at 02:15 Australia/Lord_Howe", "2026-10-03T12:00", "2026-10-03T15:30:00"),
        # In Beirut the clocks jump from 00:00 to 01:00, in Havana they go back from 01:00 to 00:00.
        ("daily at 00:00 Asia/Beirut", "2026-03-28T12:00", "2026-03-28T22:00:00"),
        ("daily at 00:30 America/Havana", "2026-11-01T00:00", "2026-11-01T04:30:00"),
        # Samoa left out 30 December 2011: its digest comes at the jump, the next on the 31st.
        ("daily at 09:00 Pacific/Apia", "2011-12-29T19:00:01", "2011-12-30T10:00:00"),
        ("daily at 09:00 Pacific/Apia", "2011-12-30T10:00:01", "2011-12-30T19:00:00"),
        # Toronto jumped from 23:30 to 00:30 of the next day in 1919.
        ("daily at 23:45 America/Toronto", "1919-03-30T23:00", "1919-03-31T04:30:00"),
        ("daily at 00:15 America/Toronto", "1919-03-31T04:00", "1919-03-31T04:30:00"),
    ],
)
def test_instants(schedule: str, time: str, expected: str) -> None:
    assert due(schedule, time) == expected


def test_missing_times_stay_missing() -> None:
    times = np.array(["NaT", "2026-01-01T10:00:01"], "M8[us]")
    for text in ("immediate", "every hour", "daily at 09:00 Asia/Tokyo"):
        made = parse_schedule(text).due(times)
        assert np.isnat(made[0])
        assert not np.isnat(made[1])


def test_no_times() -> None:
    for text in ("immediate", "every hour", "daily at 09:00 Asia/Tokyo"):
        assert len(parse_schedule(text).due(np.array([], "M8[us]"))) == 0


def test_times_beyond_the_calendar_are_refused() -> None:
    for time in ("10000-01-01", "0001-01-01", "-0044-03-15"):
        with pytest.raises(InvalidDelivery, match="from the year 1 to 9999"):
            parse_schedule("daily at 09:00").due(np.array([time], "M8[us]"))


def test_the_given_times_are_not_changed() -> None:
    times = np.array(["2026-01-01T10:00:01"], "M8[us]")
    parse_schedule("immediate").due(times)[0] = np.datetime64("NaT")
    assert not np.isnat(times[0])


def test_a_year_of_days_has_one_instant_for_each_date() -> None:
    schedule = parse_schedule("daily at 02:30 America/New_York")
    hours = np.datetime64("2026-01-01T00", "h") + np.arange(365 * 24)
    assert len(np.unique(schedule.due(hours))) == 366  # one is after the last of the hours
