"""REIN and Pri-REIN: the bounds that refuse an event, and the bits that stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.algorithms.kernels.rein import HIGH, LOW
from tamis.algorithms.pri_rein import N_LEVELS, PriRein, PriReinS
from tamis.algorithms.rein import Rein
from tamis.bench.views.bounds import draw_bounds, name_bounds
from tamis.bench.views.drawing import COMPARED, LIGHT, TAKEN, VALUE, draw_box, name_axes, sketch
from tamis.bench.views.subject import Subject

N_BUCKETS = 16
_A_ROW = 6  # squares


def draw_rein(subject: Subject) -> Any:
    """The buckets of each attribute, and the bit set."""
    rein = Rein(subject.names, n_buckets=N_BUCKETS)
    subject.put_into(rein)
    is_marked = rein.marked_by(subject.event)
    figure, panels = sketch(
        f"REIN — {subject.title}",
        f"{len(subject)} subscriptions, {int(is_marked.sum())} are marked; "
        f"{len(rein.match(subject.event))} match",
        {
            "wrong side: marked": TAKEN,
            "the value's bucket: compared": COMPARED,
            "not looked at": LIGHT,
            "bit not set: matches": VALUE,
        },
        [1] * len(subject.names) + [0.8],
    )
    for m, (panel, name) in enumerate(zip(panels, subject.names, strict=False)):
        value = subject.event.get(name)
        own = None if value is None else rein.bucket_of(m, value)
        lower, upper = rein.bucket_counts(m, LOW), rein.bucket_counts(m, HIGH)
        draw_bounds(panel, lower, upper, own, takes_beyond=True)
        name_bounds(panel, name, value, own)
    _draw_bits(panels[-1], is_marked)
    return figure


def _draw_bits(panel: Any, is_marked: Any) -> None:
    for slot, marked in enumerate(is_marked.tolist()):
        y, x = divmod(slot, _A_ROW)
        _draw_square(panel, x, y, slot, TAKEN if marked else VALUE)
    _frame(panel, _A_ROW, -(-len(is_marked) // _A_ROW))
    name_axes(panel, "bit set: a square a subscription", "")


def draw_pri_rein(subject: Subject) -> Any:
    """The bits by priority, in both orders within a priority."""
    priority = np.arange(len(subject)) * 7 % N_LEVELS
    one, other = (kind(subject.names, n_buckets=N_BUCKETS) for kind in (PriRein, PriReinS))
    for matcher in (one, other):
        subject.put_into(matcher, priority)
    found = one.match(subject.event)
    figure, panels = sketch(
        f"Pri-REIN — {subject.title}",
        f"{len(subject)} subscriptions, {len(subject) - len(found)} are marked as by REIN; the "
        f"others are told line by line, {len(found)} match",
        {"marked: passed over": LIGHT, "not marked: told": VALUE},
        [1, 1],
    )
    titles = "pri_rein: in the order they came", "pri_rein_s: the widest first"
    for panel, matcher, title in zip(panels, (one, other), titles, strict=True):
        _draw_levels(panel, matcher, matcher.marked_by(subject.event))
        told = ", ".join(str(slot) for slot in matcher.match(subject.event)[:10])
        more = ", …" if len(found) > 10 else ""
        name_axes(panel, title, f"told: {told or 'nobody'}{more}")
    panels[0].set_ylabel("priority, the highest first", fontsize=8)
    return figure


def _draw_levels(panel: Any, matcher: PriRein, is_marked: Any) -> None:
    widest = 1
    for priority in range(N_LEVELS):
        slots = matcher.level(priority)
        widest = max(widest, len(slots))
        for x, slot in enumerate(slots.tolist()):
            _draw_square(panel, x, priority, slot, LIGHT if is_marked[slot] else VALUE)
    _frame(panel, widest, N_LEVELS)
    panel.set_aspect("auto")
    panel.axis("on")
    panel.spines[:].set_visible(False)
    panel.set_xticks([])
    panel.set_yticks([y + 0.5 for y in range(N_LEVELS)], [str(y) for y in range(N_LEVELS)])
    panel.tick_params(length=0)


def _draw_square(panel: Any, x: int, y: int, slot: int, colour: str) -> None:
    draw_box(panel, (x + 0.04, y + 0.06), (x + 0.96, y + 0.94), facecolor=colour)
    ink = "black" if colour == LIGHT else "white"
    panel.text(x + 0.5, y + 0.52, str(slot), ha="center", va="center", fontsize=8, color=ink)


def _frame(panel: Any, n_columns: int, n_rows: int) -> None:
    panel.set_xlim(0, n_columns)
    panel.set_ylim(n_rows, 0)
    panel.set_aspect("equal")
    panel.axis("off")
