"""Progress and summary of a run on stderr, if that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tamis.cli.terminal import stderr_console

if TYPE_CHECKING:  # the rest of rich is imported where somebody looks
    from rich.console import Console
    from rich.progress import Progress


class Meter:
    """One line that counts; silent where nobody looks."""

    def __init__(self) -> None:
        self.console: Console = stderr_console()
        self._progress: Progress | None = None
        self._since = time.perf_counter()

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks."""
        return self.console.is_terminal

    @contextmanager
    def shown(self, beside_stdout: bool) -> Iterator[None]:
        """Show the line meanwhile, unless the same terminal also shows the matches."""
        if not self.is_terminal or (beside_stdout and sys.stdout.isatty()):
            yield
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as self._progress:
            self._progress.add_task("loading subscriptions")
            yield

    def show_loading(self, n_subscriptions: int) -> None:
        """Count subscriptions; the clock for events starts with the last call."""
        self._since = time.perf_counter()
        self._show(f"loading: {n_subscriptions:,} subscriptions")

    def show_matching(self, n_events: int, n_matches: int) -> None:
        """Count events and matches."""
        rate = n_events / max(1e-9, time.perf_counter() - self._since)
        self._show(f"{n_events:,} events, {n_matches:,} matches, {rate:,.0f} events/s")

    def print_summary(self, summary: Mapping[str, float]) -> None:
        """A small table at the end."""
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim")
        table.add_column(justify="right")
        for name, value in summary.items():
            shown = f"{value:,.2f}" if name.endswith("_seconds") else f"{value:,.0f}"
            style = "bold red" if name == "rejected" and value else ""
            table.add_row(name.replace("_", " "), f"[{style}]{shown}[/]" if style else shown)
        self.console.print(table)

    def _show(self, text: str) -> None:
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=text)
