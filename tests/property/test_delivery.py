"""Due times and rate caps against slow, obvious references."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis.delivery import apply_caps, empty_ledger, notification_id, parse_schedule
from tamis.delivery.notification import NOTIFICATION_SCHEMA

ZONES = [
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia",
    "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Kiritimati", "America/Havana",
    "Antarctica/Troll", "Asia/Tehran", "America/Goose_Bay", "Africa/Monrovia", "UTC",
]  # fmt: skip
EPOCH = datetime(1970, 1, 1)
MINUTE_US = 60_000_000


def changes_of(zone: str) -> list[int]:
    """The hours since 1970 during which the clocks of a zone change."""
    info = ZoneInfo(zone)
    hours = range(0, 60 * 366 * 24)
    shown = [datetime.fromtimestamp(h * 3600, info).utcoffset() for h in hours[:: 24 * 7]]
    weeks = [n for n in range(1, len(shown)) if shown[n] != shown[n - 1]]
    found = []
    for week in weeks:
        for hour in range((week - 1) * 168, week * 168):
            edges = (datetime.fromtimestamp(h * 3600, info).utcoffset() for h in (hour, hour + 1))
            if len(set(edges)) == 2:
                found.append(hour)
    return found


CHANGES = {zone: changes_of(zone) for zone in ZONES}


@st.composite
def zones_and_times(draw: st.DrawFn) -> tuple[str, int]:
    """A zone and a second, most often within a day of a change of its clocks."""
    zone = draw(st.sampled_from(ZONES))
    if CHANGES[zone] and draw(st.booleans()):
        hour = draw(st.sampled_from(CHANGES[zone]))
        return zone, hour * 3600 + draw(st.integers(-30 * 3600, 30 * 3600))
    return zone, draw(st.integers(0, 2**31))


def first_instant(zone: str, minute_of_day: int, time_s: int) -> int:
    """Walk on second by second, coarse steps first, until the clocks reach the time of a date.

    An instant of the schedule is one before which the clocks never showed the wanted time of some
    date or a later one. The latest time shown so far is enough to know.
    """
    info = ZoneInfo(zone)

    def shown(second: int) -> datetime:
        return datetime.fromtimestamp(second, info).replace(tzinfo=None)

    # Nothing before three days ago can show a later time than the day before yesterday does.
    latest = max(shown(time_s - 3 * 86_400 + m * 60) for m in range(3 * 1440))
    latest = max([latest, *(shown(s) for s in range(time_s - 60, time_s))])
    day = latest.replace(hour=0, minute=0, second=0, microsecond=0)
    wanted = day + timedelta(minutes=minute_of_day)
    if wanted <= latest:
        wanted += timedelta(days=1)
    second = time_s
    while shown(second) < wanted:  # a minute at a time, back one minute, then by the second
        second += 60
    second = max(time_s, second - 60)
    while shown(second) < wanted:
        second += 1
    return second


@given(zones_and_times(), st.integers(0, 1439))
def test_daily_is_the_first_moment_the_clocks_reach_the_time(
    where: tuple[str, int], minute_of_day: int
) -> None:
    zone, time_s = where
    text = f"daily at {minute_of_day // 60:02}:{minute_of_day % 60:02} {zone}"
    due = parse_schedule(text).due(np.array([time_s], "M8[s]"))
    assert due.astype("M8[s]").astype(int)[0] == first_instant(zone, minute_of_day, time_s)


@given(st.integers(1, 10_080), st.lists(st.integers(-(10**15), 4 * 10**15)))
def test_every_is_the_first_multiple(minutes: int, times: list[int]) -> None:
    due = parse_schedule(f"every {minutes} minutes").due(np.array(times, "M8[us]"))
    for time, found in zip(times, due.astype(int).tolist(), strict=True):
        assert found % (minutes * MINUTE_US) == 0
        assert time <= found < time + minutes * MINUTE_US


def notification(subscription: str, due_us: int, part: int, size: int, cap: str) -> dict[str, Any]:
    due = EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=due_us)
    one = {"priority": 5, "event_time": due, "event_id": "e", "matched_at": due, "payload": None}
    return {
        "id": notification_id(subscription, due_us, part), "subscription_id": subscription,
        "owner": "o", "priority": 5, "due": due, "part": part, "parts": 9, "total": size,
        "n_matches": size, "held_back": 0, "delivery": f'{{"rate_cap":"{cap}"}}',
        "matches": [one] * size,
    }  # fmt: skip


class Reference:
    """Rate caps one notification at a time."""

    def __init__(self, caps: dict[str, tuple[int, int]]) -> None:
        self.caps = caps
        self.told: dict[tuple[str, int], int] = {}
        self.held: dict[str, int] = {}
        self.window: dict[str, int] = {}

    def step(
        self, rows: list[tuple[int, str, int, int]], now_us: int
    ) -> list[tuple[str, int, int, int]]:
        """Rows are (due, subscription, part, size); what is told has the count held back."""
        out = []
        for due, subscription, part, size in sorted(rows):
            count, period = self.caps[subscription]
            window = due // period
            self.window[subscription] = window
            if self.told.get((subscription, window), 0) < count:
                self.told[subscription, window] = self.told.get((subscription, window), 0) + 1
                out.append((subscription, due, part, self.held.pop(subscription, 0)))
            else:
                self.held[subscription] = self.held.get(subscription, 0) + size
        for subscription in list(self.held):
            period = self.caps[subscription][1]
            end = (self.window[subscription] + 2) * period
            if end <= now_us:
                out.append((subscription, end - 1000, 0, self.held.pop(subscription)))
        return sorted(out)


@st.composite
def batches(draw: st.DrawFn) -> tuple[dict[str, tuple[int, int]], list[Any]]:
    names = draw(st.lists(st.sampled_from("abcdé"), min_size=1, unique=True))
    caps = {name: (draw(st.integers(1, 3)), draw(st.integers(1, 3)) * MINUTE_US) for name in names}
    steps = []
    now = 0
    for _ in range(draw(st.integers(1, 8))):
        before, now = now, now + draw(st.integers(1, 3 * MINUTE_US // 1000)) * 1000
        found = draw(
            st.lists(
                st.tuples(
                    st.integers(before + 1, now), st.sampled_from(names), st.integers(1, 3),
                    st.integers(1, 4),
                ),
                unique_by=lambda row: row[:3],
            )
        )  # fmt: skip
        steps.append((found, now))
    return caps, steps


@given(batches())
def test_caps_hold_and_nothing_goes_uncounted(given_batches: tuple[Any, Any]) -> None:
    caps, steps = given_batches
    texts = {name: f"{n} per {period // MINUTE_US} minutes" for name, (n, period) in caps.items()}
    reference, ledger = Reference(caps), empty_ledger()
    n_given = n_told = 0
    for rows, now in steps:
        table = pa.Table.from_pylist(
            [notification(name, due, part, size, texts[name]) for due, name, part, size in rows],
            NOTIFICATION_SCHEMA,
        )
        told, ledger = apply_caps(table, ledger, now)
        due_us = told["due"].cast(pa.int64()).to_pylist()
        columns = (told[name].to_pylist() for name in ("subscription_id", "part", "held_back"))
        found = [
            (name, due, part, held) for due, name, part, held in zip(due_us, *columns, strict=True)
        ]
        assert sorted(found) == reference.step(rows, now)
        n_given += sum(size for *_, size in rows)
        n_told += sum(len(one["matches"]) + one["held_back"] for one in told.to_pylist())
        assert n_told + sum(ledger["held"].to_pylist()) == n_given
