"""MO-Tree: subscriptions and events in one tree, each in one bucket.

The paper's words and ours (those of cells are in mo_partition.py):

    A_I, H              the indexed attributes or layers, n_indexed
    C_s, C_e            overlapping cells (of subscriptions), disjoint cells (of events)
    StabCell, IntersectCell    the cells an event, a subscription visits
    filtering, verification    finding candidates, keeping those that accept
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar, final

import numpy as np

from tamis.algorithms.kernels.mo_digests import (
    N_DIGEST,
    keep_decided,
    keep_digested,
    write_codes,
    write_digests,
)
from tamis.algorithms.kernels.mo_tree import (
    N_CODED,
    N_PARENTS,
    Layers,
    Scratch,
    find_events,
    find_subscriptions,
    place_events,
    place_subscriptions,
    replace_words,
    stab,
)
from tamis.algorithms.mo_partition import best_partition
from tamis.algorithms.mo_places import TextPlaces, judge_by_events, judge_by_subscriptions
from tamis.algorithms.mo_trace import Layer, Level, TreeTrace
from tamis.errors import InvalidSchema
from tamis.kernels.constraints import Stored, keep_accepted
from tamis.matching import Attribute, Capabilities, EventMatcher, SlotLists
from tamis.matching.matcher import EventLike
from tamis.matching.parameters import check_count, check_names
from tamis.matching.store import Array, Slots, grown
from tamis.matching.table import Floats

_MAX_BUCKETS = 20_000_000
_N_JUDGED = 10_000  # subscriptions or events looked at to choose the attributes
_GROWTH = 4  # they are chosen anew when there are so many times more


class MOTree(EventMatcher):
    """MO-Tree (Dian, Qian, Cao, Xue, Zhu, Yu, Li: MO-Tree, 2020), with the paper's parameters.

    Each of ``n_indexed`` attributes (H, 6) is a layer. A constraint belongs to the smallest of
    the overlapping cells that contains it: ``n_levels`` levels (L, 4) of 4, 3, 2 and 1 cells,
    as wide as a value stabs ``threshold`` cells (eta, 6.5) on average; the last one is the
    whole domain and also holds who leaves the attribute free. A value belongs to one of
    ``n_values`` disjoint cells (9), or to one more if it is missing. The combination of cells
    is the bucket. An event visits the buckets of the cells its values stab, a subscription
    those of the cells its intervals touch, and what is there is verified; expired events that
    are met leave. A text lies where its first ``n_letters`` letters say.

    ``indexed`` names the attributes to index; otherwise they are chosen by popularity,
    selectivity and uniformity when the first items come, and again when there are four times
    as many.

    Departs from the paper: all buckets stand in one array instead of a tree of pointers; beside
    each item stand its bounds on the first four layers in 7 bits each, and of each subscription
    all bounds are kept in 8 bits; these are compared before the exact ones; negated constraints
    belong to the last cell.

    >>> from tamis.values import Range
    >>> tree = MOTree(["lon", "lat", "price"])
    >>> tree.add({"lon": Range(0.2, 0.3), "price": Range(0.5, 0.8)})
    0
    >>> tree.match({"lon": 0.25, "lat": 0.1, "price": 0.6}).tolist()
    [0]
    >>> tree.add_events([[0.25, 0.1, 0.6]], until=[10]).tolist()
    [0]
    >>> tree.match_subscription({"lat": Range(0, 0.2)}, now=5).tolist()
    [0]
    """

    capabilities: ClassVar[Capabilities] = Capabilities(matches_subscriptions=True)

    def __init__(
        self,
        attributes: Sequence[Attribute | str],
        n_indexed: int = 6,
        n_levels: int = 4,
        threshold: float = 6.5,
        n_values: int = 9,
        n_letters: int = 2,
        indexed: Sequence[str] | None = None,
    ) -> None:
        super().__init__(attributes)
        n_values = check_count("n_values", n_values)
        n_letters = check_count("n_letters", n_letters)
        if indexed is None:
            chosen = list(range(self.n_attributes))[: check_count("n_indexed", n_indexed)]
        else:
            chosen = check_names("indexed", indexed, self.attributes)
        layers = np.array(chosen, np.int64)
        self._layers = Layers(layers, *best_partition(n_levels, threshold), n_values)
        self._is_fixed = indexed is not None
        self._n_judged = 0, 0  # subscriptions, events
        self._places = TextPlaces(self.attributes, self.domains, self.texts, n_letters)
        n_cells = len(self._layers.begin)
        self._lists = _empty_lists(_check_buckets(n_cells, len(layers)))
        self._event_lists = _empty_lists(_check_buckets(n_values + 1, len(layers)))
        self._bucket = np.zeros(0, np.int32)  # of each slot, -1 if it has none
        self._event_bucket = np.zeros(0, np.int32)
        self._digests = np.zeros((0, N_DIGEST), np.uint32)
        self._codes = np.zeros(self.n_attributes + 1, np.uint8)
        # A value stabs the most cells where one begins; a subscription may visit all.
        begin, end = self._layers.begin, self._layers.end
        n_stabbed = int(((begin <= begin[:, None]) & (begin[:, None] <= end)).sum(axis=1).max())
        self._scratch = _scratch(len(layers), n_cells, n_stabbed)
        self._event_scratch = _scratch(len(layers), n_values + 1, n_values + 1)

    @property
    def indexed(self) -> tuple[str, ...]:
        """The names of the indexed attributes, from the root down."""
        return tuple(self.attributes[m].name for m in self._layers.attribute)

    # -- subscriptions

    def _add(self, slots: Slots) -> None:
        self._places.keep_up()
        self._bucket = grown(self._bucket, self.n_slots, -1)
        self._digests = grown(self._digests, self.n_slots)
        self._bucket[slots] = 0  # held from here on, and given its bucket below
        if self._has_chosen(self._lists.n_entries + len(slots), self._event_lists.n_entries):
            self._put_all()
        else:
            self._put(slots)

    def _remove(self, slots: Slots) -> None:
        self._lists.discard(self._bucket[slots], slots)
        self._bucket[slots] = -1
        if self._lists.n_entries == 0:  # who comes next says what is popular
            self._n_judged = 0, self._n_judged[1]

    def _update(self, slots: Slots, replace: Callable[[], None]) -> None:
        """Who stays in its bucket is only written anew (section 4.6.2)."""
        replace()
        self._places.keep_up()
        buckets, words = self._placed(slots)
        moves = self._bucket[slots] != buckets
        stays = ~moves
        replace_words(self._lists.arrays, buckets[stays], slots[stays], words[stays])
        self._lists.discard(self._bucket[slots[moves]], slots[moves])
        self._lists.extend(buckets[moves], slots[moves], words[moves])
        self._bucket[slots] = buckets

    def _match(self, event: Floats, out: Slots) -> int:
        places, digests, codes = self._places.arrays, self._digests, self._codes
        n_out = find_subscriptions(
            self._layers, places, self._lists.arrays, self._scratch, event, out
        )
        write_codes(places, event, codes)
        n_out = keep_digested(digests, codes, out, n_out)
        n_out = int(keep_decided(digests, codes, self.stored, event, out, n_out))
        out[:n_out].sort()
        return n_out

    # -- events

    def _add_events(self, slots: Slots) -> None:
        self._places.keep_up()
        self._event_bucket = grown(self._event_bucket, self.n_event_slots, -1)
        self._event_bucket[slots] = 0
        if self._has_chosen(self._lists.n_entries, self._event_lists.n_entries + len(slots)):
            self._put_all()
        else:
            self._put_events(slots)

    def _remove_events(self, slots: Slots) -> None:
        self._event_lists.discard(self._event_bucket[slots], slots)
        self._event_bucket[slots] = -1

    def _match_subscription(self, subscription: Stored, now: float, out: Slots) -> int:
        self._places.keep_up()
        n_out, n_expired = find_events(
            self._layers,
            self._places.arrays,
            self._event_lists.arrays,
            self._event_scratch,
            subscription,
            (self.until, float(now)),
            out,
        )
        if n_expired:
            expired = out[len(out) - n_expired :]
            self._remove_events(expired)
            self._forget_events(expired)
        n_out = int(keep_accepted(subscription, self.events, out, n_out))
        out[:n_out].sort()
        return n_out

    # -- placing

    def _placed(self, slots: Slots) -> tuple[Array, Array]:
        buckets, words = np.empty(len(slots), np.int32), np.empty(len(slots), np.uint64)
        place_subscriptions(self._layers, self._places.arrays, self.stored, slots, buckets, words)
        compared = self._layers.attribute[:N_CODED]
        write_digests(compared, self._places.arrays, self.stored, slots, self._digests)
        return buckets, words

    def _put(self, slots: Slots) -> None:
        buckets, words = self._placed(slots)
        self._lists.extend(buckets, slots, words)
        self._bucket[slots] = buckets

    def _put_events(self, slots: Slots) -> None:
        buckets, words = np.empty(len(slots), np.int32), np.empty(len(slots), np.uint64)
        place_events(self._layers, self._places.arrays, self.events, slots, buckets, words)
        self._event_lists.extend(buckets, slots, words)
        self._event_bucket[slots] = buckets

    def _put_all(self) -> None:
        """Put every item anew, as the layers are other ones now."""
        self._lists = _empty_lists(len(self._lists))
        self._event_lists = _empty_lists(len(self._event_lists))
        self._put(_held(self._bucket))
        self._put_events(_held(self._event_bucket))

    def _has_chosen(self, n_subscriptions: int, n_events: int) -> bool:
        """Choose the layers if it is time to; whether they are other ones now.

        By the subscriptions, as popularity and selectivity are theirs; by events as long as
        there are no subscriptions.
        """
        judged, judged_events = self._n_judged
        by_events = n_subscriptions == 0
        n_now, n_then = (n_events, judged_events) if by_events else (n_subscriptions, judged)
        if self._is_fixed or n_now < _GROWTH * n_then:
            return False
        self._n_judged = n_subscriptions, n_events
        if by_events:
            score = judge_by_events(self.events, _some(self._event_bucket), self._places.arrays)
        else:
            score = judge_by_subscriptions(self.stored, _some(self._bucket), self._places.arrays)
        n_layers = len(self._layers.attribute)
        best = np.argsort(-score, kind="stable")[:n_layers].astype(np.int64)
        if np.array_equal(best, self._layers.attribute):
            return False
        self._layers = self._layers._replace(attribute=best)
        return True

    # -- for looking at

    @final
    def trace(self, event: EventLike) -> TreeTrace:
        """How an event is matched, layer by layer. Counts by looking at every subscription."""
        row, scratch = self._row_of(event), self._scratch
        survivors = tuple(self.match(row).tolist())
        stab(self._layers, self._places.arrays, row, scratch.cells, scratch.n_found)
        left = held = self._bucket[self._bucket >= 0].astype(np.int64)
        layers: list[Layer] = []
        for depth, m in enumerate(self._layers.attribute.tolist()):
            visited = scratch.cells[depth, : scratch.n_found[depth]]
            left = left[np.isin(self._cells_of(left, depth), visited)]
            name, value = self.attributes[m].name, float(row[m])
            levels = self._levels(m, visited, self._cells_of(held, depth))
            layers.append(Layer(name, value, levels, len(left)))
        return TreeTrace(len(held), len(self._lists), tuple(layers), survivors)

    def _cells_of(self, buckets: Array, depth: int) -> Array:
        """The cells of buckets in one layer: a digit of their numbers."""
        n_layers, n_cells = len(self._layers.attribute), len(self._layers.begin)
        cells: Array = buckets // n_cells ** (n_layers - 1 - depth) % n_cells
        return cells

    def _levels(self, m: int, visited: Array, entries: Array) -> tuple[Level, ...]:
        low, width = self.domains.low[m], self.domains.width[m]
        begin, end, starts = self._layers.begin, self._layers.end, self._layers.level_start
        counts = np.bincount(entries, minlength=len(begin)).tolist()
        bounds = list(
            zip((low + begin * width).tolist(), (low + end * width).tolist(), strict=True)
        )
        levels = []
        for first, last in pairwise(starts.tolist()):
            found = visited[(visited >= first) & (visited < last)] - first
            here = slice(first, last)
            levels.append(Level(tuple(bounds[here]), tuple(counts[here]), tuple(found.tolist())))
        return tuple(levels)

    def _memory_bytes(self) -> int:
        lists = self._lists.n_bytes + self._event_lists.n_bytes
        kept = (self._bucket, self._event_bucket, self._digests, self._codes)
        scratch = (*self._scratch, *self._event_scratch)
        return lists + sum(array.nbytes for array in (*kept, *scratch)) + self._event_bytes()


def _held(bucket: Array) -> Slots:
    return np.flatnonzero(bucket >= 0).astype(np.int32)


def _some(bucket: Array) -> Slots:
    """Some of the slots that are held, evenly spread."""
    held = _held(bucket)
    return held[:: max(1, len(held) // _N_JUDGED)]


def _scratch(n_layers: int, n_cells: int, n_visited: int) -> Scratch:
    n_parents = n_visited ** (n_layers - 1)
    return Scratch(
        np.zeros((n_layers, n_cells), np.int32),
        np.zeros(n_layers, np.int64),
        np.zeros(n_parents, np.int32),
        np.zeros((min(n_parents, N_PARENTS) * n_cells, 2), np.int64),
    )


def _empty_lists(n_buckets: int) -> SlotLists:
    return SlotLists(n_buckets, has_values=True, value_type=np.uint64)


def _check_buckets(n_cells: int, n_layers: int) -> int:
    n_buckets: int = n_cells**n_layers
    if n_buckets > _MAX_BUCKETS:
        raise InvalidSchema(
            f"{n_cells} cells on {n_layers} attributes make {n_buckets:,} buckets, more than "
            f"{_MAX_BUCKETS:,}; index fewer attributes, or with fewer cells"
        )
    return n_buckets
