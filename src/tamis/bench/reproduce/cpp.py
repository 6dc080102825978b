"""The papers' algorithms in C++ on such a machine, to tell whether ours are of that tier."""

from __future__ import annotations

from tamis.bench.reproduce.boxes import BoxSet, measure_boxes
from tamis.bench.reproduce.checks import AtMost
from tamis.bench.reproduce.figures import TAMIS, Experiment, Figure, Line, Metric, Paper
from tamis.bench.reproduce.mo_tree import MO_TREE, OP_INDEX, TAMA
from tamis.bench.workloads import FULL_SIZES, make

REIN = Line("rein", "REIN", "rein")
_SLOWER = 1.5  # so many times the C++ is still the same tier
_MEDIAN = (Metric("match.median_ms", "ms an event, median"),)


def _experiment(workload: str, *lines: Line) -> Experiment:
    n = FULL_SIZES[workload]
    return Experiment(
        workload,
        "subscriptions",
        (n,),
        (n,),
        (*lines, TAMIS),
        lambda n, scale: BoxSet(make(workload, scale)),
        measure_boxes,
        size=lambda n: n,
    )


def _figure(workload: str, claim: str, **ms: float) -> Figure:
    return Figure(
        workload,
        f"Event matching time on {workload}",
        workload,
        _MEDIAN,
        claim,
        tuple(AtMost(line, round(_SLOWER * held, 3), "ms") for line, held in ms.items()),
        is_headline=True,
        note=f"Claimed is {_SLOWER} times what the C++ takes.",
    )


PAPER = Paper(
    "cpp",
    "The same algorithms in C++",
    "What implementations in C++ with AVX2 took on one core of such a machine, measured apart from "
    "this project, against ours: kernels of Numba over arrays. The workloads are those of "
    "[engine.md](engine.md).",
    (
        _experiment("W1", REIN, TAMA, OP_INDEX),
        _experiment("W3", REIN),
        _experiment("W4", MO_TREE),
    ),
    (
        _figure(
            "W1",
            "A million subscriptions on ten attributes: REIN takes 11.4 ms, TAMA 10.3 and OpIndex "
            "36.7 in C++.",
            rein=11.4,
            tama=10.3,
            op_index=36.7,
        ),
        _figure(
            "W3", "Half a million of 5 of 50 attributes: REIN takes 10.6 ms in C++.", rein=10.6
        ),
        _figure(
            "W4", "A million of 6 of 20 attributes: MO-Tree takes 0.48 ms in C++.", mo_tree=0.48
        ),
    ),
    source="In C++",
)
