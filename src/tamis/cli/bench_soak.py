"""``tamis bench soak``: how it goes on stderr, what came out on stdout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tamis.bench.results import Key, Results
from tamis.bench.soak.report import write_report
from tamis.bench.soak.trial import soak
from tamis.cli.terminal import BadInput, stderr_console
from tamis.errors import TamisError


class SoakFailed(TamisError):
    """Something was lost, told twice, or told wrongly."""


@dataclass(frozen=True, slots=True)
class SoakBench:
    """What the command was asked for."""

    minutes: float
    events_per_s: float
    output: Path
    folder: Path | None
    report: Path | None
    as_json: bool

    def run(self) -> None:
        """Soak, save what came out, and fail if it is not what must come out."""
        if not 0.5 <= self.minutes <= 7 * 24 * 60:
            raise BadInput(f"--minutes {self.minutes:g} is not between 0.5 and 10080 (a week)")
        if not 1 <= self.events_per_s <= 10_000:
            raise BadInput(f"--rate {self.events_per_s:g} is not between 1 and 10000")
        found = self._soak()
        results = Results(self.output)
        results.write(Key("soak", "ads", self.minutes), found)
        if self.report is not None:
            written = write_report(results, self.report)
            stderr_console().print(f"wrote {written}", soft_wrap=True)
        told = {name: value for name, value in found.items() if name != "samples"}
        print(json.dumps(told, indent=None if self.as_json else 2, ensure_ascii=False))
        judge(found)

    def _soak(self) -> dict[str, Any]:
        columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=stderr_console(), disable=self.as_json) as bar:
            task = bar.add_task("starting", total=1.0)

            def listen(done: float, words: str) -> None:
                bar.update(task, completed=done, description=words)

            return soak(self.minutes, self.events_per_s, listen, self.folder)


def judge(found: dict[str, Any]) -> None:
    """Raise SoakFailed if something was lost, told twice, or told wrongly."""
    wrong = [
        f"{found[name]:,} {words}"
        for name, words in (
            ("lost", "matches lost"),
            ("lost_by_visitors", "matches lost by subscriptions that came and went"),
            ("wrong", "matches told wrongly"),
            ("twice", "matches told twice"),
        )
        if found[name]
    ]
    if wrong:
        raise SoakFailed(f"the soak failed: {'; '.join(wrong)}")
