"""Verdicts: what became of a claim, and of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    """What became of a claim or of a part of it."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot tell"


class Aspect(Enum):
    """What a part of a claim is about."""

    ORDER = "order"
    FACTOR = "factor"
    TREND = "trend"
    SIZE = "size"


class Part(NamedTuple):
    """What became of one part of a claim."""

    aspect: Aspect
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of the parts that a check looks at, and what was found, in words."""

    parts: tuple[Part, ...]
    found: str

    @property
    def verdict(self) -> Verdict:
        """What became of them together."""
        return together(part.verdict for part in self.parts)


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """All hold, some does not, or it cannot be told.

    >>> together([Verdict.HOLDS, Verdict.UNKNOWN]).value
    'cannot tell'
    """
    found = set(verdicts)
    if Verdict.FAILS in found:
        return Verdict.FAILS
    return Verdict.HOLDS if found == {Verdict.HOLDS} else Verdict.UNKNOWN


def verdict_of(judged: Sequence[Judged]) -> Verdict:
    """A claim holds if all of it holds, and does not if some of it does not."""
    return together(one.verdict for one in judged)
