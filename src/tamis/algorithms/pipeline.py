"""Pipeline: what GEM and DEXIN share, a plan made for each event and candidates that shrink.

The papers' words and ours:

    single-dimensional (single-attribute) matching   step
    S~, the partial result                           the candidates
    C or Q, D                                        Plan.order, Plan.n_excluding
    rho_m, the matching rate                         rate
    beta_m, delta_m, mu^(ex), the exclusive cost     1 - rate
    gamma_m, mu^(in), the inclusive cost             the product of the rates of the steps before
    u, mu                                            Trace.cost
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from tamis.algorithms.kernels.columns import (
    Columns,
    drop_columns,
    mark_unmet,
    put_columns,
    select,
)
from tamis.algorithms.kernels.plan import find_costs, fit_best, fit_first, order_by_rate
from tamis.errors import InvalidSchema
from tamis.matching import Attribute, Matcher
from tamis.matching.matcher import EventLike
from tamis.matching.store import Array, Slots
from tamis.matching.table import Floats

MAX_OPTIMAL = 24  # attributes; the optimal plan is found by trying all
_ALL = np.uint64(2**64 - 1)


class Plan(NamedTuple):
    """The order of the attributes; the first ``n_excluding`` exclude, the others select."""

    order: Array  # i4[M]
    n_excluding: int


@dataclass(frozen=True, slots=True)
class Area:
    """A part of a structure that a step goes through.

    ``cells`` says where: first and last number along each axis of the structure. With
    ``is_compared`` its entries are compared with the value, else all of them are taken.
    """

    name: str
    cells: tuple[tuple[int, int], ...]
    n_entries: int
    is_compared: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: what is done by which attribute, why, and who is left.

    ``method`` is "exclude", "select" or "missing". ``rate`` is the estimated share of all
    subscriptions that match on the attribute, ``cost`` the estimated share that is passed.
    ``n_passed`` counts the entries the step really goes through, ``n_left`` the candidates after.
    """

    attribute: str
    value: float
    method: str
    reason: str
    rate: float
    cost: float
    areas: tuple[Area, ...]
    n_passed: int
    n_left: int


@dataclass(frozen=True, slots=True)
class Trace:
    """How one event is matched: the steps in order, the number of subscriptions at the start."""

    n_subscriptions: int
    steps: tuple[Step, ...]

    @property
    def cost(self) -> float:
        """The estimated cost of the plan, as the papers define it."""
        return sum(step.cost for step in self.steps)

    @property
    def n_passed(self) -> int:
        """The entries that all steps really go through."""
        return sum(step.n_passed for step in self.steps)


