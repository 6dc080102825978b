"""MatchSet: who matched each event of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class MatchSet:
    """The matches of a batch: event e matched ``ids[offsets[e]:offsets[e + 1]]``.

    Each event's ids are unique and come highest priority first.
    """

    offsets: npt.NDArray[np.int64]
    ids: Sequence[str]
    priorities: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> list[str]:
        """The ids that matched one event of the batch."""
        if not -len(self) <= event < len(self):
            raise IndexError(f"event {event} of a batch of {len(self)}")
        event %= len(self)
        return list(self.ids[self.offsets[event] : self.offsets[event + 1]])

    def __iter__(self) -> Iterator[list[str]]:
        return (self[event] for event in range(len(self)))

    @property
    def n_matches(self) -> int:
        """How many matches there are in all."""
        return len(self.ids)

    def to_arrow(self) -> pa.Table:
        """A table with a row a match: event (position in the batch), subscription_id, priority."""
        counts = np.diff(self.offsets)
        return pa.table(
            {
                "event": np.repeat(np.arange(len(self), dtype=np.int64), counts),
                "subscription_id": pa.array(self.ids, pa.string()),
                "priority": self.priorities,
            }
        )
