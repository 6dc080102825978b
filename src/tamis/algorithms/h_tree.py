"""H-Tree: similar subscriptions share a bucket; an event visits few and checks what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.h_tree import (
    count_buckets,
    fill_buckets,
    verify_buckets,
    write_visited,
)
from tamis.errors import InvalidSchema
from tamis.matching import Attribute, Capabilities, Matcher, SlotLists
from tamis.matching.matcher import EventLike
from tamis.matching.parameters import check_count, check_names
from tamis.matching.store import Slots, grown
from tamis.matching.table import Floats

_MAX_BUCKETS = 10_000_000
_MANY = 1_000  # slots that are added or removed by a pass over all lists
_CHUNK = 2_000  # slots whose buckets are listed at once
_PART = 16  # buckets between two parts of a result


class HTree(Matcher):
    """H-Tree (Qian, Cao, Zhu, Li, Wang, TPDS 2014), as seeds 0 to 3 describe it.

    ``n_indexed`` attributes (λ or l, 6) are layers of a tree; each domain is cut into ``n_cells``
    cells (η or c, 4) that overlap by half their width on either side. A constraint belongs to the
    cell that holds its middle; one wider than a cell is split into pieces first. So a
    subscription is in the bucket of every combination of its pieces, and wide constraints make
    many. An event visits the cells around its values and checks the subscriptions there.
    ``indexed`` names the attributes to index; otherwise they are the first.
    Departs from the papers: all leaves stand in one array instead of a tree of pointers; each
    layer has a further cell for subscriptions that leave the attribute free (or exclude a
    value), which every event visits; a subscription found in several buckets is checked once.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(
        self,
        attributes: Sequence[Attribute | str],
        n_cells: int = 4,
        n_indexed: int = 6,
        indexed: Sequence[str] | None = None,
    ) -> None:
        super().__init__(attributes)
        self.n_cells = n_cells = check_count("n_cells", n_cells)
        if indexed is None:
            layers = list(range(self.n_attributes))[: check_count("n_indexed", n_indexed)]
        else:
            layers = check_names("indexed", indexed, self.attributes)
        n_buckets = (n_cells + 1) ** len(layers)
        if n_buckets > _MAX_BUCKETS:
            raise InvalidSchema(
                f"{n_cells} cells on {len(layers)} attributes make {n_buckets:,} buckets, more "
                f"than {_MAX_BUCKETS:,}; index fewer attributes"
            )
        self._indexed = np.array(layers, np.int64)
        self._lists = SlotLists(n_buckets)
        self._visited = np.zeros(min(n_buckets, (min(n_cells, 3) + 1) ** len(layers)), np.int32)
        self._seen = np.zeros(0, np.uint64)

    def bucket(self, *cells: int) -> Slots:
        """The slots in the bucket of one cell of each layer; cell ``n_cells`` is the unbounded."""
        return self._lists.of(int(np.ravel_multi_index(cells, self._shape)))

    def visited(self, event: EventLike) -> list[tuple[int, ...]]:
        """The cells of the buckets that an event visits."""
        row = self._row_of(event)
        n = write_visited(row, self.domains, self._indexed, self.n_cells, self._visited)
        cells = np.unravel_index(self._visited[:n], self._shape)
        return list(zip(*(numbers.tolist() for numbers in cells), strict=True))

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.n_cells + 1,) * len(self._indexed)

    def _add(self, slots: Slots) -> None:
        self._seen = grown(self._seen, (self.n_slots + 63) // 64)
        if len(slots) > _MANY:
            counts = np.zeros(len(self._lists), np.int64)
            self._count(slots, counts)
            self._lists.reserve(counts)
        for first in range(0, len(slots), _CHUNK):
            self._lists.extend(*self._entries(slots[first : first + _CHUNK]))

    def _remove(self, slots: Slots) -> None:
        if len(slots) > _MANY:
            self._lists.discard_in_order(slots)
        else:
            self._lists.discard(*self._entries(slots))

    def _match(self, event: Floats, out: Slots) -> int:
        *_, n_out = self._visit(event, out, len(self._visited))
        out[:n_out].sort()
        return n_out

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        return self._visit(event, out, _PART)

    def _memory_bytes(self) -> int:
        return (
            self._lists.n_bytes + self._visited.nbytes + self._seen.nbytes + 8 * self._indexed.size
        )

    def _visit(self, event: Floats, out: Slots, n_at_once: int) -> Iterator[int]:
        """Check the buckets of an event, some at once; yield how many are found so far."""
        self._seen[:] = 0
        n_visited = write_visited(event, self.domains, self._indexed, self.n_cells, self._visited)
        n_out = 0
        for first in range(0, n_visited, n_at_once):
            buckets = self._visited[first : min(n_visited, first + n_at_once)]
            n_out = int(
                verify_buckets(
                    self._lists.arrays, buckets, self.stored, event, self._seen, out, n_out
                )
            )
            yield n_out

    def _count(self, slots: Slots, counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        return int(
            count_buckets(self.stored, slots, self.domains, self._indexed, self.n_cells, counts)
        )

    def _entries(self, slots: Slots) -> tuple[Slots, Slots]:
        """The buckets of slots, and whose they are."""
        n = self._count(slots, np.zeros(0, np.int64))
        keys, owners = np.empty(n, np.int32), np.empty(n, np.int32)
        fill_buckets(self.stored, slots, self.domains, self._indexed, self.n_cells, keys, owners)
        return keys, owners
