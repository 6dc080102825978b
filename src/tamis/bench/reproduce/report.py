"""``docs/reproduction.md``: of every figure the picture, the claim, what was found, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.reproduce.drawing import draw, picture_name
from tamis.bench.reproduce.figures import Kind, Line, Paper
from tamis.bench.reproduce.reading import Shown, number, read
from tamis.bench.reproduce.verdicts import Aspect, Judged, Part, Verdict
from tamis.bench.results import Results

FIGURES = "figures/reproduction"  # beside the page
_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNKNOWN: "?"}


def write_report(results: Results, papers: Sequence[Paper], path: Path) -> list[Path]:
    """Write the page and its pictures (in ``figures`` beside it); return the files."""
    page = page_of(results, papers)
    path.parent.mkdir(parents=True, exist_ok=True)
    pictures = [draw(one, path.parent / FIGURES) for one in figures_of(results, papers)]
    path.write_text(page)
    return [path, *pictures]


def figures_of(results: Results, papers: Sequence[Paper]) -> list[Shown]:
    """Every figure that has results."""
    shown = [
        one
        for paper in papers
        for figure in paper.figures
        if (one := read(results, paper, figure)) is not None
    ]
    if not shown:
        raise NothingMeasured(
            f"no results in {results.directory}; run `tamis bench reproduce` first"
        )
    return shown


def page_of(results: Results, papers: Sequence[Paper]) -> str:
    """The page."""
    shown = figures_of(results, papers)
    wholes = [whole for _, whole in results.all()]
    sections = [_HEAD, _summary(shown)]
    for paper in papers:
        mine = [one for one in shown if one.paper is paper]
        sections += [_paper(mine)] if mine else []
    sections.append("## How this was measured\n\n" + _METHOD + describe_machine(wholes))
    return "\n".join(section.rstrip() + "\n" for section in sections)


def _summary(shown: Sequence[Shown]) -> str:
    counts = {verdict: sum(one.verdict is verdict for one in shown) for verdict in Verdict}
    held, failed, unknown = (counts[one] for one in (Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN))
    words = (
        f"Of {len(shown)} figures {held} {_verb(held, 'hold', 'holds')}, {failed} "
        f"{_verb(failed, 'do', 'does')} not hold, of {unknown} we cannot tell. Of the parts of "
        f"their claims hold: {_tally([part for one in shown for part in one.parts()])}."
    )
    rows = [
        f"| [{one.paper.key} {one.figure.name}](#{_anchor(one)}) | {one.figure.title} | "
        f"{one.scale:g} | {_MARKS[one.verdict]} {one.verdict.value} | {_tally(one.parts())} |"
        for one in shown
    ]
    head = "| | | scale | the claim | of its parts hold |\n|---|---|---|---|---|"
    return f"{words}\n\n{head}\n" + "\n".join(rows) + "\n"


def _verb(n: int, plural: str, singular: str) -> str:
    return singular if n == 1 else plural


def _tally(parts: Sequence[Part]) -> str:
    """How many parts hold, of each aspect."""
    words = []
    for aspect in Aspect:
        mine = [part for part in parts if part.aspect is aspect]
        n_held = sum(part.verdict is Verdict.HOLDS for part in mine)
        words += [f"{aspect.value} {n_held} of {len(mine)}"] if mine else []
    return ", ".join(words)


def _paper(shown: Sequence[Shown]) -> str:
    paper = shown[0].paper
    parts = [f"## {paper.title}\n\n{paper.setting}\n", *map(_figure, shown)]
    return "\n".join(parts)


def _figure(shown: Shown) -> str:
    figure, picture = shown.figure, f"{FIGURES}/{picture_name(shown)}"
    lines = [
        f"### {_heading(shown)}\n",
        f"![{figure.title}]({picture})\n",
        f"**{shown.paper.source}.** {figure.claim}\n",
        f"**Here**, at scale {shown.scale:g}:\n",
        *(f"- {_marked(one)}: {one.found}" for one in shown.judged()),
    ]
    if shown.ours():
        lines.append(f"- {shown.ours()}")
    lines += ["", f"**{_VERDICTS[shown.verdict]}.** {_reason(shown)}".rstrip(), ""]
    lines += [_table(shown)]
    notes = [figure.note, *shown.skipped()]
    if shown.absent:
        notes.append(f"Not measured: {', '.join(line.label for line in shown.absent)}.")
    lines += [f"*{note}*\n" for note in notes if note]
    return "\n".join(lines)


_VERDICTS = {
    Verdict.HOLDS: "The claim holds",
    Verdict.FAILS: "The claim does not hold",
    Verdict.UNKNOWN: "Whether the claim holds we cannot tell",
}


def _marked(judged: Judged) -> str:
    return ", ".join(f"{_MARKS[part.verdict]} {part.aspect.value}" for part in judged.parts)


def _reason(shown: Shown) -> str:
    if shown.verdict is Verdict.HOLDS:
        return ""
    return f"Of its parts hold: {_tally(shown.parts())}. {shown.reason}"


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
judged are the parts of a claim:

- order: who is below whom, by a tenth at least;
- factor: by how much, on average (geometric mean) over the points; at least half of what the
  paper says, more than it says counts as well;
- trend: from the first to the last point a line rises or falls by a fifth at least, or is nearly
  flat, within a half;
- size: a share of the whole within 15 percentage points (1 where it is below 1 %), a limit that
  is kept, or that two differ by no more than the paper says and a tenth.

What differs by less than a tenth may be chance: whether it differs we cannot tell. A claim holds
if all its parts hold, and does not if one of them does not. The text of every claim that does not
hold is followed by the reason, as far as it was found. The scale is the share of the paper's
number of subscriptions and events; of a sweep the points that the table under a figure shows were
run, at scale 1 mostly its ends, and "over the points" is over these. One algorithm is not of the
same tier: R*-Tree is libspatialindex, in C++, as its paper used it.
"""
_METHOD = """\
- Before anything is timed, the result of every algorithm is compared with a scan, which is itself
  compared with NumPy, on ten events; an approximate algorithm must find a superset.
- Times are of single events: the processor's time of the thread, of each event the best of three
  rounds where that takes less than 8 seconds, then mean and standard deviation over the events:
  200 of them, fewer where an algorithm is slow.
- Inserting and removing are by the processor's time of the process, sending is by the clock. What
  is added to or removed from those that are there comes in lots of 1,000: the median of five, fewer
  and smaller ones where that is slow.
- Kernels are compiled on a sample before. One process, one thread unless said otherwise.
- A structure that would need more than 6 GB, by a sample, is not built.
- Reasons are written by hand, from measurements and counts of their own, which are named; what is
  a guess is called one.
"""
