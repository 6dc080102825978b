"""GEM (seed 0): figures 4 to 11 of section III."""

from __future__ import annotations

from functools import partial

from tamis.bench.reproduce.boxes import BoxSet, measure_boxes, measure_plans
from tamis.bench.reproduce.checks import About, Less, Lowest, On, Trend, Way
from tamis.bench.reproduce.datasets import gem_boxes, scaled
from tamis.bench.reproduce.figures import TAMIS, Experiment, Figure, Line, Metric, Paper
from tamis.bench.reproduce.reasons import GEM as REASONS

TAMA = Line("tama", "TAMA", "tama")
H_TREE = Line("h_tree", "H-Tree", "h_tree")
REIN = Line("rein", "REIN", "rein")
GEM_0 = Line("gem0", "GEM ω=0", "gem", {"n_caches": 0})
GEM_10 = Line("gem10", "GEM ω=10", "gem", {"n_caches": 10})
GEM_20 = Line("gem20", "GEM ω=20", "gem", {"n_caches": 20})
NEAR = Line("near", "near-optimal", "gem", {"n_caches": 0, "plan": "near_optimal"})
OPTIMAL = Line("optimal", "optimal", "gem", {"n_caches": 0, "plan": "optimal"})
_LINES = (TAMA, H_TREE, REIN, GEM_0, GEM_10, GEM_20, TAMIS)
_OTHERS = ("tama", "h_tree", "rein")
_MILLION = 1_000_000

_N = Experiment(
    "n",
    "subscriptions",
    (10_000, 250_000, 500_000, 1_000_000, 1_500_000, 2_000_000),
    (250_000, 1_000_000),
    _LINES,
    lambda n, scale: BoxSet(gem_boxes(scaled(n, scale))),
    partial(measure_boxes, changes=True),
    size=lambda n: n,
)
_M = Experiment(
    "m",
    "attributes",
    (2, 6, 10, 14, 20),
    (10, 20),
    _LINES,
    lambda m, scale: BoxSet(gem_boxes(scaled(_MILLION, scale), m=int(m))),
    measure_boxes,
)
_THETA = Experiment(
    "theta",
    "θ, the width of the intervals",
    (0.1, 0.3, 0.5, 0.7, 0.8),
    (0.1, 0.7),
    _LINES,
    lambda theta, scale: BoxSet(gem_boxes(scaled(_MILLION, scale), theta=theta)),
    measure_boxes,
)
_PLAN = Experiment(
    "plan",
    "attributes",
    (2, 6, 10, 14, 18, 20),
    (6, 14, 20),
    (NEAR, OPTIMAL, TAMIS),
    lambda m, scale: BoxSet(gem_boxes(scaled(_MILLION, scale), m=int(m))),
    measure_plans,
)

_TIME = Metric("match.mean_ms", "ms an event, mean", "match.std_ms")

