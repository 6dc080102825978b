"""The measured part of ``docs/space-and-time.md``, written from the result files."""

from __future__ import annotations

import os
from pathlib import Path

from tamis.bench.events.figures import FIGURES, draw_plots, polygon_sheet, reader_sheet, sheet_of
from tamis.bench.events.suite import AIMS
from tamis.bench.measured_part import write_measured_part
from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.results import Results
from tamis.bench.tables import Sheet, aim_sheet


def write_report(results: Results, scale: float, path: Path) -> list[Path]:
    """Write the part of the page between the marks, and its plots; return the files."""
    measured = [whole for key, whole in results.all() if key.scale == scale]
    if not measured:
        raise NothingMeasured(
            f"no results at scale {scale:g} in {results.directory}; run `tamis bench events "
            f"--scale {scale:g}` first"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    plots = draw_plots(results, scale, path.parent / "figures")
    parts = [
        f"Written by `tamis bench events --scale {scale:g} --report` from the result files.\n",
        _INTRODUCTION,
        "### The aims, and what was reached\n",
        _table(aim_sheet(results, scale, AIMS)),
    ]
    for figure in FIGURES:
        sheet = sheet_of(results, scale, figure)
        if not sheet.rows:
            continue
        parts += [f"### {figure.title}\n", _table(sheet), f"{figure.note}\n"]
        if figure.cell == "move":
            parts += [_table(reader_sheet(results, scale)), _READER_NOTE]
        if figure.cell in plots:
            picture = os.path.relpath(plots[figure.cell], path.parent)
            parts.append(f"![{figure.title}, {figure.unit}, against N]({picture})\n")
    polygons = polygon_sheet(results, scale)
    if polygons.rows:
        parts += ["### Beside polygons\n", _table(polygons), _POLYGON_NOTE]
    parts += ["### How this was measured\n", _METHOD + describe_machine(measured)]
    write_measured_part(path, "tamis bench events", "\n".join(parts))
    return [path, *plots.values()]


def _table(sheet: Sheet) -> str:
    return sheet.to_markdown()


_INTRODUCTION = """\
W4 in the manner of the taxi traces: pick-up points around the 10,000 trading areas of a city of
100 km. *Near me* are subscriptions with a circle or a square of 250 to 1,000 m around a location
and four ranges; *boxes* ask for ranges of longitude and latitude instead, 0.5 to 2 km to each
side, as in the MO-Tree paper. Events are at trading areas.
"""
_READER_NOTE = """\
Python runs one thread at a time but while a kernel works, so the two share more than the machine:
*keeps* is the reader's speed against its own in peace.
"""
_POLYGON_NOTE = """\
Medians until the rows are there, over the same events, with the matches of the shapes themselves:
polygons of a thousand vertices each, boxes as large in the same places, no two of them the same.
What boxes add to the time alone is the price of any thousand subscriptions beside those that move;
what polygons add to that is the price of their vertices. Each stands in an index of its own, opened
from the same files; of each event the shortest of five rounds, taken in turn, counts.
"""
_METHOD = """\
- Answers are compared with the oracle (`tamis.language.evaluate`) on a sample before anything is
  timed and after all changes, boxes in the index with a scan. The others are compared with the
  same. A difference ends the run.
- `time.perf_counter_ns`, the garbage collector off, three rounds of which the one with the middle
  median is shown; the others are timed in the same rounds, so compare lines of one table with
  each other.
- A store is filled with tables of 100,000 events and asked 64 questions after the first, which
  its layout follows.
- One thread but for moves beside a reader. Memory is that of a fresh process.
- Near-me subscriptions are measured up to a million: as Python objects they take some 60 µs each
  to make."""
