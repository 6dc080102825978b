"""MatchSet: who matched each event of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.slots.texts import Texts

_TAKEN = 1 << 22  # ids a chunk: Arrow's texts hold 2 GB


class MatchSet:
    """The matches of a batch: event e matched ``ids[offsets[e]:offsets[e + 1]]``.

    Each event's ids are unique and come highest priority first. ``rows`` are the numbers the
    index gave the subscriptions; their ids and priorities are looked up when first asked for.
    """

    __slots__ = ("__dict__", "_texts", "priority_of_row", "rows")

    def __init__(
        self,
        offsets: npt.NDArray[np.int64] | None,
        rows: npt.NDArray[np.int32],
        priority_of_row: npt.NDArray[np.uint8],
        texts: Texts,
    ) -> None:
        if offsets is not None:  # otherwise all are of one event
            self.offsets = offsets
        self.rows = rows
        self.priority_of_row = priority_of_row
        self._texts = texts

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where the matches of each event begin; there is one more than there are events."""
        return np.array([0, len(self.rows)])

    @cached_property
    def ids(self) -> list[str]:
        """The id of every match."""
        return self._texts.texts_of(self.rows)

    @cached_property
    def priorities(self) -> npt.NDArray[np.uint8]:
        """The priority of every match."""
        return self.priority_of_row[self.rows]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> list[str]:
        """The ids that matched one event of the batch."""
        if not -len(self) <= event < len(self):
            raise IndexError(f"event {event} of a batch of {len(self)}")
        event %= len(self)
        return self.ids[self.offsets[event] : self.offsets[event + 1]]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[event] for event in range(len(self)))

    def __repr__(self) -> str:
        return f"<MatchSet of {self.n_matches} matches for {len(self)} events>"

    @property
    def n_matches(self) -> int:
        """How many matches there are in all."""
        return len(self.rows)

    def dictionary(self) -> pa.Array:
        """The id of every row of the index: ``rows`` are positions in it."""
        return self._texts.array()

    def to_arrow(self) -> pa.Table:
        """A table with a row a match: event (position in the batch), subscription_id, priority."""
        counts = np.diff(self.offsets)
        starts = range(0, max(1, len(self.rows)), _TAKEN)
        ids = [self._texts.array_of(self.rows[start : start + _TAKEN]) for start in starts]
        return pa.table(
            {
                "event": np.repeat(np.arange(len(self), dtype=np.int64), counts),
                "subscription_id": pa.chunked_array(ids),
                "priority": self.priorities,
            }
        )
