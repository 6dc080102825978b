"""``tamis bench reproduce``: progress with an estimate on stderr, verdicts on stdout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tamis.bench.reproduce.figures import Figure, Paper
from tamis.bench.reproduce.papers import PAPERS, chosen, paper_of
from tamis.bench.reproduce.reading import read_at
from tamis.bench.reproduce.runner import KEPT, STARTS, Cell, Listener, cells_of, run
from tamis.bench.reproduce.verdicts import Verdict
from tamis.bench.results import Results
from tamis.cli.cell_bar import cell_bar
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
    """A listener that shows a bar."""
    with cell_bar(len(cells), sum(cell.weight for cell in cells)) as bar:

        def listen(cell: Cell, state: str, seconds: float) -> None:
            title = cell.title(scale)
            if state == STARTS:
                bar.start(title)
            elif state == KEPT:
                bar.leave_out(title, cell.weight, "kept")
            else:
                bar.finish(title, cell.weight, f"{seconds:.1f} s")

        yield listen
