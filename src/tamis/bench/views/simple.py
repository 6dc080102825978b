"""Simple: the first constraints of all, then the second ones of those that are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.algorithms.simple import Simple
from tamis.bench.views.drawing import COMPARED, LIGHT, VALUE, name_axes, sketch
from tamis.bench.views.subject import Subject


def draw_simple(subject: Subject) -> Any:
    """A row a subscription, a panel a column of constraints."""
    simple = Simple(subject.names)
    subject.put_into(simple)
    found = simple.match(subject.event)
    low, high = (side.reshape(len(subject), -1) for side in (simple.stored.low, simple.stored.high))
    left = np.ones(len(subject), np.bool_)
    stages = []
    for k, name in enumerate(subject.names):
        value = subject.event.get(name, np.nan)
        is_met = (low[:, k] <= value) & (value <= high[:, k])
        stages.append((left, left & is_met))
        left = left & is_met
    n_compared = sum(int(looked_at.sum()) for looked_at, _ in stages)
    figure, panels = sketch(
        f"Simple — {subject.title}",
        f"{len(subject)} subscriptions, {n_compared} comparisons with an interval; "
        f"{len(found)} match",
        {"compared, holds": VALUE, "compared, does not": COMPARED, "not looked at": LIGHT},
        [1] * len(subject.names),
    )
    for k, (panel, (looked_at, kept)) in enumerate(zip(panels, stages, strict=True)):
        colours = np.where(kept, VALUE, np.where(looked_at, COMPARED, LIGHT)).tolist()
        panel.barh(range(len(subject)), high[:, k] - low[:, k], left=low[:, k], color=colours)
        _finish(panel, subject, k, int(looked_at.sum()), int(kept.sum()))
    return figure


def _finish(panel: Any, subject: Subject, k: int, n_before: int, n_after: int) -> None:
    name = subject.names[k]
    if name in subject.event:
        panel.axvline(subject.event[name], color="black", linewidth=1.0, linestyle=":")
    panel.invert_yaxis()
    panel.set_xlim(0, 1)
    panel.set_yticks(range(0, len(subject), max(1, len(subject) // 6)))
    held = f"{name} = {subject.event[name]:g}" if name in subject.event else f"no {name}"
    name_axes(panel, f"constraint {k + 1}: {n_before} compared, {n_after} left", held)
    if k == 0:
        panel.set_ylabel("subscription", fontsize=8)
