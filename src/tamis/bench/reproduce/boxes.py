"""Cells of boxes: matching, inserting, removing and memory of one algorithm at one point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from time import process_time, thread_time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.algorithms import make
from tamis.bench.cases import WrongResult
from tamis.bench.reproduce.figures import Line
from tamis.bench.reproduce.looks import share_looked_at
from tamis.bench.scan import Scan, numpy_rows
from tamis.bench.workloads import Workload
from tamis.errors import TamisError
from tamis.matching import Matcher, Table

N_CHECKED = 10
SECONDS = 8.0  # an algorithm is not timed on further events after so long
MIN_TIMED = 10
ROUNDS = 3
MAX_BYTES = 6_000_000_000  # a structure that would be larger is not built
_N_SAMPLE = 2_000
_N_TRACED = 10  # events whose plan is told step by step
LOT = 1_000  # that are added or removed in one call: too few for a pass over all lists to pay
N_LOTS = 5

Ids = npt.NDArray[np.int32]


class TooLarge(TamisError):
    """A structure that would not fit; says how large it would be."""


class BoxSet:
    """A workload with its table, and what each event should find."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._expected: dict[int, Ids] = {}

    @cached_property
    def table(self) -> Table:
        """The subscriptions as matchers take them."""
        held = self.workload
        return Table.from_boxes(held.low, held.high, held.low_open, held.high_open)

    @cached_property
    def scan(self) -> Scan:
        """The reference, itself compared with plain NumPy."""
        scan = Scan(self.workload)
        if not np.array_equal(scan.match(self.workload.values[0]), numpy_rows(self.workload, 0)):
            raise WrongResult("the scan and NumPy disagree. Nothing was timed; please report this")
        return scan

    @property
    def checked(self) -> range:
        """The events whose results are compared, evenly spread."""
        n_events = self.workload.n_events
        return range(0, n_events, max(1, n_events // N_CHECKED))

    def expected(self, event: int) -> Ids:
        """The rows that accept an event, ascending."""
        if event not in self._expected:
            self._expected[event] = self.scan.match(self.workload.values[event])
        return self._expected[event]

    def build(self, line: Line) -> tuple[Matcher, float]:
        """A matcher with all subscriptions, and the seconds that adding them took."""
        self._rehearse(line)
        matcher: Matcher = make(line.algorithm, self.workload.attributes, **line.parameters)
        table = self.table
        start = process_time()
        matcher.add_many(table, self.workload.priority)
        return matcher, process_time() - start

    def check(self, matcher: Matcher, line: Line) -> None:
        """Compare results with the reference; raise WrongResult if they differ."""
        for event in self.checked:
            found, wanted = matcher.match(self.workload.values[event]), self.expected(event)
            self.compare(np.sort(found), wanted, matcher, f"{line.label}, event {event}")

    @staticmethod
    def compare(found: Ids, wanted: Ids, matcher: Matcher, where: str) -> None:
        """Equal, or a superset if that is what is promised; both ascending."""
        if matcher.capabilities.is_exact:
            is_right = np.array_equal(found, wanted)
        else:
            is_right = bool(np.isin(wanted, found).all() and (np.diff(found) > 0).all())
        if not is_right:
            raise WrongResult(
                f"{where}: {len(found):,} subscriptions found, {len(wanted):,} expected. Nothing "
                "was timed; please report this"
            )

    def _rehearse(self, line: Line) -> None:
        """Let every kernel compile on a sample, and refuse what would be too large."""
        held, n = self.workload, self.workload.n_subscriptions
        sample: Matcher = make(line.algorithm, held.attributes, **line.parameters)
        before = sample.memory_bytes(structure_only=True)
        rows = slice(0, n, -(-n // _N_SAMPLE))
        sample.add_many(Table.from_boxes(held.low[rows], held.high[rows]), held.priority[rows])
        grown = sample.memory_bytes(structure_only=True) - before
        n_bytes = grown / len(sample) * n
        if n > 10 * _N_SAMPLE and n_bytes > MAX_BYTES:
            raise TooLarge(f"would need about {n_bytes / 1e9:.0f} GB")
        sample.match(held.values[0])
        sample.remove_many([0])


def measure_boxes(case: BoxSet, line: Line, *, changes: bool = False) -> dict[str, Any]:
    """Build, check, match, and with ``changes`` remove and add some."""
    try:
        matcher, seconds = case.build(line)
    except TooLarge as error:
        return {"skipped": str(error)}
    case.check(matcher, line)
    n = case.workload.n_subscriptions
    found: dict[str, Any] = {
        "n_subscriptions": n,
        "n_attributes": len(case.workload.attributes),
        "checked_events": len(case.checked),
        "insert_s": seconds,
        "insert_us": seconds * 1e6 / n,
        "bytes": matcher.memory_bytes(),
        "structure_bytes": matcher.memory_bytes(structure_only=True),
        "bytes_each": matcher.memory_bytes() / n,
        "match": time_calls(matcher.match, list(case.workload.values)),
        "matches_mean": float(np.mean([len(case.expected(event)) for event in case.checked])),
    }
    if changes:
        found["remove_us"], found["add_us"] = time_changes(matcher, case.workload)
        found["remove_s"] = found["remove_us"] * n / 1e6
    return found


def time_calls(function: Callable[[Any], Any], items: Sequence[Any]) -> dict[str, float]:
    """Milliseconds of a call: of each item the best of some rounds, then mean and deviation.

    The processor's time of this thread, which others on the machine disturb less. The first
    items are called once more before; slow functions get fewer items and rounds.
    """
    first = _cpu_ms(function, items[:MIN_TIMED])
    seconds = float(first.mean()) / 1e3
    n_timed = int(min(len(items), max(MIN_TIMED, SECONDS / max(seconds, 1e-9))))
    n_rounds = ROUNDS if n_timed * seconds * ROUNDS <= SECONDS else 1
    rounds = [_cpu_ms(function, items[:n_timed]) for _ in range(n_rounds)]
    return spread_ms(np.min(rounds, axis=0))


def _cpu_ms(function: Callable[[Any], Any], items: Sequence[Any]) -> npt.NDArray[np.float64]:
    times = np.empty(len(items))
    for at, item in enumerate(items):
        start = thread_time_ns()
        function(item)
        times[at] = thread_time_ns() - start
    return times / 1e6


def spread_ms(ms: npt.NDArray[np.float64]) -> dict[str, float]:
    """Mean, standard deviation, median and tail.

    >>> spread_ms(np.array([1.0, 3.0]))["std_ms"]
    1.0
    """
    return {
        "mean_ms": float(ms.mean()),
        "std_ms": float(ms.std()),
        "median_ms": float(np.median(ms)),
        "p99_ms": float(np.percentile(ms, 99)),
        "n": len(ms),
    }


def time_changes(matcher: Matcher, workload: Workload) -> tuple[float, float]:
    """Microseconds to remove a subscription and to add one again, of lots drawn at random."""
    order = np.random.default_rng(0).permutation(len(matcher)).astype(np.int32)
    removed, added = time_lots(lambda rows: _time_lot(matcher, workload, rows), order)
    return removed, added


def time_lots(change: Callable[[Ids], tuple[float, float]], rows: Ids) -> tuple[float, float]:
    """Microseconds of both halves of a change, the median of some lots of rows.

    ``change(lot)`` gives seconds a row. A lot of one comes before, not counted; it tells how many
    a lot can be where a change is slow.
    """
    pace, start = sum(change(rows[:1])), 1
    times: list[tuple[float, float]] = []
    for _ in range(N_LOTS):
        size = int(min(LOT, max(1, SECONDS / N_LOTS / max(pace, 1e-9))))
        lot, start = rows[start : start + size], start + size
        if len(lot):
            times.append(change(lot))
            pace = min(pace, sum(times[-1]))
    first, second = np.median(times, axis=0) * 1e6
    return float(first), float(second)


def _time_lot(matcher: Matcher, held: Workload, rows: Ids) -> tuple[float, float]:
    bounds = (held.low[rows], held.high[rows], held.low_open[rows], held.high_open[rows])
    table = Table.from_boxes(*bounds)
    start = process_time()
    matcher.remove_many(rows)
    middle = process_time()
    matcher.add_many(table, held.priority[rows])
    return (middle - start) / len(rows), (process_time() - middle) / len(rows)


def measure_plans(case: BoxSet, line: Line) -> dict[str, Any]:
    """Matching with the time to make the plan, without it, and what the plan costs by its model.

    The index makes no plan: its cost is what it looks at, in the same unit.
    """
    found = measure_boxes(case, line)
    if "skipped" in found:
        return found
    matcher: Any = case.build(line)[0]
    rows = list(case.workload.values[: found["match"]["n"]])
    if "plan" not in line.parameters:
        looks = [share_looked_at(matcher.index, row) for row in rows[:_N_TRACED]]
        return {
            **found,
            "matching_ms": found["match"]["mean_ms"],
            "cost": float(np.mean(looks)),
        }
    plans = [_copied(matcher._plan(row)) for row in rows]
    costs = [matcher.trace(row).cost for row in rows[:_N_TRACED]]
    return {
        **found,
        "matching_ms": _time_planned(matcher, rows, plans),
        "cost": float(np.mean(costs)),
    }


def _copied(plan: Any) -> Any:
    return plan._replace(order=plan.order.copy())  # the matcher writes the next one over it


def _time_planned(matcher: Any, rows: Sequence[Any], plans: Sequence[Any]) -> float:
    """The mean time to match by plans that were made before."""

    def match(number: int) -> None:
        matcher._plan = lambda row: plans[number]
        matcher.match(rows[number])

    return time_calls(match, range(len(rows)))["mean_ms"]
