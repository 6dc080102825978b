"""Outlines: what many subscriptions with a place have in common, the numbers left out.

A subscription as a Python object takes some two kilobytes. Of one that is found by its place the
radius and most ranges stand in the arrays of ``movers`` anyway, so an outline is all that is kept
beside them, and the subscription is made again for those who ask.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

from tamis.index.ranges import Ranges
from tamis.language import Filter, parse_filter, to_json
from tamis.language.tree import And, InRange, all_of
from tamis.values import Range, load_json

Bounds = tuple[float, float]


class Outline(NamedTuple):
    """A filter without its numbers, where it is a conjunction of ranges; otherwise as JSON."""

    names: tuple[str, ...]  # the attributes of the ranges, in their order
    ends: tuple[str, ...]  # whether they are open or closed
    spelt: str = ""  # the JSON of a filter that is not such ranges

    def filter(self, bounds: Mapping[str, Bounds]) -> Filter:
        """The filter, with the closed bounds of its attributes."""
        if self.spelt:
            return parse_filter(load_json(self.spelt))
        return all_of(
            [
                InRange(name, _range(*bounds[name], ends))
                for name, ends in zip(self.names, self.ends, strict=True)
            ]
        )


def outline_of(filter: Filter, ranges: Ranges | None) -> Outline:
    """The outline of a filter; ``ranges``: what it is, if it is nothing else."""
    if ranges is not None and _is_restored(filter):
        return Outline(ranges.attributes, tuple(ranges.ends))
    return Outline((), (), json.dumps(to_json(filter), ensure_ascii=False))


def _is_restored(filter: Filter) -> bool:
    """Whether ranges can be told from their closed bounds: an open end at -0.0 cannot."""
    parts = filter.parts if isinstance(filter, And) else (filter,)
    return not any(
        side == 0 and end in "()" and math.copysign(1.0, side) < 0
        for part in parts
        if isinstance(part, InRange)
        for side, end in zip((part.range.low, part.range.high), part.range.ends, strict=True)
        if isinstance(side, float)
    )


def _range(low: float, high: float, ends: str) -> Range:
    """The range whose closed bounds these are; see ``ranges.ranges_of``."""
    if ends[0] == "(":
        low = math.nextafter(low, -math.inf) + 0.0
    if ends[1] == ")":
        high = math.nextafter(high, math.inf) + 0.0  # which is -0.0 of the number before it
    return Range(low, high, ends)
