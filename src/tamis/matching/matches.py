"""Matches: what a matcher found for many events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Event e matched ``ids[offsets[e]:offsets[e + 1]]``, each id once.

    >>> found = Matches.of([np.array([3, 5], np.int32), np.array([], np.int32)])
    >>> found.ids.tolist(), found.offsets.tolist(), found[0].tolist()
    ([3, 5], [0, 2, 2], [3, 5])
    """

    ids: Ids
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[Ids]) -> Matches:
        """One array of ids an event."""
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(np.concatenate([np.zeros(0, np.int32), *parts]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> Ids:
        if not 0 <= event < len(self):
            raise IndexError(f"event {event} of {len(self)}")
        return self.ids[self.offsets[event] : self.offsets[event + 1]]

    def __iter__(self) -> Iterator[Ids]:
        return (self[event] for event in range(len(self)))
