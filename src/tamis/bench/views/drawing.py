"""What the views share: panels, colours, and shapes that come often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tamis.bench.extras import extra

# Colour-blind safe (Okabe and Ito).
TAKEN, COMPARED, VALUE = "#D55E00", "#E69F00", "#0072B2"
GREY, LIGHT = "#777777", "#e6e6e6"


def panels(n_panels: int, title: str) -> tuple[Any, list[Any], Any]:
    """A figure with a row of panels, and one wide panel below."""
    figure = extra("matplotlib.figure").Figure(
        figsize=(max(8.0, 3.3 * n_panels), 6.6), layout="constrained"
    )
    figure.suptitle(title, fontsize=12)
    grid = figure.add_gridspec(2, n_panels, height_ratios=(3, 2))
    above = [figure.add_subplot(grid[0, number]) for number in range(n_panels)]
    below = figure.add_subplot(grid[1, :])
    for panel in (*above, below):
        panel.spines[["top", "right"]].set_visible(False)
    return figure, above, below


def draw_candidates(panel: Any, stages: Sequence[tuple[str, int, str]]) -> None:
    """Bars of how many candidates there are at each stage: name, number, colour."""
    places = range(len(stages))
    numbers = [number for _, number, _ in stages]
    panel.bar(places, [max(n, 0.5) for n in numbers], color=[colour for *_, colour in stages])
    panel.set_yscale("log")
    panel.set_ylim(0.5, 3.5 * max(1, *numbers))
    panel.set_xticks(list(places), [name for name, *_ in stages], fontsize=9)
    panel.set_ylabel("candidates")
    for place, number in zip(places, numbers, strict=True):
        panel.text(place, max(number, 0.5) * 1.15, f"{number:,}", ha="center", fontsize=9)


def draw_note(panel: Any, title: str, lines: Sequence[str]) -> None:
    """A panel of words instead of a picture."""
    panel.set_title(title, fontsize=10)
    panel.axis("off")
    panel.text(0.5, 0.5, "\n".join(lines), ha="center", va="center", fontsize=9, wrap=True)


def sketch(
    title: str, told: str, colours: Mapping[str, str], widths: Sequence[float]
) -> tuple[Any, list[Any]]:
    """A small figure: a row of panels, above it what was found, below it what colours mean."""
    figure = extra("matplotlib.figure").Figure(figsize=(8.0, 3.5), layout="constrained")
    figure.suptitle(f"{title}\n{told}", fontsize=10)
    grid = figure.add_gridspec(1, len(widths), width_ratios=widths)
    row = [figure.add_subplot(grid[0, number]) for number in range(len(widths))]
    for panel in row:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    patch = extra("matplotlib.patches").Patch
    keys = [patch(facecolor=colour, label=label) for label, colour in colours.items()]
    figure.legend(
        handles=keys, loc="outside lower center", ncols=len(keys), frameon=False, fontsize=8
    )
    return figure, row


def name_axes(panel: Any, title: str, x: str, y: str = "") -> None:
    """The words around a panel of a sketch."""
    panel.set_title(title, fontsize=9)
    panel.set_xlabel(x, fontsize=8)
    panel.set_ylabel(y, fontsize=8)


def draw_box(panel: Any, low: Sequence[float], high: Sequence[float], **look: Any) -> None:
    """A rectangle from one corner to the other."""
    rectangle = extra("matplotlib.patches").Rectangle
    panel.add_patch(rectangle(low, high[0] - low[0], high[1] - low[1], **look))


def draw_plane(panel: Any, names: Sequence[str]) -> None:
    """Axes for two attributes with values from 0 to 1."""
    panel.set_xlim(-0.01, 1.01)
    panel.set_ylim(-0.01, 1.01)
    panel.set_aspect("equal")
    panel.set_xlabel(names[0], fontsize=8)
    panel.set_ylabel(names[1], fontsize=8)


def draw_values(panel: Any, names: Sequence[str], event: Mapping[str, float]) -> None:
    """The event in a plane: a point, or a line where it lacks an attribute."""
    x, y = (event.get(name) for name in names[:2])
    if x is not None:
        panel.axvline(x, color=VALUE, linewidth=1.0, linestyle=":")
    if y is not None:
        panel.axhline(y, color=VALUE, linewidth=1.0, linestyle=":")
    if x is not None and y is not None:
        panel.plot([x], [y], "o", color=VALUE, markersize=5)
