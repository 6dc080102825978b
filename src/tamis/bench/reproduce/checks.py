"""Checks: what of a paper's claim holds, from the numbers of a figure.

Absolute times are of other machines and languages; what is checked are the parts of a claim:

- order: who is below whom, by a tenth at least;
- factor: by how much, at least half of what the paper says;
- trend: whether a line rises or falls, by a fifth at least, or is nearly flat, within a half;
- size: a share, a limit, or that two are about equal.

What differs by less than a tenth is the same, and whether a difference that small is there cannot
be told. A claim holds if all its parts do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import fmean
from typing import Protocol

import numpy as np

from tamis.bench.reproduce.verdicts import Aspect, Judged, Part, Verdict

Data = Mapping[str, Mapping[float, float]]
"""The numbers of a figure: of each line, by its key, the value at each point."""

NOISE = 1.1  # smaller factors may be chance
ENOUGH = 0.5  # of the paper's factor
RISE, FLATNESS = 1.2, 1.5  # from the first to the last point
NO_GAP = 0.01  # between two lines: none that could close


class Check(Protocol):
    """Something that must be so for a claim to hold."""

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """Whether it is so."""


@dataclass(frozen=True, slots=True)
class Less:
    """A line takes less than another, on average over the points, by the paper's factor if any.

    >>> check = Less("gem", "rein", 4.0)
    >>> judged = check.judge({"gem": {1: 2.0}, "rein": {1: 3.0}}, {"gem": "GEM", "rein": "REIN"})
    >>> judged.found
    'REIN / GEM is 1.50 here, 4.0 in the paper'
    >>> [(part.aspect.value, part.verdict.value) for part in judged.parts]
    [('order', 'holds'), ('factor', 'does not hold')]
    """

    line: str
    than: str
    factor: float | None = None
    at: float | None = None  # one point, if not all
    is_last: bool = False  # the largest point that both have, if not all
    of: str = ""  # what is compared, if the figure shows several things

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the geometric mean of the ratios."""
        what = _compared(labels[self.than], labels[self.line], self.of)
        at = _last_shared(data, self.than, self.line) if self.is_last else self.at
        ratio = _ratio(data, self.than, self.line, at)
        aspects = (Aspect.ORDER,) if self.factor is None else (Aspect.ORDER, Aspect.FACTOR)
        if ratio is None:
            parts = tuple(Part(aspect, Verdict.UNKNOWN) for aspect in aspects)
            return Judged(parts, f"{what} was not measured")
        where = f" at {at:,.10g}" if self.is_last else ""
        paper = "above 1 by" if self.factor is None else f"{_spell(self.factor)} in"
        verdicts = (_order(ratio), self._size(ratio))
        parts = tuple(map(Part, aspects, verdicts))
        return Judged(parts, f"{what} is {_spell(ratio)}{where} here, {paper} the paper")

    def _size(self, ratio: float) -> Verdict:
        is_enough = ratio >= ENOUGH * (self.factor or 0.0)
        return _order(ratio) if is_enough else Verdict.FAILS


@dataclass(frozen=True, slots=True)
class On:
    """A check on another metric of the figure than its first."""

    metric: int
    check: Check

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """As the check does, on the data of that metric."""
        return self.check.judge(data, labels)


@dataclass(frozen=True, slots=True)
class Against:
    """A check on how many times as much a line takes as in the experiment beside the figure."""

    check: Check

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """As the check does, on those quotients."""
        judged = self.check.judge(data, labels)
        return Judged(judged.parts, f"times as much: {judged.found}")


