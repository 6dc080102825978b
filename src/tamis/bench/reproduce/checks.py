"""Checks: what of a paper's claim holds, from the numbers of a figure.

Absolute times are of other machines and languages; what is checked are ratios, orders and
trends. A factor holds if ours is at least the square root of the paper's, half as much on a
logarithmic scale; a smaller one has the direction but not the size, and does not hold. What
differs by less than a tenth is the same; whether a difference that small holds cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean
from typing import Protocol

import numpy as np

Data = Mapping[str, Mapping[float, float]]
"""The numbers of a figure: of each line, by its key, the value at each point."""

NOISE = 1.1  # smaller factors may be chance


class Verdict(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and what was found, in words."""

    verdict: Verdict
    found: str


class Check(Protocol):
    """Something that must be so for a claim to hold."""

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """Whether it is so."""


def verdict_of(judged: Sequence[Judged]) -> Verdict:
    """A claim holds if all of it holds, and does not if some of it does not.

    >>> verdict_of([Judged(Verdict.HOLDS, ""), Judged(Verdict.UNKNOWN, "")]).value
    'cannot tell'
    """
    verdicts = {one.verdict for one in judged}
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.UNKNOWN


@dataclass(frozen=True, slots=True)
class Less:
    """A line takes less than another, on average over the points, by the paper's factor.

    >>> check = Less("gem", "rein", 4.0)
    >>> check.judge({"gem": {1: 2.0}, "rein": {1: 6.0}}, {"gem": "GEM", "rein": "REIN"}).found
    'REIN / GEM is 3.0 here, 4.0 in the paper'
    """

    line: str
    than: str
    factor: float
    at: float | None = None  # one point, if not all

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the geometric mean of the ratios."""
        what = f"{labels[self.than]} / {labels[self.line]}"
        ratio = _ratio(data, self.than, self.line, self.at)
        if ratio is None:
            return Judged(Verdict.UNKNOWN, f"{what} was not measured")
        found = f"{what} is {_spell(ratio)} here, {_spell(self.factor)} in the paper"
        if ratio >= math.sqrt(self.factor) and ratio > NOISE:
            return Judged(Verdict.HOLDS, found)
        if 1 / NOISE <= ratio <= NOISE:
            is_small = self.factor < NOISE**2
            return Judged(Verdict.UNKNOWN if is_small else Verdict.FAILS, f"{found}: no difference")
        wrong = "the direction, but not the size" if ratio > 1 else "the other way round"
        return Judged(Verdict.FAILS, f"{found}: {wrong}")


@dataclass(frozen=True, slots=True)
class On:
    """A check on another metric of the figure than its first."""

    metric: int
    check: Check

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """As the check does, on the data of that metric."""
        return self.check.judge(data, labels)


@dataclass(frozen=True, slots=True)
class About:
    """Two lines take about the same, neither more than ``most`` times the other (and the noise)."""

    line: str
    other: str
    most: float
    at: float | None = None  # one point, if not all

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the geometric mean of the ratios."""
        what = f"{labels[self.other]} / {labels[self.line]}"
        ratio = _ratio(data, self.other, self.line, self.at)
        if ratio is None:
            return Judged(Verdict.UNKNOWN, f"{what} was not measured")
        found = f"{what} is {_spell(ratio)} here, at most {_spell(self.most)} by the paper"
        is_so = 1 / (self.most * NOISE) <= ratio <= self.most * NOISE
        return Judged(Verdict.HOLDS if is_so else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class Lowest:
    """A line is below all the others at every point."""

    line: str
    others: tuple[str, ...]
    below: float = math.inf  # points from here on do not count

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """Who is below it, and where."""
        mine = {x: y for x, y in data.get(self.line, {}).items() if x < self.below}
        rivals = {key: data[key] for key in self.others if data.get(key)}
        if not mine or not rivals:
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} was not measured with others")
        lower: dict[str, int] = {}
        n_close = 0
        for x, y in mine.items():
            for key, held in rivals.items():
                if x in held and held[x] * NOISE < y:
                    lower[key] = lower.get(key, 0) + 1
                elif x in held and held[x] < y * NOISE:
                    n_close += 1
        if lower:
            who = ", ".join(f"{labels[key]} (at {n} of {len(mine)})" for key, n in lower.items())
            return Judged(Verdict.FAILS, f"lower than {labels[self.line]}: {who}")
        if n_close:
            return Judged(
                Verdict.UNKNOWN, f"{labels[self.line]} and another are within a tenth somewhere"
            )
        return Judged(Verdict.HOLDS, f"{labels[self.line]} is the lowest at every point")


