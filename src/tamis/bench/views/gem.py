"""GEM: the triangle of each step with its subareas, the plan, and who is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.algorithms.gem import Gem
from tamis.algorithms.pipeline import Area, Step
from tamis.bench.extras import extra
from tamis.bench.views.drawing import COMPARED, TAKEN, VALUE, draw_note, panels
from tamis.bench.views.steps import draw_steps, note_of, title_of
from tamis.bench.views.subject import Subject

N_CELLS = 20


def draw_gem(subject: Subject) -> Any:
    """The picture of one event, without caches, so that all areas of a step are there."""
    gem = Gem(subject.names, n_cells=N_CELLS, n_caches=0)
    subject.put_into(gem)
    trace = gem.trace(subject.event)
    figure, above, below = panels(len(trace.steps), f"GEM — {subject.title}")
    for number, (step, panel) in enumerate(zip(trace.steps, above, strict=True), start=1):
        if step.method == "exclude":
            _draw_triangle(panel, gem, subject.names.index(step.attribute), step, number)
        else:
            draw_note(panel, title_of(step, number), note_of(step))
    draw_steps(below, trace)
    return figure


def _draw_triangle(panel: Any, gem: Gem, m: int, step: Step, number: int) -> None:
    """Rows are cells of the high bound, columns of the low one; darker cells hold more."""
    counts = np.ma.masked_equal(gem.cell_counts(m), 0)
    panel.imshow(counts, origin="lower", cmap="Greys", alpha=0.55, vmax=1.6 * counts.max())
    for area in step.areas:
        _draw_area(panel, area)
    cell = gem.cell_of(m, step.value)
    for line in (panel.axvline, panel.axhline):
        line(cell, color=VALUE, linewidth=0.8, linestyle=":")
    panel.set_xticks(range(0, gem.n_cells, 5))
    panel.set_yticks(range(0, gem.n_cells, 5))
    panel.set_title(title_of(step, number), fontsize=10)
    panel.set_xlabel(f"cell of low; {step.attribute} = {step.value:g} is in {cell}", fontsize=8)
    panel.set_ylabel("cell of high", fontsize=8)


def _draw_area(panel: Any, area: Area) -> None:
    (bottom, top), (left, right) = area.cells
    if top < bottom or right < left:
        return
    colour = COMPARED if area.is_compared else TAKEN
    corners = [(left - 0.5, bottom - 0.5), (left - 0.5, top + 0.5), (right + 0.5, top + 0.5)]
    if area.is_compared:
        corners.append((right + 0.5, bottom - 0.5))
    polygon = extra("matplotlib.patches").Polygon
    panel.add_patch(polygon(corners, facecolor=colour, edgecolor=colour, alpha=0.35))
    share = 0.5 if area.is_compared else 0.3  # A and B are triangles: their middle is up left
    inside = left + share * (right - left), top - share * (top - bottom)
    panel.text(*inside, area.name, ha="center", va="center", fontsize=9, fontweight="bold")
