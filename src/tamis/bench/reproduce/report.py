"""``docs/reproduction.md``: of every figure the picture, the claim, what was found, the verdict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.reproduce.checks import Verdict
from tamis.bench.reproduce.drawing import draw
from tamis.bench.reproduce.figures import Kind, Line, Paper
from tamis.bench.reproduce.reading import Shown, number, read
from tamis.bench.results import Results

_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNKNOWN: "?"}


def write_report(results: Results, papers: Sequence[Paper], path: Path) -> list[Path]:
    """Write the page and its pictures (in ``figures`` beside it); return the files."""
    shown = [
        [one for figure in paper.figures if (one := read(results, paper, figure)) is not None]
        for paper in papers
    ]
    if not any(shown):
        raise NothingMeasured(
            f"no results in {results.directory}; run `tamis bench reproduce` first"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    pictures = {
        (one.paper.key, one.figure.number): draw(one, path.parent / "figures" / "reproduction")
        for many in shown
        for one in many
    }
    where = {key: os.path.relpath(file, path.parent) for key, file in pictures.items()}
    wholes = [whole for _, whole in results.all()]
    sections = [_HEAD, _summary([one for many in shown for one in many])]
    sections += [_paper(many, where) for many in shown if many]
    sections.append("## How this was measured\n\n" + _METHOD + describe_machine(wholes))
    path.write_text("\n".join(section.rstrip() + "\n" for section in sections))
    return [path, *pictures.values()]


def _summary(shown: Sequence[Shown]) -> str:
    counts = {verdict: sum(one.verdict is verdict for one in shown) for verdict in Verdict}
    words = ", ".join(f"{n} {verdict.value}" for verdict, n in counts.items())
    rows = [
        f"| [{one.paper.key} {one.figure.name}](#{_anchor(one)}) | {one.figure.title} | "
        f"{one.scale:g} | {_MARKS[one.verdict]} {one.verdict.value} |"
        for one in shown
    ]
    head = "| | | scale | the claim |\n|---|---|---|---|"
    return f"{len(shown)} figures: {words}.\n\n{head}\n" + "\n".join(rows) + "\n"


def _paper(shown: Sequence[Shown], where: dict[tuple[str, str], str]) -> str:
    paper = shown[0].paper
    parts = [f"## {paper.title}\n\n{paper.setting}\n"]
    parts += [_figure(one, where[paper.key, one.figure.number]) for one in shown]
    return "\n".join(parts)


def _figure(shown: Shown, picture: str) -> str:
    figure, judged = shown.figure, shown.judged()
    lines = [
        f"### {_heading(shown)}\n",
        f"![{figure.title}]({picture})\n",
        f"**The paper.** {figure.claim}\n",
        f"**Here**, at scale {shown.scale:g}:\n",
        *(f"- {_MARKS[one.verdict]} {one.found}" for one in judged),
    ]
    if shown.ours():
        lines.append(f"- {shown.ours()}")
    lines += ["", f"**The claim {_VERDICTS[shown.verdict]}.** {_reason(shown)}".rstrip(), ""]
    lines += [_table(shown)]
    notes = [figure.note, *shown.skipped()]
    if shown.absent:
        notes.append(f"Not measured: {', '.join(line.label for line in shown.absent)}.")
    lines += [f"*{note}*\n" for note in notes if note]
    return "\n".join(lines)


_VERDICTS = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "does not hold",
    Verdict.UNKNOWN: "cannot be told",
}


def _reason(shown: Shown) -> str:
    if shown.verdict is Verdict.HOLDS:
        return ""
    judged = shown.judged()
    n_held = sum(one.verdict is Verdict.HOLDS for one in judged)
    parts = f"{n_held} of {len(judged)} parts hold."
    return f"{parts} {shown.figure.reason}" if shown.verdict is Verdict.FAILS else parts


def _heading(shown: Shown) -> str:
    return f"{shown.paper.key} {shown.figure.name}: {shown.figure.title}"


def _anchor(shown: Shown) -> str:
    """As GitHub makes it of the heading."""
    kept = (c for c in _heading(shown).lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def _table(shown: Shown) -> str:
    """The numbers, with the standard deviation in brackets where there is one."""
    figure = shown.figure
    if figure.kind is Kind.LINES:
        points = sorted({x for held in shown.cells.values() for x in held})
        heads = [shown.point(x) for x in points]
        rows = {line.label: [_entry(shown, line, x) for x in points] for line in shown.lines}
    else:
        heads = [one.label for one in figure.metrics]
        rows = {line.label: _entries(shown, line) for line in shown.lines}
    title = f"{figure.metrics[0].label}" if figure.kind is Kind.LINES else "ms"
    has_deviation = any(one.deviation for one in figure.metrics)
    if has_deviation:
        title += ", in brackets the standard deviation"
    if figure.table:
        title += f" ({figure.table})"
    table = [f"| {title} | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    table += [f"| {label} | " + " | ".join(entries) + " |" for label, entries in rows.items()]
    return "\n".join(table) + "\n"


def _entry(shown: Shown, line: Line, point: float) -> str:
    cell, metric = shown.cells[line.key].get(point), shown.figure.metrics[0]
    if cell is None or (value := metric.of(cell)) is None:
        return "–"
    deviation = metric.deviation_of(cell)
    return number(value) + ("" if deviation is None else f" ({number(deviation)})")


def _entries(shown: Shown, line: Line) -> list[str]:
    held = shown.cells[line.key]
    cell = held[min(held)]
    entries = []
    for metric in shown.figure.metrics:
        value, deviation = metric.of(cell), metric.deviation_of(cell)
        entry = "–" if value is None else number(value)
        entries.append(entry + ("" if deviation is None else f" ({number(deviation)})"))
    return entries


_HEAD = """\
# The experiments of the papers, run again

Written by `tamis bench reproduce --report` from the result files; do not edit. Each figure shows
the paper's algorithms and Tamis on the same data, in the same tier of implementation (Numba
kernels over arrays, one core). Absolute times are of other machines and languages, so what is
judged are ratios, orders and trends. A factor holds if it is at least the square root of the
paper's: half as much, on a logarithmic scale. What differs by less than a tenth is the same; a
difference that small cannot be told.
The scale is the share of the paper's number of subscriptions and events.
"""
_METHOD = """\
- Before anything is timed, the result of every algorithm is compared with a scan, which is itself
  compared with NumPy, on ten events; an approximate algorithm must find a superset.
- Times are of single events: the processor's time of the thread, of each event the best of three
  rounds where that takes less than 8 seconds, then mean and standard deviation over the events:
  200 of them, fewer where an algorithm is slow. Inserting, removing and sending are by the clock.
- Kernels are compiled on a sample before. One process, one thread unless said otherwise.
- A structure that would need more than 6 GB, by a sample, is not built.
- Reasons are written by hand, from measurements of their own; what is a guess is called one.
"""
