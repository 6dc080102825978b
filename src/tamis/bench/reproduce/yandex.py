"""Streaming matching of events (seed 4): throughput and latency of a node, figures 8 and 10."""

from __future__ import annotations

from tamis.bench.reproduce.checks import AtMost, Less, On, Power
from tamis.bench.reproduce.datasets import scaled
from tamis.bench.reproduce.figures import TAMIS, Experiment, Figure, Line, Metric, Paper
from tamis.bench.reproduce.reasons import YANDEX as REASONS
from tamis.bench.reproduce.searches import make_searches, measure_searches

ONE_PHASE = Line("one", "filter tree, one phase", "filter_tree")
TWO_PHASES = Line("two", "filter tree, two phases", "filter_tree", {"n_names": 3})

_N = Experiment(
    "n",
    "subscriptions",
    (37_500, 75_000, 150_000, 300_000),
    (75_000, 300_000),
    (ONE_PHASE, TWO_PHASES, TAMIS),
    lambda n, scale: make_searches(scaled(n, scale)),
    measure_searches,
    size=lambda n: n,
)

PAPER = Paper(
    "yandex",
    "Schitinin, Tsesko (Yandex.Classifieds): Streaming matching of events, CEE-SECR 2016",
    "300,000 searches for cars and flats: texts, ranges, a fifth with an OR, a tenth with a NOT, a "
    "tenth with a polygon or a distance; the tree is over nine attributes, that of the two phases "
    "over the three most frequent. The paper: Scala, its own services' searches; its throughput "
    "and latency are given as pictures only, and those of a cluster (figure 9) are not run again "
    "here.",
    (_N,),
    (
        Figure(
            "8",
            "Latency of an event over the number of subscriptions",
            "n",
            (
                Metric("match.mean_ms", "ms an event, mean", "match.std_ms"),
                Metric("descent.mean_ms", "the descent alone"),
                Metric("match.p99_ms", "the slowest in a hundred"),
            ),
            "With 300,000 subscriptions the time from an event to its notifications is under "
            "several seconds; matching is sub-linear in the number of subscriptions in the tree.",
            (
                On(2, AtMost("one", 1_000.0, "ms")),
                On(2, AtMost("two", 1_000.0, "ms")),
                Power("one", 0.0, 0.95, of="in all"),
                Power("two", 0.0, 0.95, of="in all"),
                On(1, Power("one", 0.0, 0.95, of="the descent")),
                On(1, Power("two", 0.0, 0.95, of="the descent")),
            ),
            is_headline=True,
            note="Of the several seconds one is given to matching, for the slowest event in a "
            "hundred. Sub-linear must be the whole as well as the descent of the tree alone, which "
            "is dotted. Behind it kernels of the index put what was found to its tests.",
        ),
        Figure(
            "10",
            "Throughput of one node over the number of subscriptions",
            "n",
            (Metric("events_per_s", "events a second"),),
            "Two phases are worth while: terms that hardly any two subscriptions share do not "
            "belong into the tree. No number is given.",
            (Less("one", "two"),),
            is_headline=True,
            is_more_better=True,
            note="On one core, one event at a time. That two phases have the higher throughput "
            "is our reading.",
        ),
    ),
    REASONS,
)
