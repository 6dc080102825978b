"""``tamis bench reproduce``: progress with an estimate on stderr, verdicts on stdout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tamis.bench.reproduce.figures import Figure, Paper
from tamis.bench.reproduce.papers import PAPERS, chosen, paper_of
from tamis.bench.reproduce.reading import read_at
from tamis.bench.reproduce.runner import KEPT, STARTS, Cell, Listener, cells_of, run
from tamis.bench.reproduce.verdicts import Verdict
from tamis.bench.results import Results
from tamis.cli.terminal import BadInput, stderr_console

_STYLES = {Verdict.HOLDS: "green", Verdict.FAILS: "yellow", Verdict.UNKNOWN: "dim"}


@dataclass(frozen=True, slots=True)
class ReproduceBench:
    """What the command was asked for."""

    papers: Sequence[str]
    figure: str | None
    scale: float
    resume: bool
    headline: bool
    output: Path
    report: Path | None

    def run(self) -> None:
        """Measure the cells of the figures, show what became of the claims, write the report."""
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        results = Results(self.output)
        asked = self._asked()
        cells = [
            cell
            for paper, figures in asked
            for cell in cells_of(paper, figures, is_headline=self.headline)
        ]
        with _progress(cells, self.scale) as listen:
            run(cells, results, self.scale, resume=self.resume, listen=listen)
        self._print(results, asked)
        if self.report is not None:
            from tamis.bench.reproduce.report import write_report

            written = write_report(results, [paper_of(name) for name in PAPERS], self.report)
            stderr_console().print(f"wrote {self.report} and {len(written) - 1} pictures")

    def _asked(self) -> list[tuple[Paper, tuple[Figure, ...]]]:
        asked = chosen(tuple(self.papers), self.figure)
        if not self.headline:
            return asked
        return [
            (paper, tuple(one for one in figures if one.is_headline or self.figure))
            for paper, figures in asked
        ]

    def _print(self, results: Results, asked: Sequence[tuple[Paper, tuple[Figure, ...]]]) -> None:
        table = Table(box=None, pad_edge=False)
        for name in ("figure", "title", "the claim", "found"):
            table.add_column(name, header_style="dim")
        for paper, figures in asked:
            for figure in figures:
                shown = read_at(results, paper, figure, self.scale)
                verdict = shown.verdict
                found = [one.found for one in shown.judged() if one.verdict is verdict]
                name = f"{paper.key} {figure.name}"
                table.add_row(
                    name, figure.title, verdict.value, "; ".join(found), style=_STYLES[verdict]
                )
        Console(highlight=False).print(table)


@contextmanager
def _progress(cells: Sequence[Cell], scale: float) -> Iterator[Listener]:
    """A bar with the time that is left on a terminal, a line a cell elsewhere."""
    console = stderr_console()
    columns = (TextColumn("{task.description:<44}"), BarColumn(), TextColumn("{task.fields[n]}"))
    with Progress(
        *columns, TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
        speed_estimate_period=3_600,
    ) as progress:  # fmt: skip
        task = progress.add_task("", total=sum(cell.weight for cell in cells), n="")
        n_heard = 0

        def listen(cell: Cell, state: str, seconds: float) -> None:
            nonlocal n_heard
            if state == STARTS:
                progress.update(task, description=cell.title(scale))
                return
            n_heard += 1
            if state == KEPT:  # took no time, and must not make the rest look short
                shrunk = (progress.tasks[task].total or 0.0) - cell.weight
                progress.update(task, total=shrunk, n=f"{n_heard}/{len(cells)}")
            else:
                progress.update(task, advance=cell.weight, n=f"{n_heard}/{len(cells)}")
            took = "kept" if state == KEPT else f"{seconds:.1f} s"
            progress.console.print(f"{cell.title(scale)}: {took}", style="dim")

        yield listen
