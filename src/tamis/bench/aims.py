"""What the engine aims for, and what the result files say it reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tamis.bench.results import Key, Results
from tamis.bench.suite import ALL

QUIET = 0.97  # of a core; with less, somebody else was running


@dataclass(frozen=True, slots=True)
class Aim:
    """A number of a cell that should be at most, or at least, a limit.

    ``path`` names it in what the cell found: ``rows.median_us``.
    """

    what: str
    cell: str
    workload: str
    path: str
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def wanted(self) -> str:
        """The limit in words."""
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)}{_spaced(self.unit)}"


@dataclass(frozen=True, slots=True)
class Reached:
    """An aim and how far it was reached; ``value`` is None where nothing was measured."""

    aim: Aim
    value: float | None
    cpu_share: float = 1.0
    is_full: bool = True  # the aims are for full size; at another scale nothing is judged

    @property
    def is_met(self) -> bool:
        """Whether the aim is reached."""
        if self.value is None:
            return False
        limit = self.aim.limit
        return self.value >= limit if self.aim.at_least else self.value <= limit

    @property
    def verdict(self) -> str:
        """Yes or no, with a question mark if it was disturbed; a dash if it cannot be judged."""
        if not self.is_full or self.value is None:
            return "–"
        return ("yes" if self.is_met else "no") + (" ?" if self.is_disturbed else "")

    @property
    def is_disturbed(self) -> bool:
        """Whether others used the core while this was timed."""
        return self.cpu_share < QUIET

    @property
    def share(self) -> float | None:
        """How much of the aim: 1 is all of it, 0.5 half as fast or twice as large as wanted."""
        if not self.value:
            return None
        ratio = self.value / self.aim.limit
        return ratio if self.aim.at_least else 1 / ratio

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "what": self.aim.what,
            "workload": self.aim.workload,
            "aim": self.aim.limit,
            "at_least": self.aim.at_least,
            "unit": self.aim.unit,
            "reached": self.value,
            "met": self.is_met if self.is_full else None,
            "disturbed": self.is_disturbed,
        }


def number(value: float | None) -> str:
    """A number with the digits that matter.

    >>> number(5512.3), number(26.04), number(0.153), number(None)
    ('5,512', '26.0', '0.153', '–')
    """
    if value is None:
        return "–"
    if float(value).is_integer() or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def at_path(found: Any, path: str) -> Any:
    """The entry of nested dicts that a dotted path names; None if there is none."""
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _spaced(unit: str) -> str:
    return unit if unit == "×" else f" {unit}" if unit else ""


_BOXES = ("W1", "W2", "W3", "W4")
_MEDIANS = dict(zip(_BOXES, (26.0, 51.0, 83.0, 18.0), strict=True))
_RATIOS = dict(zip(_BOXES, (210.0, 118.0, 212.0, 81.0), strict=True))


def _of_workload(name: str) -> Iterator[Aim]:
    median, ratio = _MEDIANS[name], _RATIOS[name]
    yield Aim("one event, median", "match", name, "rows.median_us", median, "µs")
    yield Aim("one event with its ids, median", "match", name, "ids.median_us", median, "µs")
    yield Aim("as fast as the scan", "match", name, "ratio", ratio, "×", at_least=True)
    yield Aim("one event, mean", "match", name, "rows.mean_us", 2 * median, "µs")
    yield Aim("p99 / p50", "match", name, "p99_to_p50", 4.0)
    yield Aim("batch against single", "batch", name, "batch_gain", 2.0, "×", at_least=True)
    yield Aim("two threads against one", "batch", name, "thread_gain", 1.8, "×", at_least=True)


AIMS: tuple[Aim, ...] = (
    *(aim for name in _BOXES for aim in _of_workload(name)),
    Aim("memory, counted", "memory", "W1", "counted_per_subscription", 300.0, "bytes/sub"),
    Aim("bulk build", "build", "W1", "us_per_subscription", 3.0, "µs/sub"),
    Aim("add, median", "changes", "W1", "add.median_us", 50.0, "µs"),
    Aim("update, median", "changes", "W1", "update.median_us", 50.0, "µs"),
    Aim("remove, median", "changes", "W1", "remove.median_us", 50.0, "µs"),
    Aim(
        "changes beside a reader", "readers", "W1", "paced.changes_per_second", 20_000.0, "/s",
        at_least=True,
    ),
    Aim("the reader's speed then", "readers", "W1", "paced.speed_kept", 0.8, at_least=True),
    Aim("open, memory-mapped", "files", "W1", "open_seconds", 0.2, "s"),
    Aim("kernels from the disk cache", "first-use", ALL, "warm.kernel_seconds", 1.0, "s"),
    Aim("kernels compiled cold", "first-use", ALL, "cold.kernel_seconds", 40.0, "s"),
)  # fmt: skip


def reached(results: Results, scale: float, aims: Sequence[Aim] = AIMS) -> Iterator[Reached]:
    """Every aim whose cell has a result at this scale."""
    for aim in aims:
        key = Key(aim.cell, aim.workload, 1.0 if aim.workload == ALL else scale)
        if key in results:
            found = results.read(key)
            shares = (found, at_path(found, aim.path.partition(".")[0]))
            share = min(s.get("cpu_share", 1.0) for s in shares if isinstance(s, dict))
            yield Reached(aim, at_path(found, aim.path), share, key.scale == 1.0)
