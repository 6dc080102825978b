"""The progress of a benchmark: a bar with the time left on a terminal, a line a cell elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tamis.cli.terminal import stderr_console


class CellBar:
    """Counts cells; each has a weight, about how long it takes, in any unit."""

    def __init__(self, progress: Progress, n_cells: int, weight: float, *, quiet: bool) -> None:
        self._progress, self._n_cells, self._quiet = progress, n_cells, quiet
        self._n_heard = 0
        self._task: TaskID = progress.add_task("", total=weight, n=f"0/{n_cells}")

    def start(self, title: str) -> None:
        """A cell is being measured."""
        self._progress.update(self._task, description=escape(title))

    def finish(self, title: str, weight: float, took: str) -> None:
        """A cell is done, and how it went."""
        self._n_heard += 1
        self._progress.update(self._task, advance=weight, n=f"{self._n_heard}/{self._n_cells}")
        self._say(title, took)

    def leave_out(self, title: str, weight: float, why: str) -> None:
        """A cell took no time: it must not make the rest look short."""
        self._n_heard += 1
        left = (self._progress.tasks[self._task].total or 0.0) - weight
        self._progress.update(self._task, total=left, n=f"{self._n_heard}/{self._n_cells}")
        self._say(title, why)

    def _say(self, title: str, how: str) -> None:
        if not self._quiet:
            self._progress.console.print(f"{title}: {how}", style="dim", markup=False)


@contextmanager
def cell_bar(n_cells: int, weight: float, *, quiet: bool = False) -> Iterator[CellBar]:
    """A bar for cells of some weight in all."""
    console = stderr_console()
    columns = (TextColumn("{task.description:<44}"), BarColumn(), TextColumn("{task.fields[n]}"))
    with Progress(
        *columns, TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn(),
        console=console, transient=True, disable=quiet or not console.is_terminal,
        speed_estimate_period=3_600,
    ) as progress:  # fmt: skip
        yield CellBar(progress, n_cells, weight, quiet=quiet)