class Way(Enum):
    """How a line goes from its first to its last point."""

    RISES = "rises"
    FALLS = "falls"
    FLAT = "is nearly flat"


@dataclass(frozen=True, slots=True)
class Trend:
    """A line rises, falls or is nearly flat from its first to its last point.

    Nearly flat is a change by less than a half; a rise or a fall is one by a fifth at least.
    """

    line: str
    way: Way
    since: float = -math.inf  # points before do not count

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the last point against the first."""
        held = {x: y for x, y in data.get(self.line, {}).items() if x >= self.since}
        if len(held) < 2:
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} has fewer than two points")
        first, last = min(held), max(held)
        if held[first] <= 0:
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} begins at 0")
        growth = held[last] / held[first]
        found = (
            f"{labels[self.line]}: × {growth:.3g} from its first to its last point; by the paper "
            f"it {self.way.value}"
        )
        is_so = {
            Way.RISES: growth >= 1.2,
            Way.FALLS: growth <= 1 / 1.2,
            Way.FLAT: 1 / 1.5 <= growth <= 1.5,
        }[self.way]
        if not is_so and self.way is not Way.FLAT and 1 / 1.2 < growth < 1.2:
            return Judged(Verdict.UNKNOWN, found)
        return Judged(Verdict.HOLDS if is_so else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class Ascends:
    """A line goes up from point to point, however little: its rank correlation is 0.9 or more."""

    line: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the correlation of the ranks."""
        held = data.get(self.line, {})
        if len(held) < 3:
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} has fewer than three points")
        values = [held[x] for x in sorted(held)]
        ranks = np.argsort(np.argsort(values))
        correlation = float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
        growth = values[-1] / values[0] if values[0] > 0 else math.inf
        found = f"{labels[self.line]}: rank correlation {correlation:.2f}, × {growth:.3g} in all"
        if correlation >= 0.9:
            return Judged(Verdict.HOLDS, found)
        return Judged(Verdict.UNKNOWN if correlation > 0.5 else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class Power:
    """A line grows as a power of what is varied, the exponent between two numbers."""

    line: str
    least: float
    most: float

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By a straight line through the logarithms."""
        held = {x: y for x, y in data.get(self.line, {}).items() if x > 0 and y > 0}
        if len(held) < 2:
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} has fewer than two points")
        exponent = float(np.polyfit(np.log(list(held)), np.log(list(held.values())), 1)[0])
        found = (
            f"{labels[self.line]} grows with the power {exponent:.2f}; by the paper "
            f"{self.least:g} to {self.most:g}"
        )
        is_so = self.least <= exponent <= self.most
        return Judged(Verdict.HOLDS if is_so else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class AtMost:
    """A line stays below a number at every point."""

    line: str
    number: float
    unit: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By its highest point."""
        held = data.get(self.line, {})
        if not held:
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        highest = max(held.values())
        found = (
            f"{labels[self.line]}: {highest:,.3g} {self.unit} at most, {self.number:,.10g} claimed"
        )
        return Judged(Verdict.HOLDS if highest <= self.number else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class Share:
    """At one line, one point is so much of another; within 0.15 it holds.

    For figures whose points are different metrics of one setting.
    """

    line: str
    part: float
    whole: float
    share: float
    words: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the quotient."""
        held = data.get(self.line, {})
        if self.part not in held or not held.get(self.whole):
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        share = held[self.part] / held[self.whole]
        found = (
            f"{labels[self.line]}: {self.words} is {share:.1%} here, {self.share:.1%} in the paper"
        )
        is_so = abs(share - self.share) <= 0.15
        return Judged(Verdict.HOLDS if is_so else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class Below:
    """At one line, one point is below another."""

    line: str
    part: float
    whole: float
    words: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the quotient."""
        held = data.get(self.line, {})
        if self.part not in held or not held.get(self.whole):
            return Judged(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        ratio = held[self.part] / held[self.whole]
        found = f"{labels[self.line]}: {self.words}, {ratio:.3g} times"
        if 1 / NOISE <= ratio <= NOISE:
            return Judged(Verdict.UNKNOWN, found)
        return Judged(Verdict.HOLDS if ratio < 1 else Verdict.FAILS, found)


def _ratio(data: Data, above: str, below: str, at: float | None) -> float | None:
    """The geometric mean of the ratios of two lines over the points they share."""
    shared = data.get(above, {}).keys() & data.get(below, {}).keys()
    pairs = [(data[above][x], data[below][x]) for x in shared if at is None or x == at]
    logs = [math.log(a / b) for a, b in pairs if a > 0 and b > 0]
    return math.exp(fmean(logs)) if logs else None


def _spell(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 1.95 else f"{ratio:,.1f}" if ratio < 100 else f"{ratio:,.0f}"
