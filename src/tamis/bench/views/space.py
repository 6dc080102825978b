"""R*-Tree and BEQ-Tree: boxes and points of a plane, and the leaves that are searched."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.algorithms.beq_tree import BEQTree, Leaf
from tamis.algorithms.r_star_tree import RStarTree
from tamis.bench.extras import extra
from tamis.bench.views.drawing import (
    COMPARED,
    GREY,
    LIGHT,
    VALUE,
    draw_box,
    draw_plane,
    draw_values,
    name_axes,
    sketch,
)
from tamis.bench.views.subject import Subject
from tamis.values import Range

CAPACITY = 8
_REACH = 0.17  # half the width of the window of a subscription


def draw_r_star_tree(subject: Subject) -> Any:
    """The boxes of the leaves in the plane, and how many subscriptions each leaf has."""
    tree = RStarTree(subject.names)
    subject.put_into(tree)
    found = tree.match(subject.event)
    leaves = tree.leaves()
    point = [subject.event.get(name) for name in subject.names]
    searched = [
        all(v is None or box[m] <= v <= box[m + 2] for m, v in enumerate(point))
        for _, box in leaves
    ]
    n_searched = sum(
        len(slots) for (slots, _), is_in in zip(leaves, searched, strict=True) if is_in
    )
    figure, panels = sketch(
        f"R*-Tree — {subject.title}",
        f"{len(subject)} subscriptions in {len(leaves)} leaves; {sum(searched)} leaves with "
        f"{n_searched} subscriptions are searched, {len(found)} match",
        {"searched leaves": COMPARED, "other leaves": GREY, "matches": VALUE},
        [1, 1],
    )
    _draw_boxes(panels[0], *subject.bounds)
    for (_, box), is_in in zip(leaves, searched, strict=True):
        look = {"edgecolor": COMPARED, "linewidth": 2.5} if is_in else {"edgecolor": GREY}
        draw_box(panels[0], box[:2], box[2:], fill=False, **look)
    for slot in found:
        low, high = (side[slot] for side in subject.bounds)
        draw_box(panels[0], low, high, fill=False, edgecolor=VALUE, linewidth=1.0)
    draw_plane(panels[0], subject.names)
    draw_values(panels[0], subject.names, subject.event)
    panels[0].set_title("subscriptions, and the boxes of the leaves", fontsize=9)
    _draw_leaves(panels[1], leaves, searched, set(found.tolist()))
    return figure


def _draw_boxes(panel: Any, low: Any, high: Any) -> None:
    """All boxes at once: one by one, hundreds take a second."""
    corners = (low, np.c_[high[:, 0], low[:, 1]], high, np.c_[low[:, 0], high[:, 1]])
    polygons = extra("matplotlib.collections").PolyCollection(
        np.stack(corners, axis=1), facecolors="none", edgecolors="#c8c8c8", linewidths=0.4
    )
    panel.add_collection(polygons)


def _draw_leaves(
    panel: Any, leaves: list[tuple[list[int], list[float]]], searched: list[bool], found: set[int]
) -> None:
    for y, ((slots, _), is_in) in enumerate(zip(leaves, searched, strict=True)):
        n_found = len(found.intersection(slots))
        panel.barh(y, len(slots), color=COMPARED if is_in else LIGHT)
        panel.barh(y, n_found, color=VALUE)
        told = f"{n_found} of {len(slots)} match" if is_in else "not searched"
        panel.text(len(slots) / 2, y, told, ha="center", va="center", fontsize=8)
    panel.invert_yaxis()
    panel.set_yticks([])
    name_axes(panel, "subscriptions in each leaf", "subscriptions", "leaf")


def draw_beq_tree(subject: Subject) -> Any:
    """The quadtree with the window of a subscription, and the orders within one leaf.

    The events that are kept lie in the middles of the boxes; the subscription asks for
    what is near the event.
    """
    tree = BEQTree(subject.names, capacity=CAPACITY)
    events = (subject.bounds[0] + subject.bounds[1]) / 2
    tree.add_events(events)
    window = {
        name: (max(0.0, value - _REACH), min(1.0, value + _REACH))
        for name, value in sorted(subject.event.items())
    }
    found = tree.match_subscription({name: Range(*span) for name, span in window.items()})
    leaves = tree.leaves()
    spans = [window.get(name, (0.0, 1.0)) for name in subject.names]
    touched = [leaf for leaf in leaves if _touches(leaf, spans)]
    asked = ", ".join(f"{name} {low:.2f} to {high:.2f}" for name, (low, high) in window.items())
    figure, panels = sketch(
        f"BEQ-Tree — subscription: {asked or 'anything'}",
        f"{len(events)} events in {len(leaves)} leaves; {len(touched)} leaves with "
        f"{sum(len(leaf.orders[0]) for leaf in touched)} events are searched, {len(found)} match",
        {"searched leaves": COMPARED, "holds; matches": VALUE, "does not": GREY},
        [1, 1.1],
    )
    _draw_quads(panels[0], leaves, touched, spans)
    for slots, colour in ((np.arange(len(events)), GREY), (found, VALUE)):
        panels[0].plot(events[slots, 0], events[slots, 1], "o", color=colour, markersize=3.5)
    draw_plane(panels[0], subject.names)
    panels[0].set_title("events, the quadtree, and the window", fontsize=9)
    fullest = max(touched or leaves, key=lambda leaf: len(np.intersect1d(leaf.orders[0], found)))
    _draw_orders(panels[1], fullest, events, subject.names, spans)
    return figure


def _touches(leaf: Leaf, spans: list[tuple[float, float]]) -> bool:
    return all(
        begin < low + leaf.width and low <= end
        for low, (begin, end) in zip(leaf.corner, spans, strict=False)
    )


def _draw_quads(
    panel: Any, leaves: list[Leaf], touched: list[Leaf], spans: list[tuple[float, float]]
) -> None:
    for leaf in leaves:
        far = leaf.corner[0] + leaf.width, leaf.corner[1] + leaf.width
        if any(leaf is one for one in touched):
            draw_box(panel, leaf.corner, far, facecolor=COMPARED, alpha=0.35)
        draw_box(panel, leaf.corner, far, fill=False, edgecolor="black", linewidth=0.5)
    low, high = zip(*spans[:2], strict=True)
    draw_box(panel, low, high, fill=False, edgecolor=VALUE, linewidth=1.8)


def _draw_orders(
    panel: Any, leaf: Leaf, events: Any, names: tuple[str, ...], spans: list[tuple[float, float]]
) -> None:
    """A line an attribute: its values in the leaf, in order, with the span that is asked for."""
    for m, (order, (begin, end)) in enumerate(zip(leaf.orders, spans, strict=True)):
        values = events[order, m]
        is_met = (begin <= values) & (values <= end)
        draw_box(panel, (begin, m - 0.25), (end, m + 0.25), facecolor=LIGHT)
        panel.plot([0, 1], [m, m], color=GREY, linewidth=0.6, zorder=1)
        for keep, colour in ((~is_met, GREY), (is_met, VALUE)):
            panel.plot(values[keep], np.full(keep.sum(), m), "o", color=colour, markersize=5)
        panel.text(
            1.02, m, f"{int(is_met.sum())} of {len(values)}", va="center", fontsize=8
        )  # fmt: skip
    panel.set_xlim(0, 1.2)
    panel.set_xticks(np.linspace(0, 1, 6))
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_yticks(range(len(names)), [f"by {name}" for name in names])
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    name_axes(panel, "one searched leaf: its events in order of each attribute", "value")
