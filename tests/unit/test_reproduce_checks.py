"""The checks of a paper's claims: what holds, what does not, what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.bench.reproduce.checks import (
    About,
    Against,
    Ascends,
    AtMost,
    Below,
    Check,
    Closes,
    Grown,
    Less,
    Lowest,
    Power,
    Share,
    Trend,
    Way,
)
from tamis.bench.reproduce.verdicts import Aspect, Judged, Part, Verdict, verdict_of

LABELS = {"a": "A", "b": "B"}
HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN


def line(*values: float) -> dict[float, float]:
    return {float(x): y for x, y in enumerate(values, start=1)}


@pytest.mark.parametrize(
    ("check", "data", "verdict"),
    [
        (Less("a", "b", 4.0), {"a": line(1, 2), "b": line(4, 9)}, HOLDS),
        (Less("a", "b", 4.0), {"a": line(1), "b": line(2.1)}, HOLDS),  # more than half
        (Less("a", "b", 4.0), {"a": line(1), "b": line(1.5)}, FAILS),  # too small a factor
        (Less("a", "b", 4.0), {"a": line(1), "b": line(0.5)}, FAILS),  # the other way round
        (Less("a", "b", 4.0), {"a": line(1), "b": line(1.05)}, FAILS),  # no difference
        (Less("a", "b", 1.1), {"a": line(1), "b": line(1.05)}, UNKNOWN),
        (Less("a", "b", 1.3), {"a": line(1), "b": line(0.8)}, FAILS),  # enough, but the wrong way
        (Less("a", "b"), {"a": line(1), "b": line(1.2)}, HOLDS),
        (Less("a", "b"), {"a": line(1), "b": line(0.8)}, FAILS),
        (Less("a", "b"), {"a": line(1), "b": line(1.05)}, UNKNOWN),
        (Less("a", "b", 4.0, is_last=True), {"a": line(1, 1, 9), "b": line(1, 5)}, HOLDS),
        (Less("a", "b", 4.0, is_last=True), {"a": line(1), "b": {}}, UNKNOWN),
        (Less("a", "b", 4.0), {"a": line(1), "b": {}}, UNKNOWN),
        (Less("a", "b", 4.0), {"a": line(0), "b": line(1)}, UNKNOWN),
        (Less("a", "b", 4.0, at=2), {"a": line(9, 1), "b": line(1, 5)}, HOLDS),
        (About("a", "b", 1.1), {"a": line(1), "b": line(1.15)}, HOLDS),
        (About("a", "b", 1.1), {"a": line(1), "b": line(1.5)}, FAILS),
        (About("a", "b", 1.1), {"a": line(1)}, UNKNOWN),
        (About("a", "b", 1.1, since=2), {"a": line(9, 1), "b": line(1, 1)}, HOLDS),
        (About("a", "b", 1.1, since=2), {"a": line(1, 9), "b": line(1, 1)}, FAILS),
        (Closes("a", "b"), {"a": line(2, 1), "b": line(3, 1.1)}, HOLDS),
        (Closes("a", "b"), {"a": line(2, 1), "b": line(1, 1.1)}, HOLDS),
        (Closes("a", "b"), {"a": line(1, 1), "b": line(1.1, 3)}, FAILS),
        (Closes("a", "b"), {"a": line(1, 1), "b": line(1.1)}, UNKNOWN),
        (Closes("a", "b"), {"a": line(1, 1), "b": line(1.001, 1.002)}, UNKNOWN),
        (Against(Grown("a")), {"a": line(1.5, 2)}, HOLDS),
        (Against(Grown("a")), {"a": line(0.5, 0.6)}, FAILS),
        (Against(Grown("a")), {"a": line(1.01)}, UNKNOWN),
        (Against(Grown("a")), {}, UNKNOWN),
        (Lowest("a", ("b",)), {"a": line(1, 1), "b": line(2, 2)}, HOLDS),
        (Lowest("a", ("b",)), {"a": line(1, 3), "b": line(2, 2)}, FAILS),
        (Lowest("a", ("b",)), {"a": line(1, 2), "b": line(2, 2.1)}, UNKNOWN),
        (Lowest("a", ("b",), below=2), {"a": line(1, 3), "b": line(2, 2)}, HOLDS),
        (Lowest("a", ("b",)), {"a": line(1, 3)}, UNKNOWN),
        (Trend("a", Way.RISES), {"a": line(1, 2)}, HOLDS),
        (Trend("a", Way.RISES), {"a": line(2, 1)}, FAILS),
        (Trend("a", Way.RISES), {"a": line(1, 1.1)}, UNKNOWN),
        (Trend("a", Way.RISES, least=10), {"a": line(1, 5)}, FAILS),
        (Trend("a", Way.RISES, least=10), {"a": line(1, 15)}, HOLDS),
        (Trend("a", Way.FALLS), {"a": line(2, 1)}, HOLDS),
        (Trend("a", Way.FALLS), {"a": line(1, 2)}, FAILS),
        (Trend("a", Way.FLAT), {"a": line(1, 1.4)}, HOLDS),
        (Trend("a", Way.FLAT), {"a": line(1, 1.6)}, FAILS),
        (Trend("a", Way.FLAT, since=2), {"a": line(1, 5, 5)}, HOLDS),
        (Trend("a", Way.FLAT), {"a": line(1)}, UNKNOWN),
        (Trend("a", Way.RISES), {"a": line(0, 1)}, UNKNOWN),
        (Ascends("a"), {"a": line(1, 1.01, 1.02, 1.03)}, HOLDS),
        (Ascends("a"), {"a": line(4, 3, 2, 1)}, FAILS),
        (Ascends("a"), {"a": line(1, 3, 2, 4)}, UNKNOWN),
        (Ascends("a"), {"a": line(1, 3)}, UNKNOWN),
        (Power("a", 0.8, 1.2), {"a": line(1, 2, 3)}, HOLDS),
        (Power("a", 0.8, 1.2), {"a": line(1, 4, 9)}, FAILS),
        (Power("a", 0.8, 1.2), {"a": line(1)}, UNKNOWN),
        (AtMost("a", 2.0, "ms"), {"a": line(1, 2)}, HOLDS),
        (AtMost("a", 2.0, "ms"), {"a": line(1, 3)}, FAILS),
        (AtMost("a", 2.0, "ms"), {}, UNKNOWN),
        (Share("a", 1, 2, 0.5, "part"), {"a": line(1, 2)}, HOLDS),
        (Share("a", 1, 2, 0.9, "part"), {"a": line(1, 2)}, FAILS),
        (Share("a", 1, 2, 0.45, "part", 0.01), {"a": line(1, 2)}, FAILS),
        (Share("a", 1, 3, 0.9, "part"), {"a": line(1, 2)}, UNKNOWN),
        (Below("a", 1, 2, "part"), {"a": line(1, 2)}, HOLDS),
        (Below("a", 2, 1, "part"), {"a": line(1, 2)}, FAILS),
        (Below("a", 2, 1, "part"), {"a": line(1, 1.05)}, UNKNOWN),
        (Below("a", 2, 1, "part"), {}, UNKNOWN),
    ],
)
def test_a_check(check: Check, data: Any, verdict: Verdict) -> None:
    judged = check.judge(data, LABELS)
    assert judged.verdict is verdict, judged.found
    assert "A" in judged.found


@pytest.mark.parametrize(
    ("check", "data", "parts"),
    [
        (Less("a", "b", 4.0), {"a": line(1), "b": line(1.5)}, {"order": HOLDS, "factor": FAILS}),
        (Less("a", "b", 4.0), {"a": line(1), "b": line(1.05)}, {"order": UNKNOWN, "factor": FAILS}),
        (Less("a", "b"), {"a": line(1), "b": line(1.5)}, {"order": HOLDS}),
        (Lowest("a", ("b",)), {"a": line(1), "b": line(2)}, {"order": HOLDS}),
        (Trend("a", Way.RISES), {"a": line(2, 1)}, {"trend": FAILS}),
        (About("a", "b", 1.1), {"a": line(1), "b": line(1)}, {"size": HOLDS}),
    ],
)
def test_the_parts_of_a_claim_are_told_apart(
    check: Check, data: Any, parts: dict[str, Verdict]
) -> None:
    found = check.judge(data, LABELS).parts
    assert {part.aspect.value: part.verdict for part in found} == parts


def test_a_claim_holds_if_all_of_it_does() -> None:
    def of(*verdicts: Verdict) -> Verdict:
        return verdict_of([Judged((Part(Aspect.ORDER, one),), "") for one in verdicts])

    assert of(HOLDS, HOLDS) is HOLDS
    assert of(HOLDS, FAILS, UNKNOWN) is FAILS
    assert of(HOLDS, UNKNOWN) is UNKNOWN
    assert of() is UNKNOWN
