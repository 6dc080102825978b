"""``tamis bench walk``: what it does on stderr, the stages on stdout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from tamis.bench.results import Key, Results
from tamis.bench.walk.report import stage_sheet, work_sheet, write_report
from tamis.bench.walk.stages import EVENT_STAGES, EVENT_WHOLE, SUBSCRIPTION_STAGES
from tamis.bench.walk.trial import walk
from tamis.cli.bench import table_of
from tamis.cli.terminal import BadInput, stderr_console

_WHOLE = 1_000_000


@dataclass(frozen=True, slots=True)
class WalkBench:
    """What the command was asked for."""

    scale: float
    output: Path
    report: Path | None
    as_json: bool

    def run(self) -> None:
        """Walk, save what was found, and show it."""
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        begun = perf_counter()
        found = self._walk()
        results = Results(self.output)
        results.write(Key("walk", "ads", self.scale), found, perf_counter() - begun)
        if self.report is not None:
            written = write_report(results, self.report)
            stderr_console().print(f"wrote {written}", soft_wrap=True)
        if self.as_json:
            print(json.dumps(found, ensure_ascii=False))
            return
        console = Console(highlight=False)
        for sheet in (
            stage_sheet(found["event"], (*EVENT_STAGES, EVENT_WHOLE)),
            stage_sheet(found["subscription"], SUBSCRIPTION_STAGES),
            work_sheet(found["work"]),
        ):
            console.print(table_of(sheet))

    def _walk(self) -> dict[str, Any]:
        n_subscriptions = max(100, round(_WHOLE * self.scale))
        if self.as_json:
            return walk(n_subscriptions, lambda words: None)
        console = stderr_console()
        with console.status("starting") as status:

            def listen(words: str) -> None:
                if console.is_terminal:
                    status.update(words)
                else:
                    console.print(words)

            return walk(n_subscriptions, listen)
