"""``tamis bench engine``: progress on stderr, tables or JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from tamis.bench.aims import reached
from tamis.bench.engine import Run
from tamis.bench.machine import commit, load, machine, versions
from tamis.bench.results import Key, Listener, Results
from tamis.bench.suite import WORKLOADS, plan
from tamis.bench.sweeps import plan_sweeps
from tamis.bench.tables import Sheet, all_sheets
from tamis.cli.cell_bar import cell_bar
from tamis.cli.terminal import BadInput, stderr_console


@dataclass(frozen=True, slots=True)
class EngineBench:
    """What the command was asked for."""

    workloads: Sequence[str]
    scale: float
    only: Sequence[str]
    output: Path
    sweeps: bool
    largest: int
    resume: bool
    report: Path | None
    as_json: bool

    def run(self) -> None:
        """Measure what is missing, then show all there is."""
        results = Results(self.output)
        keys = self._keys()
        with progress(len(keys), quiet=self.as_json) as listen:
            Run(results, self.resume, listen).measure(keys)
        if self.report is not None:
            self._write_report(results)
        if self.as_json:
            print(json.dumps(self._summary(results, keys), ensure_ascii=False))
        else:
            self._print(results)

    def _keys(self) -> list[Key]:
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        chosen = tuple(self.workloads) or WORKLOADS
        only = tuple(name for word in self.only for name in word.split(",") if name)
        # "none" leaves nothing but the tables, or the sweeps
        keys = [] if only == ("none",) else plan(chosen, self.scale, only)
        return keys + (plan_sweeps(chosen, self.scale, self.largest) if self.sweeps else [])

    def _write_report(self, results: Results) -> None:
        from tamis.bench.report import write_report

        written = write_report(results, self.scale, self.report or Path())
        stderr_console().print(f"wrote {', '.join(str(path) for path in written)}", soft_wrap=True)

    def _summary(self, results: Results, keys: Sequence[Key]) -> dict[str, Any]:
        return {
            "machine": machine(),
            "versions": versions(),
            "commit": commit(),
            "scale": self.scale,
            "cells": {key.file_name.removesuffix(".json"): results.read(key) for key in keys},
            "aims": [one.to_json() for one in reached(results, self.scale)],
        }

    def _print(self, results: Results) -> None:
        console = Console(highlight=False)
        held = machine()
        console.print(
            f"[dim]{held['cpu']}, {held['cores']} cores, {held['ram_gb']} GB; scale "
            f"{self.scale:g}; load {load()}; results in {self.output}[/dim]\n"
        )
        for sheet in all_sheets(results, self.scale):
            console.print(table_of(sheet))
            for note in sheet.notes:
                console.print(note.replace("\\*", "*"), style="dim")
            console.print()


def table_of(sheet: Sheet) -> Table:
    """A sheet for the terminal."""
    table = Table(title=sheet.title, title_justify="left", box=None, pad_edge=False)
    for at, name in enumerate(sheet.columns):
        justify: Literal["left", "right"] = "left" if at < sheet.n_names else "right"
        table.add_column(name, justify=justify, header_style="dim")
    for row in sheet.rows:
        is_missed = sheet.columns[-1] == "met" and row[-1].startswith("no")
        table.add_row(*row, style="yellow" if is_missed else "")
    return table


@contextmanager
def progress(n_cells: int, quiet: bool) -> Iterator[Listener]:
    """A listener that shows a bar for cells of equal weight."""
    with cell_bar(n_cells, float(n_cells), quiet=quiet) as bar:

        def listen(key: Key, state: str, seconds: float) -> None:
            if state == "starts":
                bar.start(key.title)
            elif state == "kept":
                bar.leave_out(key.title, 1.0, state)
            else:
                bar.finish(key.title, 1.0, f"{seconds:.1f} s")

        yield listen
