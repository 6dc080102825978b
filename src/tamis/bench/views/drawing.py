"""What the views share: panels, colours, and the candidates that shrink."""

from __future__ import annotations

from collections.abc import Sequence
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
