"""``tamis bench spark``: progress on stderr, a table or JSON on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tamis.bench.results import Results
from tamis.bench.spark.suite import AIMS, SparkRun, plan
from tamis.cli.bench import progress
from tamis.cli.bench_cells import print_cells
from tamis.cli.terminal import BadInput, stderr_console


@dataclass(frozen=True, slots=True)
class SparkBench:
    """What the command was asked for."""

    scale: float
    only: Sequence[str]
    minutes: float
    output: Path
    resume: bool
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
            run = SparkRun(results, self.scale, 60 * self.minutes, self.resume, listen, tell)
            run.measure(keys)
        print_cells(results, keys, self.scale, AIMS, as_json=self.as_json)
