"""What can come of an attempt, and what a sender makes of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from tamis.service.sending.settings import SenderSettings
from tamis.storage.circuits import Verdict
from tamis.storage.deliveries import Claim, Result

_LONGEST_PROBLEM = 500


class Kind(Enum):
    """What came of an attempt."""

    SENT = "sent"
    FAILED = "failed"
    """The destination is not well, or not now: try again later."""
    REFUSED = "refused"
    """The destination is well, but does not want this: try again a few times."""
    HOPELESS = "hopeless"
    """It will never be taken, or must not be sent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt; ``retry_after`` is what the destination asked for."""

    kind: Kind
    problem: str | None = None
    status: int | None = None
    retry_after: timedelta | None = None
    blames_destination: bool = True


SENT = Outcome(Kind.SENT)


def failed(problem: str, status: int | None = None) -> Outcome:
    """The outcome of an attempt that may succeed later."""
    return Outcome(Kind.FAILED, problem, status)


def hopeless(problem: str, status: int | None = None) -> Outcome:
    """The outcome of an attempt that is not worth another."""
    return Outcome(Kind.HOPELESS, problem, status)


def backoff(attempt: int, settings: SenderSettings, chance: float) -> timedelta:
    """How long to wait after an attempt (1 is the first): longer each time, and never the same.

    >>> backoff(1, SenderSettings(), 1.0), backoff(3, SenderSettings(), 0.0)
    (datetime.timedelta(seconds=5), datetime.timedelta(seconds=22, microseconds=500000))
    """
    steps = min(attempt - 1, 60)
    longest = settings.longest_retry.total_seconds()
    full_s = min(settings.first_retry.total_seconds() * settings.retry_factor**steps, longest)
    return timedelta(seconds=full_s * (0.5 + chance / 2))


def result_of(
    claim: Claim,
    outcome: Outcome,
    settings: SenderSettings,
    *,
    at: datetime,
    now: datetime,
    took_ms: int,
) -> Result:
    """What a delivery becomes by an outcome."""
    state, next_at = _next(claim, outcome, settings, now)
    kind = "refused" if outcome.kind is Kind.HOPELESS else outcome.kind.value
    problem = outcome.problem and _as_line(outcome.problem)
    verdict = _verdict(outcome, settings, now)
    return Result(claim, state, next_at, problem, kind, outcome.status, at, took_ms, verdict)


def skipped(claim: Claim, why: str, now: datetime) -> Result:
    """A delivery that is not made, because its subscription does not want it any more."""
    return Result(claim, "skipped", now, why)


def _next(
    claim: Claim, outcome: Outcome, settings: SenderSettings, now: datetime
) -> tuple[str, datetime]:
    if outcome.kind is Kind.SENT:
        return "sent", now
    if outcome.kind is Kind.HOPELESS:
        return "dead", now
    refused = outcome.kind is Kind.REFUSED
    most = settings.max_attempts_refused if refused else settings.max_attempts
    wait = backoff(claim.row.attempts, settings, random.random())
    if outcome.retry_after is not None:
        wait = max(wait, min(outcome.retry_after, settings.longest_retry))
    next_at = now + wait
    if claim.row.attempts >= most or next_at >= datetime.fromisoformat(claim.row.expires_at):
        return "dead", now
    return "waiting", next_at


def _verdict(outcome: Outcome, settings: SenderSettings, now: datetime) -> Verdict | None:
    if outcome.kind is Kind.SENT or outcome.kind is Kind.REFUSED:
        return Verdict(is_well=True)
    if outcome.kind is Kind.HOPELESS or not outcome.blames_destination:
        return None
    longest = settings.circuit_longest_rest
    asked = outcome.retry_after
    return Verdict(
        is_well=False,
        threshold=settings.circuit_failures,
        rest=settings.circuit_rest,
        longest=longest,
        until=None if asked is None else now + min(asked, longest),
    )


def _as_line(text: str) -> str:
    """A problem as it is kept: one line, of bounded length, without what steers a terminal."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(line.split())[:_LONGEST_PROBLEM]