@dataclass(frozen=True, slots=True)
class Grown:
    """A line has numbers above 1, on average: to be asked of quotients."""

    line: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By their geometric mean."""
        held = [y for y in data.get(self.line, {}).values() if y > 0]
        if not held:
            return _ordered(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        ratio = math.exp(fmean(map(math.log, held)))
        found = f"{labels[self.line]} {_spell(ratio)} here, above 1 by the paper"
        return _ordered(_order(ratio), found)


@dataclass(frozen=True, slots=True)
class Closes:
    """Two lines come closer to each other from their first point to their last."""

    line: str
    other: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By how far the quotient of the two is from 1."""
        shared = sorted(data.get(self.line, {}).keys() & data.get(self.other, {}).keys())
        what = f"{labels[self.other]} / {labels[self.line]}"
        if len(shared) < 2:
            return _trend(Verdict.UNKNOWN, f"{what} has fewer than two points")
        first, last = (data[self.other][x] / data[self.line][x] for x in (shared[0], shared[-1]))
        found = f"{what} goes from {first:.3f} to {last:.3f}; by the paper the gap closes"
        if max(abs(first - 1), abs(last - 1)) < NO_GAP:
            return _trend(Verdict.UNKNOWN, found)
        return _trend(_so(abs(math.log(last)) < abs(math.log(first))), found)


@dataclass(frozen=True, slots=True)
class About:
    """Two lines take about the same, neither more than ``most`` times the other (and the noise)."""

    line: str
    other: str
    most: float
    at: float | None = None  # one point, if not all
    since: float = -math.inf  # points before do not count
    of: str = ""  # what is compared, if the figure shows several things

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the geometric mean of the ratios."""
        what = _compared(labels[self.other], labels[self.line], self.of)
        ratio = _ratio(data, self.other, self.line, self.at, self.since)
        if ratio is None:
            return _size(Verdict.UNKNOWN, f"{what} was not measured")
        found = f"{what} is {_spell(ratio)} here, at most {_spell(self.most)} by the paper"
        is_so = 1 / (self.most * NOISE) <= ratio <= self.most * NOISE
        return _size(_so(is_so), found)


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
            return _ordered(Verdict.UNKNOWN, f"{labels[self.line]} was not measured with others")
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
            return _ordered(Verdict.FAILS, f"lower than {labels[self.line]}: {who}")
        if n_close:
            found = f"{labels[self.line]} and another are within a tenth somewhere"
            return _ordered(Verdict.UNKNOWN, found)
        return _ordered(Verdict.HOLDS, f"{labels[self.line]} is the lowest at every point")


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
    least: float = RISE  # a rise is one by so much

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the last point against the first."""
        held = {x: y for x, y in data.get(self.line, {}).items() if x >= self.since}
        if len(held) < 2:
            return _trend(Verdict.UNKNOWN, f"{labels[self.line]} has fewer than two points")
        first, last = min(held), max(held)
        if held[first] <= 0:
            return _trend(Verdict.UNKNOWN, f"{labels[self.line]} begins at 0")
        growth = held[last] / held[first]
        found = (
            f"{labels[self.line]}: × {growth:.3g} from its first to its last point; by the paper "
            f"it {self.way.value}"
        )
        if self.least > RISE:
            found += f", × {self.least:g} at least"
        is_so = {
            Way.RISES: growth >= self.least,
            Way.FALLS: growth <= 1 / RISE,
            Way.FLAT: 1 / FLATNESS <= growth <= FLATNESS,
        }[self.way]
        if not is_so and self.way is not Way.FLAT and 1 / RISE < growth < RISE:
            return _trend(Verdict.UNKNOWN, found)
        return _trend(_so(is_so), found)


