"""BE-Tree: its nodes, and those that an event visits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tamis.algorithms.be_tree import BETree
from tamis.algorithms.kernels.be_tree import N_CELLS
from tamis.bench.views.drawing import COMPARED, GREY, LIGHT, draw_box, sketch
from tamis.bench.views.subject import Subject

MAX_SIZE = 4


def draw_be_tree(subject: Subject) -> Any:
    """The tree, the root on top; a node has its range and the length of its list."""
    tree = BETree(subject.names, max_size=MAX_SIZE)
    subject.put_into(tree)
    visited = tree.visited(subject.event)
    places = _places(tree)
    n_checked = sum(int(tree.tree.size[node]) for node in visited)
    figure, panels = sketch(
        f"BE-Tree — {subject.title}",
        f"{len(subject)} subscriptions, each in one of {len(places)} lists; {len(visited)} lists "
        f"are visited, {n_checked} subscriptions checked, {len(tree.match(subject.event))} match",
        {"visited: checked": COMPARED, "not visited": LIGHT},
        [1],
    )
    panel = panels[0]
    n_leaves = max(x for x, _ in places.values()) + 1
    fontsize = min(7.0, 72 / n_leaves)  # so that the words stay within their node
    for node, (x, y) in places.items():
        for child in _children(tree, node):
            to_x, to_y = places[child]
            panel.plot([x, to_x], [y, to_y], color=GREY, linewidth=0.8, zorder=0)
        _draw_node(panel, _words_of(tree, subject.names, node), (x, y), node in visited, fontsize)
    panel.set_xlim(-0.6, max(1.0, n_leaves) - 0.4)
    panel.set_ylim(max(y for _, y in places.values()) + 0.5, -0.5)
    panel.axis("off")
    panel.set_title("a node: its attribute and range, and how many are in its list", fontsize=9)
    return figure


def _children(tree: BETree, node: int) -> Iterator[int]:
    """The halves of a node, and the nodes of its parts."""
    arrays = tree.tree
    for half in arrays.halves[node].tolist():
        if half >= 0:
            yield half
    part = int(arrays.parts[node])
    while part >= 0:
        yield int(arrays.top[part])
        part = int(arrays.sibling[part])


def _places(tree: BETree) -> dict[int, tuple[float, int]]:
    """Where each node stands: leaves side by side, others above the middle of their children."""
    places: dict[int, tuple[float, int]] = {}
    n_leaves = 0

    def place(node: int, depth: int) -> float:
        nonlocal n_leaves
        below = [place(child, depth + 1) for child in _children(tree, node)]
        if below:
            x = (below[0] + below[-1]) / 2
        else:
            x = float(n_leaves)
            n_leaves += 1
        places[node] = x, depth
        return x

    place(0, 0)
    return places


def _words_of(tree: BETree, names: tuple[str, ...], node: int) -> tuple[str, str]:
    """The range of a node, and how many are in its list."""
    arrays = tree.tree
    part, size = int(arrays.part_of[node]), str(int(arrays.size[node]))
    if part < 0:
        return "all", size
    first, last = int(arrays.first[node]) / N_CELLS, (int(arrays.last[node]) + 1) / N_CELLS
    return f"{names[arrays.attribute[part]]} {first:g}–{last:g}", size


def _draw_node(
    panel: Any, words: tuple[str, str], at: tuple[float, int], is_visited: bool, fontsize: float
) -> None:
    x, y = at
    colour = COMPARED if is_visited else LIGHT
    draw_box(panel, (x - 0.45, y - 0.32), (x + 0.45, y + 0.32), facecolor=colour, zorder=1)
    panel.text(x, y - 0.13, words[0], ha="center", va="center", fontsize=fontsize)
    panel.text(x, y + 0.15, words[1], ha="center", va="center", fontsize=9)
