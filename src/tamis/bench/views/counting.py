"""Siena, TAMA and OpIndex: where an event finds what it satisfies, and the counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.algorithms.op_index import OpIndex
from tamis.algorithms.siena import Siena
from tamis.algorithms.tama import ExactTama, Tama
from tamis.bench.views.bounds import draw_bounds, name_bounds
from tamis.bench.views.drawing import COMPARED, LIGHT, TAKEN, VALUE, draw_box, name_axes, sketch
from tamis.bench.views.subject import Subject
from tamis.kernels.cells import cell_of
from tamis.kernels.predicates import AT_LEAST, AT_MOST

N_BUCKETS = 16
N_LEVELS = 5
_FALSE = "#CC79A7"
_COMPLETE = "count complete: matches"


def draw_siena(subject: Subject) -> Any:
    """The comparisons of each attribute by bucket, and the counts."""
    siena = Siena(subject.names, n_buckets=N_BUCKETS)
    subject.put_into(siena)
    counts, needed = siena.counts_of(subject.event)
    figure, panels = sketch(
        f"Siena — {subject.title}",
        f"{len(subject)} subscriptions of {int(needed.sum())} comparisons, {int(counts.sum())} "
        f"hold and are counted; {int((counts == needed).sum())} match",
        {
            "hold: counted": TAKEN,
            "the value's bucket: compared": COMPARED,
            "not looked at": LIGHT,
            _COMPLETE: VALUE,
        },
        [1] * len(subject.names) + [1.1],
    )
    for m, (panel, name) in enumerate(zip(panels, subject.names, strict=False)):
        value = subject.event.get(name)
        own = None if value is None else siena.bucket_of(m, value)
        least, most = siena.bucket_counts(m, AT_LEAST), siena.bucket_counts(m, AT_MOST)
        draw_bounds(panel, least, most, own, takes_beyond=False)
        name_bounds(panel, name, value, own)
        panel.set_title(f"comparisons with {name}", fontsize=9)
        panel.set_ylabel("at most | at least", fontsize=8)
    _draw_counts(panels[-1], counts, needed, np.where(counts == needed, VALUE, LIGHT))
    return figure


def draw_tama(subject: Subject) -> Any:
    """The layers of cells of each attribute, and the counts."""
    tama, exact = Tama(subject.names, n_levels=N_LEVELS), ExactTama(subject.names, n_levels=5)
    for matcher in (tama, exact):
        subject.put_into(matcher)
    counts, needed = tama.counts_of(subject.event)
    matches = exact.match(subject.event)
    is_match = np.isin(np.arange(len(subject)), matches)
    figure, panels = sketch(
        f"TAMA — {subject.title}",
        f"{len(subject)} subscriptions, {int(counts.sum())} entries are counted; "
        f"{int((counts == needed).sum())} are found, {len(matches)} match",
        {
            "visited cells": TAKEN,
            "others": LIGHT,
            _COMPLETE: VALUE,
            "complete, but tama_exact rejects it": _FALSE,
        },
        [1.25] * len(subject.names) + [0.9],
    )
    for m, (panel, name) in enumerate(zip(panels, subject.names, strict=False)):
        _draw_layers(panel, tama, m, name, subject.event.get(name))
    colours = np.where(is_match, VALUE, np.where(counts == needed, _FALSE, LIGHT))
    _draw_counts(panels[-1], counts, needed, colours)
    return figure


def _draw_layers(panel: Any, tama: Tama, m: int, name: str, value: float | None) -> None:
    """A row a layer, the whole domain on top; a number is that of constraints in a cell."""
    sizes = tama.cell_counts(m)
    n_leaves = len(sizes) // 2
    leaf = None if value is None else n_leaves + cell_of(tama.domains, m, value, n_leaves)
    for level in range(N_LEVELS):
        n_cells = 2**level
        for cell in range(n_cells):
            is_visited = leaf is not None and leaf >> (N_LEVELS - 1 - level) == n_cells + cell
            left, right = cell / n_cells, (cell + 1) / n_cells
            draw_box(
                panel, (left, level + 0.08), (right, level + 0.92),
                facecolor=TAKEN if is_visited else LIGHT, edgecolor="white",
            )  # fmt: skip
            size = int(sizes[n_cells + cell])
            if size:
                panel.text(
                    (left + right) / 2, level + 0.52, str(size), ha="center", va="center",
                    fontsize=8, color="white" if is_visited else "black",
                )  # fmt: skip
    if value is not None:
        panel.axvline(value, color=VALUE, linewidth=1.2, linestyle=":", zorder=2)
    panel.set_xlim(0, 1)
    panel.set_ylim(N_LEVELS, 0)
    panel.set_yticks([])
    held = f"no {name}" if value is None else f"{name} = {value:g}"
    name_axes(panel, f"cells of {name}: constraints kept", held)


def draw_op_index(subject: Subject) -> Any:
    """The lists by pivot, attribute and operator, and the counts."""
    index = OpIndex(subject.names)
    subject.put_into(index)
    sizes = index.list_sizes()[:, :, :2]
    has = np.array([name in subject.event for name in subject.names])
    is_opened = np.broadcast_to((has[:, None] & has[None, :])[:, :, None], sizes.shape)
    counts, needed = index.counts_of(subject.event)
    figure, panels = sketch(
        f"OpIndex — {subject.title}",
        f"{len(subject)} subscriptions, {int(sizes[is_opened].sum())} of {int(sizes.sum())} "
        f"comparisons are made; {len(index.match(subject.event))} match",
        {"opened lists: compared": COMPARED, "not looked at": LIGHT, _COMPLETE: VALUE},
        [1.6, 1],
    )
    _draw_lists(panels[0], subject.names, sizes, is_opened)
    _draw_counts(panels[1], counts, needed, np.where(counts == needed, VALUE, LIGHT))
    return figure


def _draw_lists(
    panel: Any, names: tuple[str, ...], sizes: npt.NDArray[Any], is_opened: npt.NDArray[np.bool_]
) -> None:
    n = len(names)
    for (pivot, m, operator), size in np.ndenumerate(sizes):
        x, is_open = 2 * m + operator, bool(is_opened[pivot, m, operator])
        if size:
            draw_box(
                panel, (x + 0.05, pivot + 0.1), (x + 0.95, pivot + 0.9),
                facecolor=COMPARED if is_open else LIGHT,
            )  # fmt: skip
            panel.text(x + 0.5, pivot + 0.52, str(size), ha="center", va="center", fontsize=9)
    panel.set_xlim(0, 2 * n)
    panel.set_ylim(n, 0)
    labels = [f"{name} {sign}" for name in names for sign in ("≥", "≤")]
    panel.set_xticks(np.arange(2 * n) + 0.5, labels)
    panel.set_yticks(np.arange(n) + 0.5, [f"pivot {name}" for name in names])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    name_axes(panel, "comparisons in each list", "attribute and operator")


def _draw_counts(
    panel: Any, counts: npt.NDArray[Any], needed: npt.NDArray[Any], colours: npt.NDArray[Any]
) -> None:
    """A bar a subscription; the mark above is what it needs."""
    places = range(len(counts))
    panel.bar(places, counts, color=colours.tolist(), width=0.85)
    panel.hlines(
        needed, np.arange(len(counts)) - 0.45, np.arange(len(counts)) + 0.45,
        color="black", linewidth=1.0,
    )  # fmt: skip
    panel.set_ylim(0, int(needed.max()) + 0.3)
    panel.yaxis.get_major_locator().set_params(integer=True)
    name_axes(panel, "counts; the mark: needed", "subscription")
