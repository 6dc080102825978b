"""Bounds in buckets: what REIN and Siena have in common to draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.bench.views.drawing import COMPARED, LIGHT, TAKEN, name_axes

Counts = npt.NDArray[Any]


def draw_bounds(
    panel: Any, lower: Counts, upper: Counts, own: int | None, *, takes_beyond: bool
) -> None:
    """Low bounds upwards, high bounds downwards, by bucket.

    With ``takes_beyond`` low bounds above the value's own bucket are taken and high bounds
    below it, otherwise the others; the own bucket is compared. If the event lacks the value
    (no own bucket) all low bounds are taken, or nothing.
    """
    places = np.arange(len(lower))
    for counts, is_high in ((lower, False), (-upper, True)):
        colours = np.full(len(places), LIGHT)
        if own is not None:
            is_above = places > own
            is_below = places < own
            colours[is_above if takes_beyond != is_high else is_below] = TAKEN
            colours[own] = COMPARED
        elif takes_beyond and not is_high:
            colours[:] = TAKEN
        panel.bar(places, counts, width=0.9, color=colours.tolist())
    panel.axhline(0, color="black", linewidth=0.8)
    panel.set_xticks(range(0, len(places), 5))
    panel.yaxis.get_major_locator().set_params(integer=True)
    panel.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")


def name_bounds(panel: Any, name: str, value: float | None, own: int | None) -> None:
    """The words around it."""
    held = f"bucket; the event has no {name}" if value is None else f"bucket; {value:g} is in {own}"
    name_axes(panel, f"bounds on {name}", held, "high ends | low ends")
