"""H-Tree: a subscription in its cells, and the buckets that an event visits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.algorithms.h_tree import HTree
from tamis.bench.views.drawing import (
    COMPARED,
    LIGHT,
    TAKEN,
    VALUE,
    draw_box,
    draw_plane,
    draw_values,
    name_axes,
    sketch,
)
from tamis.bench.views.subject import Subject

_PALE = "#b0b0b0"


def draw_h_tree(subject: Subject) -> Any:
    """The plane with its cells, and the buckets of their combinations."""
    tree = HTree(subject.names)
    subject.put_into(tree)
    visited = set(tree.visited(subject.event))
    checked = {slot for cells in visited for slot in tree.bucket(*cells).tolist()}
    found = tree.match(subject.event)
    n = tree.n_cells + 1
    n_entries = sum(len(tree.bucket(i, j)) for i in range(n) for j in range(n))
    figure, panels = sketch(
        f"H-Tree — {subject.title}",
        f"{len(subject)} subscriptions in {n_entries} places; {len(visited)} of {n * n} buckets "
        f"are visited, {len(checked)} subscriptions checked, {len(found)} match",
        {
            "one subscription, and its buckets": TAKEN,
            "visited buckets: checked": COMPARED,
            "not visited": LIGHT,
            "match": VALUE,
        },
        [1, 1],
    )
    example = _widest(subject, found)
    _draw_plane(panels[0], subject, tree, set(found.tolist()), example)
    _draw_buckets(panels[1], subject, tree, visited, example)
    return figure


def _widest(subject: Subject, found: npt.NDArray[np.int32]) -> int:
    """A wide subscription, which is in several buckets, if possible one that is found."""
    low, high = subject.bounds
    area = np.nan_to_num(np.prod(high - low, axis=1), nan=-1.0)
    area[found] += 1.0
    return int(np.argmax(area))


def _draw_plane(panel: Any, subject: Subject, tree: HTree, found: set[int], example: int) -> None:
    low, high = (np.stack(side) for side in zip(*_whole(subject), strict=True))
    for slot in range(len(subject)):
        colour = VALUE if slot in found else _PALE
        draw_box(panel, low[slot], high[slot], fill=False, edgecolor=colour, linewidth=0.9)
    draw_box(panel, low[example], high[example], facecolor=TAKEN, alpha=0.35)
    for cut in np.linspace(0, 1, tree.n_cells + 1)[1:-1]:
        panel.axvline(cut, color="black", linewidth=0.8)
        panel.axhline(cut, color="black", linewidth=0.8)
    draw_plane(panel, subject.names)
    draw_values(panel, subject.names, subject.event)
    panel.set_title("subscriptions, and the cells", fontsize=9)


def _whole(subject: Subject) -> list[tuple[Any, Any]]:
    """Low and high corners; the whole domain where an attribute is free."""
    low, high = subject.bounds
    is_free = np.isnan(low)
    return list(zip(np.where(is_free, 0.0, low), np.where(is_free, 1.0, high), strict=True))


def _draw_buckets(
    panel: Any, subject: Subject, tree: HTree, visited: set[tuple[int, ...]], example: int
) -> None:
    n = tree.n_cells + 1
    for i in range(n):
        for j in range(n):
            slots = tree.bucket(i, j)
            look = {"linewidth": 2.0, "edgecolor": TAKEN} if example in slots else {}
            colour = COMPARED if (i, j) in visited else LIGHT
            draw_box(panel, (i + 0.06, j + 0.06), (i + 0.94, j + 0.94), facecolor=colour, **look)
            panel.text(i + 0.5, j + 0.5, str(len(slots)), ha="center", va="center", fontsize=8)
    panel.set_xlim(0, n)
    panel.set_ylim(0, n)
    panel.set_aspect("equal")
    labels = [str(cell) for cell in range(n - 1)] + ["free"]
    for set_ticks in (panel.set_xticks, panel.set_yticks):
        set_ticks(np.arange(n) + 0.5, labels)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    a, b = subject.names[:2]
    name_axes(panel, "subscriptions in each bucket", f"cell of {a}", f"cell of {b}")
