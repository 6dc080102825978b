"""MO-Tree: the overlapping cells of each layer that an event stabs, and who is left."""

from __future__ import annotations

from typing import Any

from tamis.algorithms.mo_trace import Layer
from tamis.algorithms.mo_tree import MOTree
from tamis.bench.views.drawing import COMPARED, GREY, LIGHT, VALUE, draw_candidates, panels
from tamis.bench.views.subject import Subject


def draw_mo_tree(subject: Subject) -> Any:
    """The picture of one event; every attribute is a layer."""
    tree = MOTree(subject.names, n_indexed=len(subject.names), indexed=subject.names)
    subject.put_into(tree)
    trace = tree.trace(subject.event)
    figure, above, below = panels(len(trace.layers), f"MO-Tree — {subject.title}")
    for layer, panel in zip(trace.layers, above, strict=True):
        _draw_layer(panel, layer)
    stages = [("all", trace.n_subscriptions, GREY)]
    stages += [(f"layer {layer.attribute}", layer.n_left, COMPARED) for layer in trace.layers]
    draw_candidates(below, [*stages, ("verified", len(trace.survivors), VALUE)])
    below.set_title(
        f"{trace.n_visited:,} of {trace.n_buckets:,} buckets are visited, {trace.n_candidates:,} "
        f"subscriptions verified, {len(trace.survivors):,} match",
        fontsize=10,
    )
    return figure


def _draw_layer(panel: Any, layer: Layer) -> None:
    """A line a cell, the narrowest level at the bottom; visited cells are coloured."""
    at = 0.0
    for level in layer.levels:
        for number, (begin, end) in enumerate(level.cells):
            colour = COMPARED if number in level.visited else LIGHT
            panel.barh(at, end - begin, left=begin, height=0.8, color=colour)
            panel.text(
                (begin + end) / 2, at, f"{level.n_entries[number]:,}",
                ha="center", va="center", fontsize=8,
            )  # fmt: skip
            at += 1
        at += 0.5
    panel.axvline(layer.value, color=VALUE, linewidth=1.2, linestyle=":")
    panel.set_yticks([])
    panel.set_title(f"layer {layer.attribute}: {layer.n_visited} cells visited", fontsize=10)
    panel.set_xlabel(f"{layer.attribute} = {layer.value:g}", fontsize=8)
