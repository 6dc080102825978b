"""DEXIN (seed 1): figures 2 to 17 of section 4."""

from __future__ import annotations

from collections.abc import Callable

from tamis.bench.reproduce.boxes import BoxSet, measure_boxes, measure_plans
from tamis.bench.reproduce.checks import (
    About,
    Against,
    Check,
    Closes,
    Grown,
    Less,
    Lowest,
    On,
    Trend,
    Way,
)
from tamis.bench.reproduce.datasets import dexin_boxes, matching_boxes, mixed_zipf, scaled
from tamis.bench.reproduce.figures import TAMIS, Experiment, Figure, Line, Metric, Paper
from tamis.bench.reproduce.reasons import DEXIN as REASONS
from tamis.bench.workloads import Workload

DEXIN = Line("dexin", "DEXIN", "dexin")
LISTS = Line("lists", "DEXIN, linked lists", "dexin", {"is_ordered": False})
NEAR = Line("near", "near-optimal", "dexin", {"plan": "near_optimal"})
OPTIMAL = Line("optimal", "optimal", "dexin", {"plan": "optimal"})
EXCLUSIVE = Line("exclusive", "exclusive only", "dexin", {"plan": "exclusive"})
INCLUSIVE = Line("inclusive", "inclusive only", "dexin", {"plan": "inclusive"})
_OTHERS = (
    Line("tama", "TAMA", "tama"),
    Line("h_tree", "H-Tree", "h_tree"),
    Line("be_tree", "BE-Tree", "be_tree"),
    Line("op_index", "OpIndex", "op_index"),
    Line("rein", "REIN", "rein"),
)
_RIVALS = tuple(line.key for line in _OTHERS)
_LINES = (*_OTHERS, DEXIN, TAMIS)
_SHOWN = tuple(line.key for line in _LINES)
_MILLION = 1_000_000
_ZIPF = 1.0  # the paper gives no exponent

_SIZES = (250_000, 750_000, 1_000_000, 1_750_000)
_ATTRIBUTES = (2, 6, 10, 16, 22)
_WIDTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
_RATES = (0.001, 0.01, 0.05, 0.1, 0.2)


def _make(sized: Callable[[float, int], Workload]) -> Callable[[float, float], BoxSet]:
    """At a million subscriptions, times the scale."""
    return lambda point, scale: BoxSet(sized(point, scaled(_MILLION, scale)))


def _over_n(name: str, lines: tuple[Line, ...], zipf: float) -> Experiment:
    return Experiment(
        name,
        "subscriptions",
        _SIZES,
        (250_000, 1_000_000),
        lines,
        lambda n, scale: BoxSet(dexin_boxes(scaled(n, scale), zipf=zipf)),
        measure_boxes,
        size=lambda n: n,
    )


def _over_m(name: str, zipf: float) -> Experiment:
    make = _make(lambda m, n: dexin_boxes(n, int(m), zipf=zipf))
    return Experiment(name, "attributes", _ATTRIBUTES, (10, 22), _LINES, make, measure_boxes)


def _over_theta(name: str, zipf: float) -> Experiment:
    make = _make(lambda theta, n: dexin_boxes(n, theta=theta, zipf=zipf))
    axis = "θ, the width of the intervals"
    return Experiment(name, axis, _WIDTHS, (0.1, 0.9), _LINES, make, measure_boxes)


_ETA = Experiment(
    "eta",
    "η, the cardinality of the values",
    (1e2, 1e3, 1e4, 1e6),
    (1e2, 1e4),
    _LINES,
    _make(lambda eta, n: dexin_boxes(n, levels=int(eta))),
    measure_boxes,
)
_LAMBDA = Experiment(
    "lambda",
    "λ, the share of points",
    (0.1, 0.3, 0.5, 0.7, 0.9),
    (0.1, 0.5, 0.9),
    _LINES,
    _make(lambda share, n: dexin_boxes(n, points=share)),
    measure_boxes,
)
_XI = Experiment(
    "xi",
    "ξ, the matching rate",
    _RATES,
    (0.001, 0.2),
    _LINES,
    _make(lambda rate, n: matching_boxes(n, rate)),
    measure_boxes,
)
_PLAN = Experiment(
    "plan",
    "attributes",
    (2, 6, 10, 14, 18, 22),
    (6, 14),
    (NEAR, OPTIMAL, TAMIS),
    _make(lambda m, n: dexin_boxes(n, int(m), zipf=mixed_zipf(int(m)))),
    measure_plans,
)
_METHODS = Experiment(
    "methods",
    "ξ, the matching rate",
    _RATES,
    (0.001, 0.2),
    (DEXIN, EXCLUSIVE, INCLUSIVE, TAMIS),
    _make(lambda rate, n: matching_boxes(n, rate)),
    measure_boxes,
)

