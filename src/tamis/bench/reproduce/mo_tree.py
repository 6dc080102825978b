"""MO-Tree (seed 3): figures 4 to 12 and table 5 of section 6."""

from __future__ import annotations

from functools import partial

import numpy as np

from tamis.bench.reproduce.boxes import BoxSet, measure_boxes
from tamis.bench.reproduce.checks import About, Less, Trend, Way
from tamis.bench.reproduce.datasets import scaled
from tamis.bench.reproduce.figures import TAMIS, Experiment, Figure, Line, Metric, Paper
from tamis.bench.reproduce.kept import N_QUERIES, Both, Kept, measure_kept, measure_memory
from tamis.bench.reproduce.places import placed_boxes, placed_events, trading_areas
from tamis.bench.reproduce.reasons import MO_TREE as REASONS
from tamis.bench.workloads import SEED, Floats

_INDEXED = ("lon", "lat", "a3", "a4", "a5", "a6")  # the place and the most popular: section 4.2
MO_TREE = Line("mo_tree", "MO-Tree", "mo_tree", {"indexed": _INDEXED})
TAMA = Line("tama", "TAMA", "tama")
R_TREE = Line("r_star_tree", "R*-Tree", "r_star_tree")
OP_INDEX = Line("op_index", "OpIndex", "op_index")
BEQ_TREE = Line("beq_tree", "BEQ-Tree", "beq_tree")
_FINDERS = (MO_TREE, TAMA, R_TREE, OP_INDEX, TAMIS)
_KEEPERS = (MO_TREE, BEQ_TREE, R_TREE, TAMIS)
_MILLION = 1_000_000
_SIZES = (1_000_000, 2_000_000, 3_000_000, 5_000_000)
_N_PREDICATES = (4, 6, 8, 10)
_ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def _kept(n: int, k: int = 6, zipf: float = 1.0) -> Kept:
    return Kept(placed_boxes(N_QUERIES, k, zipf), _events(n, zipf))


def _events(n: int, zipf: float = 1.0) -> Floats:
    areas = trading_areas(np.random.default_rng([SEED, 41]))
    return placed_events(np.random.default_rng([SEED, 43]), n, areas, zipf)


_NS = Experiment(
    "ns",
    "subscriptions",
    _SIZES,
    (1_000_000,),
    _FINDERS,
    lambda n, scale: BoxSet(placed_boxes(scaled(n, scale))),
    partial(measure_boxes, changes=True),
    size=lambda n: n,
)
_KS = Experiment(
    "ks",
    "constraints of a subscription",
    _N_PREDICATES,
    (4, 10),
    _FINDERS,
    lambda k, scale: BoxSet(placed_boxes(scaled(_MILLION, scale), int(k))),
    measure_boxes,
)
_NE = Experiment(
    "ne",
    "events",
    _SIZES,
    (1_000_000, 2_000_000),
    _KEEPERS,
    lambda n, scale: _kept(scaled(n, scale)),
    measure_kept,
    size=lambda n: n,
)
_KE = Experiment(
    "ke",
    "constraints of a subscription",
    _N_PREDICATES,
    (4, 10),
    _KEEPERS,
    lambda k, scale: _kept(scaled(_MILLION, scale), int(k)),
    measure_kept,
)
_ALPHA = Experiment(
    "alpha",
    "α, the exponent of the attributes",
    _ALPHAS,
    (0.0, 1.0),
    _FINDERS,
    lambda zipf, scale: BoxSet(placed_boxes(scaled(_MILLION, scale), zipf=zipf)),
    measure_boxes,
)
_ALPHA_EVENTS = Experiment(
    "alpha-events",
    "α, the exponent of the attributes",
    _ALPHAS,
    (0.0, 1.0),
    _KEEPERS,
    lambda zipf, scale: _kept(scaled(_MILLION, scale), zipf=zipf),
    measure_kept,
)
_MEMORY = Experiment(
    "memory",
    "subscriptions, and as many events",
    _SIZES,
    (1_000_000,),
    (
        MO_TREE,
        R_TREE,
        Line("tama_beq", "TAMA + BEQ-Tree", "tama+beq_tree"),
        Line("op_index_beq", "OpIndex + BEQ-Tree", "op_index+beq_tree"),
        TAMIS,
    ),
    lambda n, scale: Both(
        BoxSet(placed_boxes(scaled(n, scale), n_events=10)), _events(scaled(n, scale))
    ),
    measure_memory,
    size=lambda n: 2 * n,
)

