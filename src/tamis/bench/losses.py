"""Where the engine loses: what the result files say against it, in words."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.bench.aims import at_path, number, reached
from tamis.bench.results import Key, Results
from tamis.bench.suite import BOXES
from tamis.bench.sweeps import SWEEPS
from tamis.bench.tables import OTHER_PATHS


def losses(results: Results, scale: float) -> list[str]:
    """A sentence for each aim that was missed and each comparison that was lost."""
    return [*_slower(results, scale), *_lost_points(results, scale), *_missed(results, scale)]


def _missed(results: Results, scale: float) -> Iterator[str]:
    for one in reached(results, scale):
        aim = one.aim
        if one.is_met or not one.is_full or one.value is None:
            continue
        yield f"{aim.workload}: {aim.what} is {number(one.value)}, wanted {aim.wanted}."


def _slower(results: Results, scale: float) -> Iterator[str]:
    for workload in BOXES:
        match = results.read(Key("match", workload, scale))
        if "ratio" not in match:
            continue
        ours, times_as_fast = match["rows"]["median_us"], match["ratio"]
        theirs = {"the scan": (match["scan"]["median_us"], 1.0)}
        for cell, path in OTHER_PATHS.items():
            found = results.read(Key(cell, workload, scale))
            if found and not found["limited"]:
                theirs[cell] = (at_path(found, path), found["ratio"])
        for name, (us, times_as_fast_as_scan) in theirs.items():
            if times_as_fast < times_as_fast_as_scan:
                yield f"{workload}: {name} {number(us)} µs an event, the Index {number(ours)} µs."


def _lost_points(results: Results, scale: float) -> Iterator[str]:
    for name, sweep in SWEEPS.items():
        for workload in sweep.makers:
            keys = (Key(name, workload, scale, f"{point:g}") for point in sweep.points)
            found = [results.read(key) for key in keys if key in results]
            lost = [
                f"{point['n_subscriptions']:,}" if name == "sweep-n" else f"{point['point']:g}"
                for point in found
                if point["ratio"] < 1
            ]
            if lost:
                yield f"{workload}: the scan is faster at {sweep.word} = {', '.join(lost)}."