_TIME = Metric("match.mean_ms", "ms an event, mean", "match.std_ms")
_DEVIATION = Metric("match.std_ms", "ms, standard deviation")


def _skewed(number: str, over: str, experiment: str, checks: tuple[Check, ...]) -> Figure:
    return Figure(
        number,
        f"Matching time over {over}, Zipf",
        experiment,
        (_TIME,),
        "Skewed values slow all six down; DEXIN, the fastest also with uniform ones, the least.",
        (
            *(Against(Grown(key)) for key in (*_RIVALS, "dexin")),
            Against(Lowest("dexin", _RIVALS)),
            *checks,
        ),
        note="With the exponent 1; the paper gives neither an exponent nor numbers of this. "
        "Times as much: as with uniform values.",
        beside=experiment.removeprefix("zipf-"),
    )


PAPER = Paper(
    "dexin",
    "DEXIN: Fan, Liu, Tang, dynamic exclusive and inclusive methods, FGCS 2017",
    "10 attributes, all constrained; θ drawn from [0.2, 0.8] for each constraint, η = 10⁴ levels "
    "of values, λ = 10 % points, 1M subscriptions unless varied; DEXIN with 1,500 buckets. The "
    "paper: Java, 2.8 GHz Xeon, 1,000 events.",
    (
        _over_n("n", (*_LINES[:-1], LISTS, TAMIS), 0.0),
        _over_m("m", 0.0),
        _over_theta("theta", 0.0),
        _over_n("zipf-n", _LINES, _ZIPF),
        _over_m("zipf-m", _ZIPF),
        _over_theta("zipf-theta", _ZIPF),
        _ETA,
        _LAMBDA,
        _XI,
        _PLAN,
        _METHODS,
    ),
    (
        Figure(
            "2",
            "Matching time over the number of subscriptions",
            "n",
            (_TIME,),
            "DEXIN needs on average 20.2 % of the time of TAMA, 64.3 % of H-Tree, 68.4 % of "
            "BE-Tree, 26.4 % of OpIndex and 38.5 % of REIN.",
            (
                Less("dexin", "tama", 1 / 0.2018),
                Less("dexin", "h_tree", 1 / 0.6428),
                Less("dexin", "be_tree", 1 / 0.6836),
                Less("dexin", "op_index", 1 / 0.264),
                Less("dexin", "rein", 1 / 0.3849),
            ),
            lines=_SHOWN,
            is_headline=True,
        ),
        Figure(
            "3",
            "Standard deviation of the matching time over the number of subscriptions",
            "n",
            (_DEVIATION,),
            "The deviations average 27.5 (TAMA), 36.0 (H-Tree), 5.7 (BE-Tree), 13.4 (OpIndex), "
            "11.9 (REIN) and 1.5 (DEXIN), the lowest at every size.",
            (Lowest("dexin", _RIVALS),),
            lines=_SHOWN,
            is_headline=True,
        ),
        Figure(
            "4",
            "Matching time over the number of attributes",
            "m",
            (_TIME,),
            "TAMA, BE-Tree, OpIndex and REIN grow with M; DEXIN is nearly flat from M = 6 on, and "
            "the fastest.",
            (
                *(Trend(key, Way.RISES) for key in ("tama", "be_tree", "op_index", "rein")),
                Trend("dexin", Way.FLAT, since=6),
                Lowest("dexin", _RIVALS),
            ),
            note="The paper gives no number.",
        ),
        Figure(
            "5",
            "Standard deviation of the matching time over the number of attributes",
            "m",
            (_DEVIATION,),
            "The deviations average 28.1 (TAMA), 39.3 (H-Tree), 6.2 (BE-Tree), 11.4 (OpIndex), "
            "11.5 (REIN) and 1.7 (DEXIN).",
            (Lowest("dexin", _RIVALS),),
        ),
        Figure(
            "6",
            "Matching time over the width of the intervals",
            "theta",
            (_TIME,),
            "TAMA and H-Tree grow with θ (H-Tree is the fastest up to 0.3), REIN falls, DEXIN is "
            "nearly flat.",
            (
                Trend("tama", Way.RISES),
                Trend("h_tree", Way.RISES),
                Trend("rein", Way.FALLS),
                Trend("dexin", Way.FLAT),
                Lowest("h_tree", (*_RIVALS, "dexin"), below=0.35),
            ),
            is_headline=True,
        ),
        _skewed("7", "the number of subscriptions", "zipf-n", (Lowest("dexin", _RIVALS),)),
        _skewed(
            "8",
            "the number of attributes",
            "zipf-m",
            (Lowest("dexin", _RIVALS), Trend("dexin", Way.FLAT, since=6)),
        ),
        _skewed("9", "the width of the intervals", "zipf-theta", (Trend("dexin", Way.FLAT),)),
        Figure(
            "10",
            "Matching time over the cardinality of the values",
            "eta",
            (_TIME,),
            "From η = 10³ on all six are steady; DEXIN is ahead of the others by 26.9 % at least.",
            (
                *(Trend(key, Way.FLAT, since=1e3) for key in (*_RIVALS, "dexin")),
                *(Less("dexin", key, 1 / (1 - 0.2688)) for key in _RIVALS),
            ),
        ),
        Figure(
            "11",
            "Matching time over the share of points",
            "lambda",
            (_TIME,),
            "TAMA, H-Tree, BE-Tree and OpIndex fall as points become more, REIN and DEXIN are "
            "nearly flat; DEXIN is the fastest below 60 %.",
            (
                *(Trend(key, Way.FALLS) for key in ("tama", "h_tree", "be_tree", "op_index")),
                Trend("rein", Way.FLAT),
                Trend("dexin", Way.FLAT),
                Lowest("dexin", _RIVALS, below=0.6),
            ),
        ),
        Figure(
            "12",
            "Matching time over the matching rate",
            "xi",
            (_TIME,),
            "TAMA, H-Tree, BE-Tree and OpIndex grow with ξ, REIN falls, DEXIN is steady and 42.5 % "
            "ahead of BE-Tree, the next best.",
            (
                *(Trend(key, Way.RISES) for key in ("tama", "h_tree", "be_tree", "op_index")),
                Trend("rein", Way.FALLS),
                Trend("dexin", Way.FLAT),
                Less("dexin", "be_tree", 1 / (1 - 0.4246)),
                Lowest("dexin", _RIVALS),
            ),
            is_headline=True,
        ),
        Figure(
            "13",
            "Total subscribing time over the number of subscriptions",
            "n",
            (Metric("insert_s", "s in all"),),
            "DEXIN subscribes faster than TAMA, H-Tree, BE-Tree and OpIndex, a little slower than "
            "REIN; with linked lists instead of trees that is made good.",
            (
                *(Less("dexin", key) for key in ("tama", "h_tree", "be_tree", "op_index")),
                Less("rein", "dexin"),
                Less("lists", "dexin"),
            ),
            is_headline=True,
            note="The paper gives no numbers. All subscriptions are given at once.",
        ),
        Figure(
            "14",
            "Memory over the number of subscriptions",
            "n",
            (Metric("bytes", "MB", factor=1e-6),),
            "DEXIN needs a little more than REIN and less than the others; with linked lists as "
            "much as REIN.",
            (
                *(Less("dexin", key) for key in ("tama", "h_tree")),
                Less("rein", "dexin"),
                About("rein", "lists", 1.2),
            ),
            is_headline=True,
            note="The paper gives no numbers. Ordered buckets are sorted arrays here, which are no "
            "larger than unsorted ones.",
        ),
        Figure(
            "15",
            "Matching cost of the two plans",
            "plan",
            (Metric("cost", "cost by the paper's model"),),
            "The gap between the near-optimal and the optimal plan closes with M; from M = 10 on "
            "the costs are almost equal.",
            (About("near", "optimal", 1.05, since=10), Closes("near", "optimal")),
            note="The cost of a plan is the paper's formula (7): subscriptions excluded, and "
            "candidates asked on one more attribute, as a share of all. Tamis makes no plan; for "
            "it the words of 64 bits that it ANDs and the subscriptions that it tests are counted, "
            "one each.",
        ),
        Figure(
            "16",
            "Matching time of the two plans",
            "plan",
            (_TIME, Metric("matching_ms", "without the plan")),
            "Without the time to make the plan both match equally fast from M = 10 on; with it the "
            "optimal one is slower, the gap growing exponentially.",
            (
                Less("near", "optimal", at=22, of="with the plan"),
                Trend("optimal", Way.RISES, since=6),
                On(1, About("near", "optimal", 1.2, since=10, of="without")),
            ),
            note="The dotted lines leave out the time to make the plan. The paper gives no number.",
        ),
        Figure(
            "17",
            "Matching time of the exclusive and of the inclusive method alone",
            "methods",
            (_TIME,),
            "From a matching rate of 0.1 % to 20 % exclusive alone falls, inclusive alone rises; "
            "DEXIN, which chooses, is steady.",
            (
                Trend("exclusive", Way.FALLS),
                Trend("inclusive", Way.RISES),
                Trend("dexin", Way.FLAT),
                Lowest("dexin", ("exclusive",)),
            ),
            is_headline=True,
        ),
    ),
    REASONS,
)