_TIME = Metric("match.mean_ms", "ms an event, mean", "match.std_ms")
_QUERY = Metric("match.mean_ms", "ms a subscription, mean", "match.std_ms")
_INSERT = Metric("insert_us", "µs each")
_REMOVE = Metric("remove_us", "µs each")
_STORED = "Of Tamis, `EventStore` holds the events."
_INTO_ALL = "Some are added to or removed from those that are there."

PAPER = Paper(
    "mo-tree",
    "MO-Tree: Dian et al., a data structure for events and subscriptions",
    "1M subscriptions of 6 constraints on 20 attributes unless varied: longitude and latitude, the "
    "others drawn by Zipf (α = 1); events of 15 to 20 attributes, the place always. The places are "
    "not taxi traces but made in their manner: 10,000 trading areas around 40 centres for events, "
    "pick-up points around these areas for subscriptions, 0.5 to 2 km to each side in a city of "
    "100 km. MO-Tree indexes the place and the four most popular other attributes. The paper: C++, "
    "3.6 GHz, 10,000 events. Its 5M subscriptions and events are measured as far as the figures "
    "show.",
    (_NS, _KS, _NE, _KE, _ALPHA, _ALPHA_EVENTS, _MEMORY),
    (
        Figure(
            "4",
            "Event matching time over the number of subscriptions",
            "ns",
            (_TIME,),
            "At 5M subscriptions MO-Tree is 17.2 times as fast as TAMA, 18.5 times as R*-Tree and "
            "60.4 times as OpIndex.",
            (
                Less("mo_tree", "tama", 17.2, is_last=True),
                Less("mo_tree", "r_star_tree", 18.5, is_last=True),
                Less("mo_tree", "op_index", 60.4, is_last=True),
            ),
            is_headline=True,
        ),
        Figure(
            "5",
            "Event matching time over the constraints of a subscription",
            "ks",
            (_TIME,),
            "With 10 constraints MO-Tree is 15.6 times as fast as TAMA, 47.2 times as R*-Tree and "
            "57.3 times as OpIndex; it gains with more constraints, the others lose.",
            (
                Less("mo_tree", "tama", 15.6, at=10),
                Less("mo_tree", "r_star_tree", 47.2, at=10),
                Less("mo_tree", "op_index", 57.3, at=10),
                Trend("mo_tree", Way.FALLS),
                Trend("tama", Way.RISES),
                Trend("r_star_tree", Way.RISES),
                Trend("op_index", Way.RISES),
            ),
        ),
        Figure(
            "6",
            "Subscription matching time over the number of events",
            "ne",
            (_QUERY,),
            "At 5M events MO-Tree is 3.9 times as fast as BEQ-Tree and 628 times as R*-Tree; all "
            "three grow with the events.",
            (
                Less("mo_tree", "beq_tree", 3.9, is_last=True),
                Less("mo_tree", "r_star_tree", 628.0, is_last=True),
                Trend("mo_tree", Way.RISES),
                Trend("beq_tree", Way.RISES),
                Trend("r_star_tree", Way.RISES),
            ),
            is_headline=True,
            note=_STORED,
        ),
        Figure(
            "7",
            "Subscription matching time over the constraints of a subscription",
            "ke",
            (_QUERY,),
            "With 10 constraints MO-Tree is 17.5 times as fast as BEQ-Tree and 669 times as "
            "R*-Tree; both trees gain with more constraints, BEQ-Tree loses.",
            (
                Less("mo_tree", "beq_tree", 17.5, at=10),
                Less("mo_tree", "r_star_tree", 668.7, at=10),
                Trend("mo_tree", Way.FALLS),
                Trend("r_star_tree", Way.FALLS),
                Trend("beq_tree", Way.RISES),
            ),
            note=_STORED,
        ),
        Figure(
            "table 5",
            "Event matching time over the skew of the attributes",
            "alpha",
            (_TIME,),
            "From α = 1 to 0 MO-Tree goes from 0.96 to 1.27 ms, R*-Tree from 29.0 to 8.4 ms, TAMA "
            "(10.3) and OpIndex (35) hardly change; at 0 it is 8.1, 6.5 and 26.3 times as fast.",
            (
                Less("mo_tree", "tama", 8.1, at=0.0),
                Less("mo_tree", "r_star_tree", 6.5, at=0.0),
                Less("mo_tree", "op_index", 26.3, at=0.0),
                Trend("mo_tree", Way.FALLS),
                Trend("tama", Way.FLAT),
                Trend("op_index", Way.FLAT),
            ),
        ),
        Figure(
            "table 5 subscriptions",
            "Subscription matching time over the skew of the attributes",
            "alpha-events",
            (_QUERY,),
            "From α = 1 to 0 MO-Tree goes from 0.99 to 1.32 ms, R*-Tree from 192 to 127 ms, "
            "BEQ-Tree (2.8) does not change; at 0 MO-Tree is 2.1 times as fast as BEQ-Tree, 96.5 "
            "times as R*-Tree.",
            (
                Less("mo_tree", "beq_tree", 2.1, at=0.0),
                Less("mo_tree", "r_star_tree", 96.5, at=0.0),
                Trend("mo_tree", Way.FALLS),
                Trend("beq_tree", Way.FLAT),
            ),
            note=_STORED,
        ),
        Figure(
            "8",
            "Event insertion time over the number of events",
            "ne",
            (_INSERT,),
            "MO-Tree inserts 1,235 times as fast as BEQ-Tree and 4,345 times as fast as R*-Tree.",
            (
                Less("mo_tree", "beq_tree", 1235.0),
                Less("mo_tree", "r_star_tree", 4345.0),
            ),
            is_headline=True,
            note=_INTO_ALL + " " + _STORED,
        ),
        Figure(
            "9",
            "Event deletion time over the number of events",
            "ne",
            (_REMOVE,),
            "MO-Tree deletes 497 times as fast as BEQ-Tree and 25,817 times as fast as R*-Tree, in "
            "about the time that it inserts.",
            (
                Less("mo_tree", "beq_tree", 497.0),
                Less("mo_tree", "r_star_tree", 25817.0),
            ),
            is_headline=True,
            note=_INTO_ALL + " " + _STORED,
        ),
        Figure(
            "10",
            "Subscription insertion time over the number of subscriptions",
            "ns",
            (Metric("add_us", "µs each"),),
            "MO-Tree inserts 22.9 times as fast as TAMA, 2,476 times as R*-Tree and 0.98 times as "
            "OpIndex.",
            (
                Less("mo_tree", "tama", 22.9),
                Less("mo_tree", "r_star_tree", 2476.0),
                About("mo_tree", "op_index", 1.5),
            ),
            is_headline=True,
            note=_INTO_ALL,
        ),
        Figure(
            "11",
            "Subscription deletion time over the number of subscriptions",
            "ns",
            (_REMOVE,),
            "MO-Tree deletes 2,238 times as fast as TAMA, 16,019 times as R*-Tree and 2,701 times "
            "as OpIndex.",
            (
                Less("mo_tree", "tama", 2238.0),
                Less("mo_tree", "r_star_tree", 16019.0),
                Less("mo_tree", "op_index", 2701.0),
            ),
            is_headline=True,
            note=_INTO_ALL,
        ),
        Figure(
            "12",
            "Memory of as many subscriptions as events",
            "memory",
            (Metric("bytes", "MB", factor=1e-6),),
            "At 1M MO-Tree is 96.1 % more efficient than R*-Tree, 111.6 % than TAMA and BEQ-Tree, "
            "52.4 % than OpIndex and BEQ-Tree; at 5M 168.9 %, 181.6 % and 103.5 %.",
            (
                Less("mo_tree", "r_star_tree", 1.961),
                Less("mo_tree", "tama_beq", 2.116),
                Less("mo_tree", "op_index_beq", 1.524),
            ),
            is_headline=True,
            note="Tamis is the index and the event store.",
        ),
    ),
    REASONS,
)
