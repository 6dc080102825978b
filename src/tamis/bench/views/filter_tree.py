"""The filter tree: the And-paths of the paper's three car filters, and the descent of two ads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tamis.bench.views.drawing import COMPARED, GREY, LIGHT, VALUE, draw_box, sketch

# Seed 4, section 2.7: F1 is mark=FORD&model=FOCUS&model=MONDEO&year=2016, two paths.
PATHS = (
    ("F1", (("mark", "FORD", "FORD"), ("model", "FOCUS", "FOCUS"), ("year", "2016", "2016"))),
    ("F1", (("mark", "FORD", "FORD"), ("model", "MONDEO", "MONDEO"), ("year", "2016", "2016"))),
    ("F2", (("year", "2014", "2016"),)),
    ("F3", (("mark", "FORD", "FORD"), ("model", "MONDEO", "MONDEO"))),
)
ADS = {
    "A1": {"mark": "FORD", "model": "MONDEO", "year": "2016"},
    "A2": {"mark": "BMW", "model": "3ER", "year": "2015"},
}
Term = tuple[str, str, str]  # name, first and last value


@dataclass(slots=True)
class Node:
    """A value of a path; the filters whose path ends here; what comes next."""

    term: Term | None = None
    filters: list[str] = field(default_factory=list)
    children: dict[Term, Node] = field(default_factory=dict)


def draw_filter_tree() -> Any:
    """The tree for each of the two ads."""
    root = merged()
    told = {ad: sorted(_found(root, event)) for ad, event in ADS.items()}
    words = "; ".join(f"{ad} satisfies {', '.join(found)}" for ad, found in told.items())
    figure, panels = sketch(
        "Filter tree — three car filters as merged paths, and two ads that descend",
        words,
        {
            "visited, a filter ends here": VALUE,
            "visited": COMPARED,
            "compared, does not hold": GREY,
            "not looked at": LIGHT,
        },
        [1] * len(ADS),
    )
    for panel, (ad, event) in zip(panels, ADS.items(), strict=True):
        _draw_tree(panel, root, event)
        panel.set_title(f"{ad}: {', '.join(event.values())}", fontsize=9)
    return figure


def merged() -> Node:
    """The paths as a tree."""
    root = Node()
    for name, path in PATHS:
        node = root
        for term in path:
            node = node.children.setdefault(term, Node(term))
        node.filters.append(name)
    return root


def _covers(node: Node, event: Mapping[str, str]) -> bool:
    if node.term is None:
        return True
    name, first, last = node.term
    return name in event and first <= event[name] <= last


def _found(node: Node, event: Mapping[str, str]) -> set[str]:
    """The filters of the nodes that an event reaches."""
    if not _covers(node, event):
        return set()
    return set(node.filters).union(*(_found(child, event) for child in node.children.values()))


def _draw_tree(panel: Any, root: Node, event: Mapping[str, str]) -> None:
    n_leaves = 0

    def draw(node: Node, depth: int, is_reached: bool) -> float:
        nonlocal n_leaves
        is_visited = is_reached and _covers(node, event)
        below = [draw(child, depth + 1, is_visited) for child in node.children.values()]
        x = sum(below) / len(below) if below else float(n_leaves)
        n_leaves += not below
        for to_x, child in zip(below, node.children.values(), strict=True):
            panel.plot([x, to_x], [depth, depth + 1], color=GREY, linewidth=0.8, zorder=0)
            name = child.term[0] if child.term else ""
            middle = (x + to_x) / 2 + 0.04, depth + 0.52
            panel.text(
                *middle, name, fontsize=8, style="italic", ha="center", va="center", zorder=2,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )  # fmt: skip
        _draw_node(panel, node, (x, depth), is_reached, is_visited)
        return x

    draw(root, 0, True)
    panel.set_xlim(-0.6, n_leaves - 0.4)
    panel.set_ylim(3.45, -0.4)
    panel.axis("off")


def _draw_node(
    panel: Any, node: Node, at: tuple[float, int], is_reached: bool, is_visited: bool
) -> None:
    colours = (VALUE, COMPARED) if is_visited else (GREY, GREY) if is_reached else (LIGHT, LIGHT)
    colour = colours[0] if node.filters else colours[1]
    x, y = at
    draw_box(panel, (x - 0.42, y - 0.26), (x + 0.42, y + 0.26), facecolor=colour, zorder=1)
    words = "root"
    if node.term is not None:
        _, first, last = node.term
        words = first if first == last else f"{first}–{last}"
    if node.filters:
        words += f" → {', '.join(node.filters)}"
    ink = "white" if colour in (VALUE, GREY) else "black"
    panel.text(x, y, words, ha="center", va="center", fontsize=8, color=ink, zorder=2)
