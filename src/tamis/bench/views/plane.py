"""The plane: what an algorithm finds among boxes, whatever it keeps inside."""

from __future__ import annotations

from typing import Any

from tamis.algorithms import load
from tamis.bench.views.drawing import LIGHT, TAKEN, draw_box, draw_plane, draw_values, sketch
from tamis.bench.views.subject import Subject


def draw_found(algorithm: str, subject: Subject) -> Any:
    """Boxes over two attributes, those that were found coloured, and the event."""
    matcher = load(algorithm)(subject.names)
    subject.put_into(matcher)
    found = set(matcher.match(subject.event).tolist())
    figure, (panel,) = sketch(
        f"{type(matcher).__name__} — {subject.title}",
        f"{len(subject)} subscriptions; {len(found)} match",
        {"found": TAKEN, "not found": LIGHT},
        [1],
    )
    for slot, (low, high) in enumerate(zip(*subject.bounds, strict=True)):
        colour = TAKEN if slot in found else LIGHT
        draw_box(panel, low, high, fill=False, edgecolor=colour, zorder=slot in found)
    draw_plane(panel, subject.names)
    draw_values(panel, subject.names, subject.event)
    return figure