PAPER = Paper(
    "gem",
    "GEM: Fan, Liu, Tang, An Analytic Geometrical Approach to Fast Event Matching, 2016",
    "Low bounds from [0, 1-θ], high bounds from [θ, 1], ends open or closed at random, θ = 0.5, 10 "
    "attributes, 1M subscriptions unless varied; TAMA with 13 levels, H-Tree with 4 cells on 6 "
    "attributes, REIN with 1,000 buckets, GEM with 80 cells. The paper: Java, 2.6 GHz Xeon, 500 "
    "events.",
    (_N, _M, _THETA, _PLAN),
    (
        Figure(
            "4",
            "Matching time over the number of subscriptions",
            "n",
            (_TIME,),
            "GEM without caches needs on average 78.2 % less time than TAMA, 63.5 % less than "
            "H-Tree and 53.9 % less than REIN; 10 and 20 caches save a further 66.5 % and 78.2 %.",
            (
                Less("gem0", "tama", 1 / (1 - 0.782)),
                Less("gem0", "h_tree", 1 / (1 - 0.635)),
                Less("gem0", "rein", 1 / (1 - 0.539)),
                Less("gem10", "gem0", 1 / (1 - 0.665)),
                Less("gem20", "gem0", 1 / (1 - 0.782)),
            ),
            is_headline=True,
        ),
        Figure(
            "5",
            "Standard deviation of the matching time over the number of subscriptions",
            "n",
            (Metric("match.std_ms", "ms, standard deviation"),),
            "The deviations average 18.7 (TAMA), 43.3 (H-Tree), 7.4 (REIN), 2.2, 1.0 and 1.4 (GEM "
            "with 0, 10 and 20 caches): GEM is the steadiest at every size.",
            (
                Lowest("gem0", _OTHERS),
                Lowest("gem10", _OTHERS),
                Lowest("gem20", _OTHERS),
            ),
            is_headline=True,
        ),
        Figure(
            "6",
            "Matching time over the number of attributes",
            "m",
            (_TIME,),
            "On average 1.77 s (TAMA), 1.07 s (H-Tree), 0.85 s (REIN), 0.36, 0.12 and 0.08 s (GEM "
            "with 0, 10 and 20 caches); the others grow with M, GEM is nearly flat.",
            (
                Less("gem0", "tama", 1.7704 / 0.3605),
                Less("gem0", "h_tree", 1.0697 / 0.3605),
                Less("gem0", "rein", 0.8494 / 0.3605),
                Less("gem20", "gem0", 0.3605 / 0.0784),
                Trend("gem0", Way.FLAT),
                Trend("tama", Way.RISES),
                Trend("rein", Way.RISES),
            ),
            is_headline=True,
        ),
        Figure(
            "7",
            "Matching time over the width of the intervals",
            "theta",
            (_TIME,),
            "On average 1.44 s (TAMA), 1.57 s (H-Tree), 0.89 s (REIN), 0.37, 0.11 and 0.07 s (GEM "
            "with 0, 10 and 20 caches); TAMA and H-Tree grow with θ, REIN falls.",
            (
                Less("gem0", "tama", 1.44 / 0.3712),
                Less("gem0", "h_tree", 1.5705 / 0.3712),
                Less("gem0", "rein", 0.8949 / 0.3712),
                Less("gem20", "gem0", 0.3712 / 0.0743),
                Trend("tama", Way.RISES),
                Trend("h_tree", Way.RISES),
                Trend("rein", Way.FALLS),
            ),
            is_headline=True,
        ),
        Figure(
            "8",
            "Total insertion time over the number of subscriptions",
            "n",
            (Metric("insert_s", "s in all"),),
            "A subscription takes 0.298 ms (TAMA), 0.212 (H-Tree), 0.056 (REIN), 0.032, 0.081 and "
            "0.149 ms (GEM with 0, 10 and 20 caches) to insert.",
            (
                Less("gem0", "tama", 0.2981 / 0.0321),
                Less("gem0", "h_tree", 0.2118 / 0.0321),
                Less("gem0", "rein", 0.0557 / 0.0321),
                Less("gem0", "gem10", 0.0813 / 0.0321),
                Less("gem0", "gem20", 0.1490 / 0.0321),
            ),
            is_headline=True,
            note="All subscriptions are given at once, to every algorithm.",
        ),
        Figure(
            "9",
            "Total deletion time over the number of subscriptions",
            "n",
            (Metric("remove_s", "s in all"),),
            "A subscription takes 0.229 ms (TAMA), 0.164 (H-Tree), 0.033 (REIN), 0.017, 0.073 and "
            "0.126 ms (GEM with 0, 10 and 20 caches) to delete.",
            (
                Less("gem0", "tama", 0.2289 / 0.0166),
                Less("gem0", "h_tree", 0.1636 / 0.0166),
                Less("gem0", "rein", 0.0329 / 0.0166),
                Less("gem0", "gem10", 0.0732 / 0.0166),
                Less("gem0", "gem20", 0.1258 / 0.0166),
            ),
            is_headline=True,
            note="Some are removed from those that are there; the total is the time of one times "
            "their number.",
        ),
        Figure(
            "10",
            "Memory over the number of subscriptions",
            "n",
            (Metric("bytes", "MB", factor=1e-6),),
            "A subscription takes 7.12 KB (TAMA), 4.27 (H-Tree), 1.38 (REIN), 0.94, 1.98 and 3.68 "
            "KB (GEM with 0, 10 and 20 caches).",
            (
                Less("gem0", "tama", 7.12 / 0.94),
                Less("gem0", "h_tree", 4.27 / 0.94),
                Less("gem0", "rein", 1.38 / 0.94),
                Less("gem0", "gem10", 1.98 / 0.94),
                Less("gem0", "gem20", 3.68 / 0.94),
            ),
            is_headline=True,
            note="Counted from the arrays, the constraints of the subscriptions included.",
        ),
        Figure(
            "11",
            "The two decision algorithms",
            "plan",
            (_TIME, Metric("matching_ms", "without the plan")),
            "Without the time to make the plan both match about equally fast from M = 10 on; with "
            "it the optimal one is slower from M = 6 on, the gap growing exponentially.",
            (
                Less("near", "optimal", at=6, of="with the plan"),
                Less("near", "optimal", at=20, of="with the plan"),
                Trend("optimal", Way.RISES, since=6),
                On(1, About("near", "optimal", 1.2, of="without")),
            ),
            note="The dotted lines leave out the time to make the plan. The paper gives no number.",
            is_headline=True,
        ),
    ),
    REASONS,
)
