"""``tamis bench spark``: progress on stderr, a table or JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tamis.bench.aims import reached
from tamis.bench.machine import commit, machine, versions
from tamis.bench.results import Key, Results
from tamis.bench.spark.suite import AIMS, SparkRun, plan
from tamis.bench.tables import aim_sheet
from tamis.cli.bench import progress, table_of
from tamis.cli.terminal import BadInput, stderr_console


@dataclass(frozen=True, slots=True)
class SparkBench:
    """What the command was asked for."""

    scale: float
    only: Sequence[str]
    minutes: float
    output: Path
    fresh: bool
    as_json: bool

    def run(self) -> None:
        """Measure what is missing, then show all there is."""
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        if not 0.1 <= self.minutes <= 1_440:
            raise BadInput(f"--minutes {self.minutes:g} is not between 0.1 and 1,440")
        results = Results(self.output)
        keys = plan(self.scale, [name for word in self.only for name in word.split(",") if name])
        console = stderr_console()

        def tell(text: str) -> None:
            if console.is_terminal and not self.as_json:
                console.print(text, style="dim", end="\r")

        with progress(len(keys), quiet=self.as_json) as listen:
            run = SparkRun(results, self.scale, 60 * self.minutes, self.fresh, listen, tell)
            run.measure(keys)
        if self.as_json:
            print(json.dumps(self._summary(results, keys), ensure_ascii=False))
        else:
            self._print(results, keys)

    def _summary(self, results: Results, keys: Sequence[Key]) -> dict[str, Any]:
        return {
            "machine": machine(),
            "versions": versions(),
            "commit": commit(),
            "scale": self.scale,
            "cells": {key.cell: results.read(key) for key in keys},
            "aims": [one.to_json() for one in reached(results, self.scale, AIMS)],
        }

    def _print(self, results: Results, keys: Sequence[Key]) -> None:
        console = Console(highlight=False)
        for key in keys:
            console.print(f"[bold]{key.title}[/bold]")
            for name, value in results.read(key).items():
                console.print(f"  {name.replace('_', ' ')}: {_shown(value)}", soft_wrap=True)
            console.print()
        sheet = aim_sheet(results, self.scale, AIMS)
        console.print(table_of(sheet))
        for note in sheet.notes:
            console.print(note, style="dim")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(held)}" for name, held in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:,}"
