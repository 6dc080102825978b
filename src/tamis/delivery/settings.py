"""Delivery settings: how often a subscription is told, how much at once, and how many times."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.delivery.schedule import IMMEDIATE, Schedule, Times, parse_schedule
from tamis.errors import InvalidDelivery, quoted
from tamis.model import Subscription
from tamis.values import load_json

__all__ = [
    "LARGEST_DIGEST",
    "PIPELINE_SETTINGS",
    "RateCap",
    "Settings",
    "check_delivery",
    "due_times",
    "parse_settings",
    "settings_text",
    "told_to_pipeline",
]

LARGEST_DIGEST = 1_000
"""The most matches in one notification, also where the settings do not say."""

PIPELINE_SETTINGS = ("schedule", "max_digest", "rate_cap")
"""The settings that are read here; the others are the sender's."""

_CAP = re.compile(r"(\d{1,6}) per (?:(\d{1,6}) )?(minute|hour|day)s?", re.ASCII)
_UNIT_MINUTES = {"minute": 1, "hour": 60, "day": 24 * 60}
_LONGEST_CAP_MINUTES = 31 * 24 * 60


@dataclass(frozen=True, slots=True)
class RateCap:
    """At most ``count`` notifications in every window of ``minutes``, counted from 1970 UTC."""

    count: int
    minutes: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What the pipeline reads from ``Subscription.delivery``; the rest is the sender's."""

    schedule: Schedule = IMMEDIATE
    max_digest: int = LARGEST_DIGEST
    rate_cap: RateCap | None = None


def parse_settings(delivery: Mapping[str, Any] | str) -> Settings:
    """Read the delivery settings from a mapping, or from their JSON text ("" is none).

    >>> parse_settings({"schedule": "every hour", "rate_cap": "5 per day", "mail": "a@b.example"})
    Settings(schedule=Every(minutes=60), max_digest=1000, rate_cap=RateCap(count=5, minutes=1440))
    """
    if isinstance(delivery, str):
        return _parse_text(delivery)
    for name in delivery:
        _check_name(name)
    schedule = delivery.get("schedule")
    most = delivery.get("max_digest")
    cap = delivery.get("rate_cap")
    return Settings(
        IMMEDIATE if schedule is None else parse_schedule(schedule),
        LARGEST_DIGEST if most is None else _parse_max_digest(most),
        None if cap is None else _parse_rate_cap(cap),
    )


def check_delivery(subscription: Subscription) -> Settings:
    """Read the settings of a subscription; the error names it.

    To be called wherever subscriptions enter the pipeline, so that none with settings that
    cannot be read ever matches.
    """
    try:
        return parse_settings(subscription.delivery)
    except InvalidDelivery as error:
        raise InvalidDelivery(f"subscription {quoted(subscription.id)}: {error}") from None


def told_to_pipeline(delivery: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the pipeline reads, without those that only the sender needs.

    >>> told_to_pipeline({"schedule": "every hour", "mail": "a@b.example"})
    {'schedule': 'every hour'}
    """
    return {name: delivery[name] for name in PIPELINE_SETTINGS if name in delivery}


def settings_text(delivery: Mapping[str, Any]) -> str:
    """The settings as the JSON text that travels with a match; "" if there are none.

    >>> settings_text({"schedule": "every hour"})
    '{"schedule":"every hour"}'
    """
    if not delivery:
        return ""
    return json.dumps(delivery, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def due_times(texts: pa.Array | pa.ChunkedArray, times: Times | np.datetime64) -> Times:
    """When matches are due: one settings text and one time each, or one time for all of them.

    A text that is null is as one that is empty: due at once.

    >>> due_times(pa.array(["", '{"schedule":"every hour"}']), np.datetime64("2026-01-01T10:30"))
    array(['2026-01-01T10:30:00.000000', '2026-01-01T11:00:00.000000'],
          dtype='datetime64[us]')
    """
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    coded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy()
    moments = np.broadcast_to(np.asarray(times, "M8[us]"), len(texts))
    due = moments.copy()
    for code, text in enumerate(coded.dictionary.to_pylist()):
        chosen = codes == code
        due[chosen] = parse_settings(text).schedule.due(moments[chosen])
    return due


@lru_cache(maxsize=65_536)
def _parse_text(text: str) -> Settings:
    if not text:
        return Settings()
    try:
        held = load_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDelivery(f"the delivery settings are not JSON: {error}") from None
    if not isinstance(held, Mapping):
        raise InvalidDelivery(f"the delivery settings {quoted(text)} are not a JSON object")
    return parse_settings(held)


def _check_name(name: object) -> None:
    """Other names are the sender's, but a slip of the pen must not mean "immediate, no cap"."""
    if name not in PIPELINE_SETTINGS and (meant := _name_meant(str(name))):
        raise InvalidDelivery(
            f"the delivery setting {quoted(name)} is not known; expected {quoted(meant)}"
        )


@lru_cache(maxsize=1024)  # an import asks for the same few a million times
def _name_meant(name: str) -> str | None:
    return next(iter(get_close_matches(name, PIPELINE_SETTINGS, 1, 0.8)), None)


def _parse_max_digest(most: object) -> int:
    if isinstance(most, int) and not isinstance(most, bool) and 1 <= most <= LARGEST_DIGEST:
        return most
    raise InvalidDelivery(
        f"max_digest {quoted(most)} is not a whole number from 1 to {LARGEST_DIGEST}"
    )


def _parse_rate_cap(cap: object) -> RateCap:
    found = _CAP.fullmatch(cap) if isinstance(cap, str) else None
    if found:
        count = int(found[1])
        minutes = int(found[2] or 1) * _UNIT_MINUTES[found[3]]
        if count >= 1 and 1 <= minutes <= _LONGEST_CAP_MINUTES:
            return RateCap(count, minutes)
    raise InvalidDelivery(
        f"rate_cap {quoted(cap)}: expected at least '1 per 31 days', as in '5 per hour' or "
        "'10 per 15 minutes'"
    )
