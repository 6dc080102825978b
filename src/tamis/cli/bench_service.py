"""``tamis bench service``: progress on stderr, a table or JSON on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tamis.bench.results import Results
from tamis.bench.service.report import write_report
from tamis.bench.service.suite import ServiceRun, aims_of, plan
from tamis.cli.bench import progress
from tamis.cli.bench_cells import print_cells
from tamis.cli.terminal import BadInput, stderr_console


@dataclass(frozen=True, slots=True)
class ServiceBench:
    """What the command was asked for."""

    scale: float
    only: Sequence[str]
    database: str | None
    output: Path
    resume: bool
    report: Path | None
    as_json: bool

    def run(self) -> None:
        """Measure what is missing, then show all there is."""
        if not 0 < self.scale <= 10:
            raise BadInput(f"--scale {self.scale:g} is not between 0 and 10")
        kind = "sqlite" if self.database is None else "postgresql"
        results = Results(self.output)
        only = [name for word in self.only for name in word.split(",") if name]
        keys = plan(self.scale, only, kind)
        if self.database is not None and len(keys) > 1:
            raise BadInput("--database: each cell needs an empty one; say which with --only")
        with progress(len(keys), quiet=self.as_json) as listen:
            ServiceRun(results, self.scale, self.database, self.resume, listen).measure(keys)
        if self.report is not None:
            written = write_report(results, self.scale, self.report)
            stderr_console().print(f"wrote {written}", soft_wrap=True)
        print_cells(results, keys, self.scale, aims_of(kind), as_json=self.as_json)
