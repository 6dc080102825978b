"""The stages of a walk: from which moment to which, in words, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True, slots=True)
class Stage:
    """What lies between two moments."""

    name: str
    begin: str
    end: str
    where: str
    words: str


EVENT_STAGES = (
    Stage("answer", "asked", "answered", "service", "parsed, checked, written and synced"),
    Stage(
        "show",
        "answered",
        "visible",
        "service",
        "its file is shown; below 0: before that",
    ),
    Stage("wait", "visible", "matching", "pipeline", "waits for the next micro-batch of matching"),
    Stage("match", "matching", "matched", "pipeline", "read, matched, written to the match log"),
    Stage("notify", "matched", "notified", "pipeline", "grouped, ordered, put into the outbox"),
    Stage("fan out", "notified", "fanned_out", "sender", "waits for the sender; one per address"),
    Stage("claim", "fanned_out", "begun", "sender", "leased and read"),
    Stage("send", "begun", "told", "sender", "written, signed, sent, received"),
)
EVENT_WHOLE = Stage("whole", "asked", "told", "", "from the request to the webhook")
SUBSCRIPTION_STAGES = (
    Stage("answer", "asked", "answered", "service", "parsed, checked, saved, written to the log"),
    Stage("live index", "answered", "live", "service", "a match over HTTP that finds it"),
    Stage("version", "answered", "version", "pipeline", "in the version the next batch is given"),
)


def durations(
    moments: Sequence[Mapping[str, float]], stages: Sequence[Stage]
) -> dict[str, dict[str, Any]]:
    """Milliseconds of each stage: median, p90 and the longest.

    >>> durations([{"asked": 1.0, "answered": 1.5}], SUBSCRIPTION_STAGES[:1])
    {'answer': {'median_ms': 500.0, 'p90_ms': 500.0, 'most_ms': 500.0, 'n': 1}}
    """
    found = {}
    for stage in stages:
        held = [
            1e3 * (one[stage.end] - one[stage.begin])
            for one in moments
            if stage.begin in one and stage.end in one
        ]
        if held:
            p90 = quantiles(held, n=10)[8] if len(held) > 1 else held[0]
            found[stage.name] = {
                "median_ms": round(median(held), 1),
                "p90_ms": round(p90, 1),
                "most_ms": round(max(held), 1),
                "n": len(held),
            }
    return found
