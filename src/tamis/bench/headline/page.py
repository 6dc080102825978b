"""``docs/performance.md``: the headline figures of all parts, written from their result files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tamis.bench.headline.parts import Part
from tamis.bench.headline.pictures import ALT_TEXTS, draw_pictures
from tamis.bench.headline.sheets import SHEETS, aims_of_all
from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.tables import Sheet


def write_page(parts: Sequence[Part], root: Path, scale: float, path: Path) -> list[Path]:
    """Write the page and its plots (in ``figures`` beside it); return the files."""
    measured = {part.name: _measured(part, root, scale) for part in parts}
    if not any(measured.values()):
        raise NothingMeasured(
            f"no results at scale {scale:g} in {root}; run `tamis bench all --scale {scale:g}` "
            "first"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = draw_pictures(list(parts), root, scale, path.parent / "figures")
    figures = {name: os.path.relpath(file, path.parent) for name, file in drawn.items()}
    everything = [whole for held in measured.values() for whole in held]
    sections = [
        _introduction(parts, root, scale, path, figures),
        *(_section(part, root, scale, figures) for part in parts),
        "## All aims\n\n" + aims_of_all(parts, root, scale).to_markdown(),
        "## Which run this is\n\n" + _runs(parts, measured).to_markdown() + "\n" + _METHOD
        + describe_machine(everything),
    ]  # fmt: skip
    path.write_text("\n".join(section.rstrip() + "\n" for section in sections))
    return [path, *drawn.values()]


def _measured(part: Part, root: Path, scale: float) -> list[dict[str, Any]]:
    results = part.results(root)
    return [whole for key in part.keys(scale) if (whole := results.whole(key))]


def _introduction(
    parts: Sequence[Part], root: Path, scale: float, path: Path, figures: dict[str, str]
) -> str:
    where = os.path.relpath(root, path.parent)
    files = f"`{root}`" if where.startswith("..") else f"[result files]({where})"
    text = (
        "# Performance\n\n"
        f"Written by `tamis bench all --scale {scale:g} --report` from {files}; do not edit. "
        "`make bench` measures all of it anew.\n\n"
    )
    text += _picture("engine", figures)
    return text + _summary(parts, root, scale).to_markdown()


def _summary(parts: Sequence[Part], root: Path, scale: float) -> Sheet:
    """How many aims of each part are met, and where more is told."""
    sheet = Sheet("Parts", ("part", "more", "aims judged", "met"), n_names=2)
    for part in parts:
        judged = [one for one in part.reached(root, scale) if one.verdict != "–"]
        met = sum(one.is_met for one in judged)
        counts = (str(len(judged)), str(met)) if judged else ("–", "–")
        anchor = part.title.lower().replace(" ", "-").replace("'", "")
        sheet.rows.append((f"[{part.title}](#{anchor})", part.page, *counts))
    return sheet


def _section(part: Part, root: Path, scale: float, figures: dict[str, str]) -> str:
    sheets = [sheet for sheet in SHEETS[part.name](part.results(root), scale) if sheet.rows]
    text = f"## {part.title}\n\n"
    if not sheets:
        return text + "*Not measured yet.*\n"
    text += "\n".join(sheet.to_markdown() for sheet in sheets)
    text += f"\n{_NOTES[part.name]} More: {part.page}.\n\n"
    return text if part.name == "engine" else text + _picture(part.name, figures)


def _picture(name: str, figures: dict[str, str]) -> str:
    return f"![{ALT_TEXTS[name]}]({figures[name]})\n\n" if name in figures else ""


def _runs(parts: Sequence[Part], measured: dict[str, list[dict[str, Any]]]) -> Sheet:
    """Of each part how much was measured, when, of which commit, and how busy the machine was."""
    columns = ("part", "from", "to", "commit", "cells", "minutes", "load")
    sheet = Sheet("Runs", columns, n_names=4)
    for part in parts:
        held = measured[part.name]
        cells = f"{len(held)} of {len(part.cells)}"
        if not held:
            sheet.rows.append((part.name, "–", "–", "–", cells, "–", "–"))
            continue
        dates = sorted(str(whole["date"]) for whole in held)
        commits = sorted({whole["commit"] or "unknown" for whole in held})
        loads = [whole["load"] for whole in held]
        took = [whole["seconds"] for whole in held if whole.get("seconds") is not None]
        minutes = f"{sum(took) / 60:.1f}" if len(took) == len(held) else "–"
        load = f"{min(loads)} to {max(loads)}"
        sheet.rows.append(
            (part.name, dates[0], dates[-1], ", ".join(commits), cells, minutes, load)
        )
    return sheet


_NOTES = {
    "engine": """\
One event at a time until the matching rows are there (median and p99); *batch* is 1,000 events at
once on one thread. W1 to W4 are the workloads of the papers, W5 has texts, negations and shapes.
The scan is vectorised and timed in the same rounds. In the plot above DuckDB and Polars join a
batch and may use all cores; who could only be run on fewer subscriptions is left out.""",
    "algorithms": """\
Every algorithm behind the one interface, with its default parameters, compared with a scan before
it is timed; processor time of one thread, median of the best rounds. `tama` finds a superset, as in
its paper; BEQ-Tree, which keeps events, is left out.""",
    "events": """\
Subscriptions that move and events that stay valid: medians, beside MO-Tree and BEQ-Tree of our
registry and `rtree`. Memory is what a fresh process grows by.""",
    "store": """\
Requests come at a steady rate and count from the moment they were due; client, service and
database share the machine. *Flat out* is with 16 users who ask again at once.""",
    "delivery": "`tamis send` to one receiver on the same machine.",
    "startup": """\
Fresh processes on warm disk caches, kernels compiled before; `tamis serve` has its pipeline
starting beside it.""",
    "spark": """\
Parquet to Parquet is measured beside the index alone, and against the join one would write without
Tamis; the stream brings 2,000 events a second.""",
}
_METHOD = """\
- Results are checked before anything is timed; what is wrong ends its cell, and has no number here.
- Aims are judged at full size only. Ratios are taken between timings of the same rounds.
- The pages of the parts have more figures, of other runs than this one.
"""