class Pipeline(Matcher):
    """A matcher that excludes by an index as long as that is cheap, then selects.

    A subclass keeps the index (``_put``, ``_drop``), estimates rates (``_find_rates``), excludes
    (``_exclude``) and says where (``_areas``). Departs from both papers in the same way: the
    candidates are a bit set while attributes exclude and a list while they select; a list is
    narrowed block by block, by bounds of one byte, and what these leave open is compared
    exactly at the end. An attribute that the event lacks excludes all who ask for it, by one
    pass over a bit set, right behind the first step.
    """

    def __init__(self, attributes: Sequence[Attribute | str], plan: str, plans: set[str]) -> None:
        super().__init__(attributes)
        if not isinstance(plan, str) or plan not in plans:
            raise InvalidSchema(f"the plan {plan!r}; expected one of {', '.join(sorted(plans))}")
        if plan == "optimal" and self.n_attributes > MAX_OPTIMAL:
            raise InvalidSchema(
                f"the optimal plan of {self.n_attributes} attributes; it is found by trying all, "
                f"which is expected for at most {MAX_OPTIMAL}"
            )
        self.plan_kind = plan
        self._n_held = 0
        self._order = np.zeros(self.n_attributes, np.int32)
        self._rates = np.zeros(self.n_attributes)
        self._words = np.zeros(0, np.uint64)  # of one event: bits of those that are excluded
        m = self.n_attributes
        self._columns = Columns(
            np.zeros((m, 0, 2), np.uint8),
            np.zeros((m, 0), np.uint64),
            np.zeros(0, np.uint64),
            np.zeros(0, np.uint64),
            np.zeros(m, np.int64),
        )

    # -- hooks of a pipeline

    @abstractmethod
    def _put(self, slots: Slots) -> None:
        """Take slots into the index; there is room for ``len(self._words)`` words of bits."""

    @abstractmethod
    def _drop(self, slots: Slots) -> None:
        """Take slots out of the index."""

    @abstractmethod
    def _find_rates(self, event: Floats) -> None:
        """Write the estimated matching rates to ``self._rates``."""

    @abstractmethod
    def _exclude(self, event: Floats, plan: Plan) -> None:
        """Write to ``self._words`` the bits of who is absent or excluded."""

    @abstractmethod
    def _areas(self, m: int, value: float, *, is_first: bool) -> tuple[Area, ...]:
        """Where an excluding step by attribute m goes."""

    @abstractmethod
    def _index_bytes(self) -> int:
        """The size of the index."""

    # -- the hooks of a matcher

    def _add(self, slots: Slots) -> None:
        self._make_room()
        put_columns(self._columns, self.stored, slots, self.domains)
        self._n_held += len(slots)
        self._put(slots)

    def _remove(self, slots: Slots) -> None:
        drop_columns(self._columns, self.stored, slots)
        self._n_held -= len(slots)
        self._drop(slots)

    def _match(self, event: Floats, out: Slots) -> int:
        plan = self._plan(event)
        self._exclude(event, plan)
        order, first = plan
        columns, stored = self._columns, self.stored
        return int(select(columns, stored, self.domains, event, order, first, self._words, out))

    def _memory_bytes(self) -> int:
        kept = (*self._columns, self._words, self._order, self._rates)
        return self._index_bytes() + sum(array.nbytes for array in kept)

    # -- the plan

    def _plan(self, event: Floats) -> Plan:
        self._find_rates(event)
        if self.plan_kind == "near_optimal":
            n_excluding = int(fit_first(self._rates, event, self._order))
        elif self.plan_kind == "optimal":
            n_excluding = int(fit_best(self._rates, event, self._order))
        else:
            n_excluding = int(order_by_rate(self._rates, event, self._order))
            if self.plan_kind == "exclusive":
                n_excluding = self.n_attributes
            elif 0 < n_excluding < self.n_attributes:  # what is missing goes to the front
                first = self._order[0]
                self._order[:n_excluding] = self._order[1 : n_excluding + 1]
                self._order[n_excluding] = first
        return Plan(self._order, n_excluding)

    @final
    def trace(self, event: EventLike) -> Trace:
        """How an event is matched, step by step. Counts by looking at every subscription."""
        row = self._row_of(event)
        plan = self._plan(row)
        costs = np.empty(self.n_attributes)
        find_costs(self._rates, row, *plan, costs)
        words, n_left = self._columns.absent.copy(), self._n_held
        steps: list[Step] = []
        for k, m in enumerate(plan.order.tolist()):
            if n_left == 0:
                break
            value, (method, reason) = float(row[m]), self._method(k, plan, row)
            areas = self._areas(m, value, is_first=k == 0) if method == "exclude" else ()
            n_passed = n_left if method == "select" else sum(area.n_entries for area in areas)
            n_left = int(mark_unmet(self.stored, m, value, words))
            name, rate = self.attributes[m].name, float(self._rates[m])
            steps.append(
                Step(name, value, method, reason, rate, float(costs[k]), areas, n_passed, n_left)
            )
        return Trace(self._n_held, tuple(steps))

    def _method(self, k: int, plan: Plan, row: Floats) -> tuple[str, str]:
        """What step k of a plan does, and why."""
        if np.isnan(row[plan.order[k]]):
            return "missing", "the event has no value here; who asks for one is excluded"
        method = "exclude" if k < plan.n_excluding else "select"
        miss = 1 - self._rates[plan.order[k]]
        left = np.prod(self._rates[plan.order[:k]])
        if self.plan_kind in ("exclusive", "inclusive"):
            reason = "the only method of this plan"
        elif self.plan_kind == "optimal":
            reason = f"part of the cheapest plan; {miss:.1%} miss here, {left:.1%} are left"
        elif k == 0:
            reason = "the lowest matching rate comes first, and the first step excludes"
        elif k < plan.n_excluding:
            reason = f"{miss:.1%} miss here, fewer than the {left:.1%} that are left"
        elif k == plan.n_excluding:
            reason = f"{left:.1%} are left, no more than the {miss:.1%} that miss here"
        else:
            reason = "all steps behind the first that selects do"
        return method, reason

    # -- room

    def _make_room(self) -> None:
        n_words = (self.n_slots + 63) // 64
        if n_words <= len(self._words):
            return
        n_words = max(n_words, len(self._words) * 3 // 2)
        code, asked, odd, absent, n_asking = self._columns
        self._columns = Columns(
            widened(code, 64 * n_words),
            widened(asked, n_words),
            widened(odd[None], n_words)[0],
            widened(absent[None], n_words, _ALL)[0],
            n_asking,
        )
        self._words = np.zeros(n_words, np.uint64)
        self._widen(n_words)

    def _widen(self, n_words: int) -> None:
        """Make room for so many words of bits in the index, if it has any."""


def widened(array: Array, n: int, fill: object = 0) -> Array:
    """A copy with n columns, the new ones filled."""
    wider = np.full((array.shape[0], n, *array.shape[2:]), fill, array.dtype)
    wider[:, : array.shape[1]] = array
    return wider
