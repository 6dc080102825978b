"""``tamis bench events``: progress on stderr, tables or JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tamis.bench.aims import reached
from tamis.bench.events.figures import FIGURES, polygon_sheet, reader_sheet, sheet_of
from tamis.bench.events.suite import AIMS, EventsRun, plan
from tamis.bench.machine import commit, load, machine, versions
from tamis.bench.results import Key, Results
from tamis.bench.tables import aim_sheet
from tamis.cli.bench import progress, table_of
from tamis.cli.terminal import BadInput, stderr_console


@dataclass(frozen=True, slots=True)
class EventsBench:
    """What the command was asked for."""

    scale: float
    only: Sequence[str]
    sizes: Sequence[str]
    output: Path
    resume: bool
    report: Path | None
    as_json: bool

    def run(self) -> None:
        """Measure what is missing, then show all there is."""
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        results = Results(self.output)
        keys = plan(self.scale, _words(self.only), _words(self.sizes))
        with progress(len(keys), quiet=self.as_json) as listen:
            EventsRun(results, self.resume, listen).measure(keys)
        if self.report is not None:
            self._write_report(results, self.report)
        if self.as_json:
            print(json.dumps(self._summary(results, keys), ensure_ascii=False))
        else:
            self._print(results)

    def _write_report(self, results: Results, path: Path) -> None:
        from tamis.bench.events.report import write_report

        written = write_report(results, self.scale, path)
        stderr_console().print(f"wrote {', '.join(map(str, written))}", soft_wrap=True)

    def _summary(self, results: Results, keys: Sequence[Key]) -> dict[str, Any]:
        return {
            "machine": machine(),
            "versions": versions(),
            "commit": commit(),
            "scale": self.scale,
            "cells": {key.file_name.removesuffix(".json"): results.read(key) for key in keys},
            "aims": [one.to_json() for one in reached(results, self.scale, AIMS)],
        }

    def _print(self, results: Results) -> None:
        console = Console(highlight=False)
        held = machine()
        console.print(
            f"[dim]{held['cpu']}, {held['cores']} cores, {held['ram_gb']} GB; scale "
            f"{self.scale:g}; load {load()}; results in {self.output}[/dim]\n"
        )
        sheets = [sheet_of(results, self.scale, figure) for figure in FIGURES]
        sheets += [make(results, self.scale) for make in (reader_sheet, polygon_sheet)]
        for sheet in (*sheets, aim_sheet(results, self.scale, AIMS)):
            if sheet.rows:
                console.print(table_of(sheet))
                for note in sheet.notes:
                    console.print(note, style="dim")
                console.print()


def _words(given: Sequence[str]) -> list[str]:
    return [name for word in given for name in word.split(",") if name]