@dataclass(frozen=True, slots=True)
class Ascends:
    """A line goes up from point to point, however little: its rank correlation is 0.9 or more."""

    line: str

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the correlation of the ranks."""
        held = data.get(self.line, {})
        if len(held) < 3:
            return _trend(Verdict.UNKNOWN, f"{labels[self.line]} has fewer than three points")
        values = [held[x] for x in sorted(held)]
        ranks = np.argsort(np.argsort(values))
        correlation = float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
        growth = values[-1] / values[0] if values[0] > 0 else math.inf
        found = f"{labels[self.line]}: rank correlation {correlation:.2f}, × {growth:.3g} in all"
        if correlation >= 0.9:
            return _trend(Verdict.HOLDS, found)
        return _trend(Verdict.UNKNOWN if correlation > 0.5 else Verdict.FAILS, found)


@dataclass(frozen=True, slots=True)
class Power:
    """A line grows as a power of what is varied, the exponent between two numbers."""

    line: str
    least: float
    most: float
    of: str = ""  # what grows, if the figure shows several things

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By a straight line through the logarithms."""
        held = {x: y for x, y in data.get(self.line, {}).items() if x > 0 and y > 0}
        what = f"{self.of}: {labels[self.line]}" if self.of else labels[self.line]
        if len(held) < 2:
            return _trend(Verdict.UNKNOWN, f"{what} has fewer than two points")
        exponent = float(np.polyfit(np.log(list(held)), np.log(list(held.values())), 1)[0])
        found = (
            f"{what} grows with the power {exponent:.2f}; by the paper "
            f"{self.least:g} to {self.most:g}"
        )
        is_so = self.least <= exponent <= self.most
        return _trend(_so(is_so), found)


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
            return _size(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        highest = max(held.values())
        found = (
            f"{labels[self.line]}: {highest:,.3g} {self.unit} at most, {self.number:,.10g} claimed"
        )
        return _size(_so(highest <= self.number), found)


@dataclass(frozen=True, slots=True)
class Share:
    """At one line, one point is so much of another; ``within`` so much more or less it holds.

    For figures whose points are different metrics of one setting.
    """

    line: str
    part: float
    whole: float
    share: float
    words: str
    within: float = 0.15

    def judge(self, data: Data, labels: Mapping[str, str]) -> Judged:
        """By the quotient."""
        held = data.get(self.line, {})
        if self.part not in held or not held.get(self.whole):
            return _size(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        share = held[self.part] / held[self.whole]
        found = (
            f"{labels[self.line]}: {self.words} is {share:.1%} here, {self.share:.1%} in the paper"
        )
        is_so = abs(share - self.share) <= self.within
        return _size(_so(is_so), found)


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
            return _ordered(Verdict.UNKNOWN, f"{labels[self.line]} was not measured")
        ratio = held[self.part] / held[self.whole]
        found = f"{labels[self.line]}: {self.words} is {ratio:.2f} here, below 1 by the paper"
        return _ordered(_order(1 / ratio), found)


def _compared(above: str, below: str, of: str) -> str:
    return f"{of}: {above} / {below}" if of else f"{above} / {below}"


def _order(ratio: float) -> Verdict:
    """Whether a ratio that should be above 1 is."""
    if 1 / NOISE <= ratio <= NOISE:
        return Verdict.UNKNOWN
    return _so(ratio > 1)


def _so(is_so: bool) -> Verdict:
    return Verdict.HOLDS if is_so else Verdict.FAILS


def _ordered(verdict: Verdict, found: str) -> Judged:
    return Judged((Part(Aspect.ORDER, verdict),), found)


def _trend(verdict: Verdict, found: str) -> Judged:
    return Judged((Part(Aspect.TREND, verdict),), found)


def _size(verdict: Verdict, found: str) -> Judged:
    return Judged((Part(Aspect.SIZE, verdict),), found)


def _last_shared(data: Data, above: str, below: str) -> float | None:
    return max(data.get(above, {}).keys() & data.get(below, {}).keys(), default=None)


def _ratio(
    data: Data, above: str, below: str, at: float | None, since: float = -math.inf
) -> float | None:
    """The geometric mean of the ratios of two lines over the points they share."""
    shared = data.get(above, {}).keys() & data.get(below, {}).keys()
    points = [x for x in shared if x >= since and (at is None or x == at)]
    pairs = [(data[above][x], data[below][x]) for x in points]
    logs = [math.log(a / b) for a, b in pairs if a > 0 and b > 0]
    return math.exp(fmean(logs)) if logs else None


def _spell(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 1.95 else f"{ratio:,.1f}" if ratio < 100 else f"{ratio:,.0f}"
