"""``tamis bench all``: progress on stderr, the aims or JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tamis.bench.headline.parts import Part
from tamis.bench.headline.plan import chosen, make_plan
from tamis.bench.headline.run import FAILED, Failure, HeadlineRun, Listener
from tamis.bench.headline.sheets import aims_of_all
from tamis.bench.machine import commit, load, machine, versions
from tamis.bench.results import Key
from tamis.cli.bench import table_of
from tamis.cli.cell_bar import cell_bar
from tamis.cli.terminal import BadInput, print_error, stderr_console


@dataclass(frozen=True, slots=True)
class AllBench:
    """What the command was asked for."""

    scale: float
    only: Sequence[str]
    output: Path
    resume: bool
    report: Path | None
    as_json: bool

    def run(self) -> bool:
        """Measure, write the page, show the aims; False if something could not be measured."""
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        plan = make_plan()
        names = [name for word in self.only for name in word.split(",") if name]
        # "none" leaves nothing but the page and the aims
        parts = [] if names == ["none"] else chosen(plan, names)
        with _progress(parts, self.scale, quiet=self.as_json) as listen:
            run = HeadlineRun(self.output, self.scale, listen)
            run.measure(parts, resume=self.resume)
        if self.report is not None:
            self._write_page(plan, self.report)
        if self.as_json:
            print(json.dumps(self._summary(plan, run.failures), ensure_ascii=False))
        else:
            self._print(plan)
        for failure in run.failures:
            print_error(f"{failure.part}, {failure.cell}: {failure.problem}")
        return not run.failures

    def _write_page(self, plan: Sequence[Part], path: Path) -> None:
        from tamis.bench.headline.page import write_page

        written = write_page(plan, self.output, self.scale, path)
        stderr_console().print(f"wrote {', '.join(map(str, written))}", soft_wrap=True)

    def _summary(self, plan: Sequence[Part], failures: Sequence[Failure]) -> dict[str, Any]:
        return {
            "machine": machine(),
            "versions": versions(),
            "commit": commit(),
            "scale": self.scale,
            "cells": {
                part.name: {
                    key.file_name.removesuffix(".json"): part.results(self.output).read(key)
                    for key in part.keys(self.scale)
                }
                for part in plan
            },
            "aims": [
                {"part": part.name, **one.to_json()}
                for part in plan
                for one in part.reached(self.output, self.scale)
            ],
            "failures": [failure._asdict() for failure in failures],
        }

    def _print(self, plan: Sequence[Part]) -> None:
        console, held = Console(highlight=False), machine()
        console.print(
            f"[dim]{held['cpu']}, {held['cores']} cores, {held['ram_gb']} GB; scale "
            f"{self.scale:g}; load {load()}; results in {self.output}[/dim]\n"
        )
        sheet = aims_of_all(plan, self.output, self.scale)
        if sheet.rows:
            console.print(table_of(sheet))
        for note in sheet.notes:
            console.print(note, style="dim")


@contextmanager
def _progress(parts: Sequence[Part], scale: float, *, quiet: bool) -> Iterator[Listener]:
    """A listener that shows a bar; the weight of a cell is how long it takes at full size."""
    weights = {(part.name, cell.key(scale)): cell.seconds for part in parts for cell in part.cells}
    with cell_bar(len(weights), sum(weights.values()), quiet=quiet) as bar:

        def listen(part: Part, key: Key, state: str, seconds: float) -> None:
            title, weight = f"{part.name}: {key.title}", weights[part.name, key]
            if state == "starts":
                bar.start(title)
            elif state in ("kept", FAILED):
                bar.leave_out(title, weight, state)
            else:
                bar.finish(title, weight, f"{seconds:.1f} s")

        yield listen
