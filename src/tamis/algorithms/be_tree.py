"""BE-Tree: subscriptions parted by attributes and by halves of domains; few leaves are visited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.be_tree import (
    FREE_NODE,
    FREE_PART,
    N_CELLS,
    N_WAITING,
    Tree,
    insert_many,
    new_node,
    remove_many,
)
from tamis.algorithms.kernels.be_tree_match import visit
from tamis.matching import Attribute, Capabilities, Matcher
from tamis.matching.matcher import EventLike
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots, grown
from tamis.matching.table import Floats

_MAX_SIZE = 2**30  # a list may grow to twice its size, which is an i4
_PART = 64  # nodes between two parts of a result
_OF_NODES = ("first", "last", "halves", "part_of", "parts", "head", "size", "capacity", "waiting")
_OF_PARTS = ("attribute", "owner", "top", "sibling", "n_below", "score")
_OF_SLOTS = ("after", "before", "node_of")


class BETree(Matcher):
    """BE-Tree (Sadoghi, Jacobsen, SIGMOD 2011), as seeds 0 and 1 describe it.

    A node holds a list of subscriptions (l-node) of at most ``max_size`` (the paper's max_cap).
    A list that overflows is first clustered: what lies in one half of the node's range moves to
    that half (c-directory). Then it is partitioned: the attribute that promises to spare an
    event the most subscriptions gets a part (p-node) with all that constrain it, and so on until
    the list fits; where no attribute is left, the capacity grows. Removals turn parts that
    became small back into lists. An event visits, from the root, the parts whose attribute it
    has and in them the ranges around its value, and checks the lists there.
    Departs from the paper: the score of an attribute is the sum of the shares of the domain its
    constraints refuse, not the gain and loss measured on past events; ranges are halved down to
    2^20 cells; not-equal counts as the whole domain.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, attributes: Sequence[Attribute | str], max_size: int = 20) -> None:
        super().__init__(attributes)
        self.max_size = check_count("max_size", max_size, most=_MAX_SIZE)
        self._tree = _empty()
        self._make_room(64)
        self._tree.state[[FREE_NODE, FREE_PART]] = -1
        new_node(self._tree, -1, 0, N_CELLS - 1, self.max_size)

    @property
    def tree(self) -> Tree:
        """The nodes and parts."""
        return self._tree

    def visited(self, event: EventLike) -> list[int]:
        """The nodes that an event visits, in order."""
        row, out, nodes = self._row_of(event), self._room(), []
        self._tree.waiting[0] = 0
        n_waiting = 1
        while n_waiting:
            nodes.append(int(self._tree.waiting[n_waiting - 1]))
            n_waiting, _ = visit(
                self._tree, self.stored, self.domains, row, N_CELLS, n_waiting, 1, out, 0
            )
        return nodes

    def _add(self, slots: Slots) -> None:
        chains = {name: grown(getattr(self._tree, name), self.n_slots, -1) for name in _OF_SLOTS}
        self._tree = self._tree._replace(**chains)
        n_done = 0
        while n_done < len(slots) or self._tree.state[N_WAITING]:
            self._make_room(1)
            n_done = int(
                insert_many(self._tree, self.stored, self.domains, slots, n_done, self.max_size)
            )

    def _remove(self, slots: Slots) -> None:
        remove_many(self._tree, self.stored, self.domains, slots, self.max_size)

    def _match(self, event: Floats, out: Slots) -> int:
        *_, n_out = self._visit(event, out, len(self._tree.first))
        out[:n_out].sort()
        return n_out

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        return self._visit(event, out, _PART)

    def _memory_bytes(self) -> int:
        return sum(array.nbytes for array in self._tree)

    def _visit(self, event: Floats, out: Slots, n_at_once: int) -> Iterator[int]:
        """Visit nodes, some at once; yield how many slots are found so far."""
        self._tree.waiting[0] = 0
        n_waiting, n_out = 1, 0
        while n_waiting:
            n_waiting, n_out = visit(
                self._tree, self.stored, self.domains, event, N_CELLS, n_waiting, n_at_once,
                out, n_out,
            )  # fmt: skip
            yield int(n_out)

    def _make_room(self, n_more: int) -> None:
        """Room for what the splits of one node and n_more others need, if there is none."""
        n_nodes, n_parts = (int(n) for n in self._tree.state[:2])
        n_nodes += self.n_attributes + 2 + n_more
        n_parts += self.n_attributes + n_more
        sizes = dict.fromkeys(_OF_NODES, n_nodes) | dict.fromkeys(_OF_PARTS, n_parts)
        arrays = {name: grown(getattr(self._tree, name), n) for name, n in sizes.items()}
        self._tree = self._tree._replace(**arrays)


def _empty() -> Tree:
    fields: dict[str, Array] = {name: np.zeros(0, np.int32) for name in Tree._fields}
    fields["halves"] = np.zeros((0, 2), np.int32)
    fields["score"] = np.zeros(0)
    fields["state"] = np.zeros(5, np.int64)
    return Tree(**fields)
