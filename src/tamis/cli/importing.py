"""``tamis import``: subscriptions from a file into a database."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import BinaryIO

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tamis.cli.terminal import BadInput, print_error, stderr_console
from tamis.storage import Database
from tamis.storage.drafts import Rules
from tamis.storage.imports import Importer, Result, read_many

_MOST_TOLD = 20


@dataclass(slots=True)
class ImportJob:
    """The options of an import, and what it does with them."""

    file: str
    database: str
    owner: str
    json: bool
    _counts: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Save all lines; those that cannot be are told, and the others are saved."""
        since = time.perf_counter()
        database = Database(self.database)
        opened = nullcontext(sys.stdin.buffer) if self.file == "-" else open(self.file, "rb")  # noqa: SIM115, PTH123
        try:
            database.migrate()
            with opened as lines:
                self._save(Importer(database), lines)
        finally:
            database.close()
        self._print_summary(time.perf_counter() - since)

    def _save(self, importer: Importer, lines: BinaryIO) -> None:
        reader = importer.reader(Rules(self.owner, may_choose_owner=True))
        console = stderr_console()
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            n_bytes = lines.seek(0, 2) if lines.seekable() else 0
            if n_bytes:
                lines.seek(0)
            task = progress.add_task("importing", total=n_bytes or None)
            for batch in read_many(reader, lines):
                self._tell(importer.save(batch), progress)
                place = lines.tell() if n_bytes else 0
                said = f"{self._counts.total():,} subscriptions"
                progress.update(task, completed=place, description=said)

    def _tell(self, results: Iterable[Result], progress: Progress) -> None:
        for one in results:
            self._counts[one.result] += 1
            if one.error is not None and self._counts["error"] <= _MOST_TOLD:
                print_error(f"line {one.line}: {one.error}", console=progress.console)

    def _print_summary(self, seconds: float) -> None:
        counts = {name: self._counts[name] for name in ("created", "replaced", "error")}
        if self.json:
            print(json.dumps({**counts, "seconds": round(seconds, 3)}))
        else:
            told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
            stderr_console().print(f"{told} in {seconds:.1f} s", highlight=False)
        if counts["error"]:
            raise BadInput(f"{counts['error']:,} lines could not be imported")
