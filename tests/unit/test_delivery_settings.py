"""Delivery settings: what is read from them, what is refused, and the times that follow."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Subscription
from tamis.delivery import (
    LARGEST_DIGEST,
    Every,
    Immediate,
    RateCap,
    Settings,
    check_delivery,
    due_times,
    notification_id,
    parse_settings,
    settings_text,
)
from tamis.errors import InvalidDelivery, InvalidSubscription


@pytest.mark.parametrize(
    ("delivery", "expected"),
    [
        ({}, Settings()),
        ({"webhook": "https://a.example", "retries": 3}, Settings()),
        ({"schedule": "every hour"}, Settings(Every(60))),
        ({"schedule": None, "max_digest": None, "rate_cap": None}, Settings()),
        ({"max_digest": 1}, Settings(max_digest=1)),
        ({"max_digest": LARGEST_DIGEST}, Settings(max_digest=LARGEST_DIGEST)),
        ({"rate_cap": "5 per hour"}, Settings(rate_cap=RateCap(5, 60))),
        ({"rate_cap": "1 per 31 days"}, Settings(rate_cap=RateCap(1, 44_640))),
        ({"rate_cap": "10 per 15 minutes"}, Settings(rate_cap=RateCap(10, 15))),
    ],
)
def test_settings_are_read_from_mappings_and_text(
    delivery: dict[str, Any], expected: Settings
) -> None:
    assert parse_settings(delivery) == expected
    assert parse_settings(settings_text(delivery)) == expected
    assert parse_settings(json.dumps(delivery)) == expected
    assert check_delivery(Subscription("s", "x = 1", delivery=delivery)) == expected


@pytest.mark.parametrize(
    ("delivery", "complaint"),
    [
        ({"schedule": "weekly"}, "the schedule 'weekly' is not known"),
        ({"schedul": "every hour"}, "'schedul' is not known; expected 'schedule'"),
        ({"rate_caps": "5 per hour"}, "expected 'rate_cap'"),
        ({"max_digest": 0}, "max_digest 0 is not a whole number from 1 to 1000"),
        ({"max_digest": LARGEST_DIGEST + 1}, "max_digest 1001"),
        ({"max_digest": True}, "max_digest True"),
        ({"max_digest": "10"}, "max_digest '10'"),
        ({"max_digest": 2.0}, "max_digest 2.0"),
        ({"rate_cap": "0 per hour"}, "rate_cap '0 per hour'"),
        ({"rate_cap": "5 per 0 hours"}, "rate_cap '5 per 0 hours'"),
        ({"rate_cap": "5 per 32 days"}, "expected at least '1 per 31 days'"),
        ({"rate_cap": "5/hour"}, "as in '5 per hour'"),
        ({"rate_cap": 5}, "rate_cap 5"),
    ],
)
def test_mistakes_name_the_subscription(delivery: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidDelivery, match=complaint):
        parse_settings(settings_text(delivery))
    with pytest.raises(InvalidSubscription, match=f"subscription 's1': .*{complaint}"):
        check_delivery(Subscription("s1", "x = 1", delivery=delivery))


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"max_digest":1,"max_digest":2}', "[" * 100_000])
def test_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidDelivery, match="the delivery settings"):
        parse_settings(text)


def test_text_is_the_same_for_equal_settings() -> None:
    assert settings_text({"b": "ü", "a": 1}) == settings_text({"a": 1, "b": "ü"})
    assert settings_text({"b": "ü", "a": 1}) == '{"a":1,"b":"ü"}'
    assert settings_text({}) == ""


HOURLY = '{"schedule":"every hour"}'


@pytest.mark.parametrize("kind", ["plain", "dictionary", "chunked"])
def test_due_times_of_mixed_settings(kind: str) -> None:
    texts = pa.array([HOURLY, "", HOURLY, '{"schedule":"daily at 09:00 Asia/Tokyo"}', None])
    given = {
        "plain": texts,
        "dictionary": texts.dictionary_encode(),
        "chunked": pa.chunked_array([texts[:1], texts[1:]]),
    }[kind]
    day = "2026-01-01T"
    times = np.array([day + "10:30", day + "10:31", "NaT", day + "00:00", day + "00:01"], "M8[us]")
    expected = [day + "11:00", day + "10:31", "NaT", day + "00:00", day + "00:01"]
    assert np.array_equal(due_times(given, times), np.array(expected, "M8[us]"), equal_nan=True)


def test_due_times_of_nothing() -> None:
    assert len(due_times(pa.array([], pa.string()), np.datetime64("2026-01-01T00:00"))) == 0


def test_ids_differ_wherever_one_field_differs() -> None:
    parts = [("s1", 5, 1), ("s1", 5, 2), ("s1", 51, 1), ("1/s1", 5, 1), ("s2", 5, 1), ("", 5, 1)]
    assert len({notification_id(*one) for one in parts}) == len(parts)
    assert isinstance(parse_settings("").schedule, Immediate)
