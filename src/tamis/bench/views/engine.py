"""Tamis: lines of boxes in k-d order, those that an event leaves alive, and the bits of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.bench.extras import extra
from tamis.bench.views.drawing import COMPARED, LIGHT, TAKEN, VALUE, draw_box, name_axes, sketch
from tamis.bench.views.subject import Subject
from tamis.index.blocks import MORE_ROOM
from tamis.index.dense_block import DenseBlock
from tamis.kernels.dense_build import (
    GROUP,
    LINE,
    N_BUCKETS,
    N_COARSE,
    bucket_of,
    rank_of,
)
from tamis.kernels.scan import Boxes

Bits = npt.NDArray[np.bool_]
_A_ROW = 128  # bits of a line side by side


def draw_tamis(subject: Subject) -> Any:
    """What lines touch, which are alive, and how one of them is narrowed."""
    low, high = subject.bounds
    n, m = low.shape
    bounds = np.ascontiguousarray(np.stack([low, high], axis=2))
    block = DenseBlock.build(Boxes(np.arange(m, dtype=np.int32), bounds))
    event = np.array([subject.event.get(name, np.nan) for name in subject.names])
    found = np.zeros(n + MORE_ROOM, np.int32)
    n_found = int(block.candidates(event, found))
    arrays = block.arrays()
    touches = _touched_lines(arrays, event, -(-n // LINE))
    is_alive: Bits = np.logical_and.reduce(touches)
    bits = _bits(arrays, event, len(is_alive))
    kept = bits.all(axis=0) & np.repeat(is_alive, LINE)
    figure, panels = sketch(
        f"Tamis — {subject.title}",
        f"{n:,} subscriptions in {len(is_alive)} lines of {LINE}; {int(is_alive.sum())} lines are "
        f"alive, {int(kept.sum()):,} have their bits set in all, {n_found:,} match",
        {
            "touched, bit set": COMPARED,
            "not touched": LIGHT,
            "alive; bits set in all": VALUE,
            "ruled out": TAKEN,
        },
        [1.1, 0.8, 1.5],
    )
    _draw_coarse(panels[0], arrays["coarse"][0], subject.names[0], len(is_alive))
    if not np.isnan(event[0]):
        panels[0].axvline(_places(arrays, event, N_COARSE)[0], color="black", linestyle=":")
    _draw_lines(panels[1], subject.names, touches, is_alive)
    line = _telling_line(kept.reshape(-1, LINE).sum(axis=1), is_alive)
    order = np.argsort(bits.sum(axis=1), kind="stable")  # as an event takes them
    names = tuple(subject.names[a] for a in order)
    _draw_bits(panels[2], names, bits[order, line * LINE : (line + 1) * LINE], line)
    return figure


def _telling_line(n_kept: npt.NDArray[Any], is_alive: Bits) -> int:
    """Of the lines alive, the one in the middle by how many of its bits are left."""
    lines = np.flatnonzero(is_alive)
    return int(lines[np.argsort(n_kept[lines])[len(lines) // 2]]) if len(lines) else 0


def _places(arrays: dict[str, Any], event: npt.NDArray[np.float64], n_buckets: int) -> list[int]:
    """The bucket of each value; the last one is that of missing values."""
    edges = arrays["edges"]
    return [
        n_buckets if np.isnan(value) else int(bucket_of(rank_of(edges, a, value), n_buckets))
        for a, value in enumerate(event)
    ]


def _touched_lines(arrays: dict[str, Any], event: npt.NDArray[np.float64], n_lines: int) -> Bits:
    """b1[M, L]: whether a box of the line touches the coarse bucket of the value."""
    coarse = arrays["coarse"]
    rows = [coarse[a, c] for a, c in enumerate(_places(arrays, event, N_COARSE))]
    return np.stack([_unpacked(row)[:n_lines] for row in rows])


def _bits(arrays: dict[str, Any], event: npt.NDArray[np.float64], n_lines: int) -> Bits:
    """b1[M, positions]: whether the box at a position touches the bucket of the value."""
    pool = arrays["pool"].reshape(-(-n_lines // GROUP), len(event), N_BUCKETS + 1, -1)
    rows = [pool[:, a, b].ravel() for a, b in enumerate(_places(arrays, event, N_BUCKETS))]
    return np.stack([_unpacked(row)[: n_lines * LINE] for row in rows])


def _unpacked(words: npt.NDArray[np.uint64]) -> Bits:
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)


def _draw_coarse(panel: Any, coarse: Any, name: str, n_lines: int) -> None:
    """Lines downwards, buckets of one attribute from left to right."""
    touched = np.stack([_unpacked(row)[:n_lines] for row in coarse[:N_COARSE]], axis=1)
    colours = extra("matplotlib.colors").ListedColormap([LIGHT, COMPARED])
    panel.imshow(touched, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    panel.set_yticks(range(0, n_lines, 5))
    name_axes(panel, f"values of {name} in each line", f"bucket of {name}", "line")


def _draw_lines(panel: Any, names: tuple[str, ...], touches: Bits, is_alive: Bits) -> None:
    for line in range(len(is_alive)):
        for a in range(len(names)):
            colour = COMPARED if touches[a, line] else LIGHT
            draw_box(panel, (a + 0.06, line + 0.1), (a + 0.94, line + 0.9), facecolor=colour)
        x, colour = len(names) + 0.3, VALUE if is_alive[line] else TAKEN
        draw_box(panel, (x, line + 0.1), (x + 0.94, line + 0.9), facecolor=colour)
    panel.set_xlim(0, len(names) + 1.3)
    panel.set_ylim(len(is_alive), 0)
    places = [*(np.arange(len(names)) + 0.5), len(names) + 0.8]
    panel.set_xticks(places, [*names, "all"])
    panel.set_yticks([])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    name_axes(panel, "lines that may match", "touch the value of")


def _draw_bits(panel: Any, names: tuple[str, ...], bits: Bits, line: int) -> None:
    """The bits of a line for the bucket of each attribute's value, then those set in all."""
    height = LINE // _A_ROW
    colours = extra("matplotlib.colors").ListedColormap(["white", LIGHT, COMPARED, VALUE])
    strips = [*(1 + row.astype(int) for row in bits), 1 + 2 * bits.all(axis=0)]
    gap = np.zeros((2, _A_ROW), int)
    rows = [part for strip in strips for part in (strip.reshape(height, _A_ROW), gap)]
    panel.imshow(
        np.vstack(rows[:-1]), aspect="auto", cmap=colours, vmin=0, vmax=3, interpolation="nearest"
    )
    labels = [f"{name}: {int(row.sum())}" for name, row in zip(names, bits, strict=True)]
    labels.append(f"all: {int(bits.all(axis=0).sum())}")
    panel.set_yticks(np.arange(len(labels)) * (height + 2) + height / 2 - 0.5, labels)
    panel.set_xticks([])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    name_axes(panel, f"line {line}: a bit a subscription", "")
