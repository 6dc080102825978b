"""What is shown: a few subscriptions made for it, and one event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidEvent
from tamis.matching import Matcher, Table
from tamis.matching.table import Floats


@dataclass(frozen=True, slots=True)
class Subject:
    """Boxes over attributes with values from 0 to 1, and an event; made by a seed.

    >>> subject = Subject.of(100, 2, seed=1, event={"b": 0.5})
    >>> sorted(subject.event), subject.event["b"]
    (['a', 'b'], 0.5)
    """

    bounds: tuple[Floats, Floats]
    names: tuple[str, ...]
    event: dict[str, float]

    @classmethod
    def of(
        cls,
        n_subscriptions: int,
        n_attributes: int,
        seed: int,
        event: Mapping[str, Any],
        *,
        narrow: float = 1.0,
        free: Sequence[float] = (),
    ) -> Subject:
        """Boxes of different widths; an event with the values given, others where none is.

        A value of None leaves the attribute out of the event. Widths are multiplied by
        ``narrow``; ``free`` is the share of the boxes that each attribute leaves free.
        """
        names = tuple("abcdefghijklmnopqrstuvwxyz"[:n_attributes])
        unknown = [name for name in event if name not in names]
        if unknown:
            raise InvalidEvent(f"the event has {unknown[0]!r}; expected some of {', '.join(names)}")
        values = {name: _number(name, held) for name, held in event.items() if held is not None}
        random = np.random.default_rng(seed)
        wide = np.linspace(1.2, 2.0, n_attributes)  # some attributes tell more than others
        width = random.beta(wide, 2.0, (n_subscriptions, n_attributes)) * narrow
        low = random.random((n_subscriptions, n_attributes)) * (1 - width)
        drawn = dict(zip(names, random.uniform(0.15, 0.85, n_attributes).round(3), strict=True))
        for m, share in enumerate(free):
            low[random.random(n_subscriptions) < share, m] = np.nan
        others = {name: float(held) for name, held in drawn.items() if name not in event}
        return cls((low, low + width), names, {**others, **values})

    def put_into(self, matcher: Matcher, priority: npt.ArrayLike | None = None) -> None:
        """Add the subscriptions to a matcher."""
        matcher.add_many(Table.from_boxes(*self.bounds), priority)

    def __len__(self) -> int:
        return len(self.bounds[0])

    @property
    def title(self) -> str:
        """The event in words."""
        held = ", ".join(f"{name} = {self.event[name]:g}" for name in sorted(self.event))
        return f"event: {held or 'no values'}"


def _number(name: str, held: Any) -> float:
    if isinstance(held, bool) or not isinstance(held, int | float) or not 0 <= held <= 1:
        raise InvalidEvent(f"{name} = {held!r}; expected a number from 0 to 1, or null")
    return float(held)
