"""The cells of the service benchmark, and what is aimed for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.bench.aims import Aim
from tamis.bench.results import Key, Listener, Results, measure_cells
from tamis.bench.service.delivering import measure_deliveries
from tamis.bench.service.importing import measure_import, measure_upload
from tamis.bench.service.processes import running_server
from tamis.bench.service.requests import RATE, measure_requests
from tamis.bench.service.software import describe_software
from tamis.bench.suite import known

CELLS = ("requests", "import", "upload", "deliveries")
DATABASES = ("sqlite", "postgresql")
N_IMPORTED = 1_000_000
N_NOTIFICATIONS = 10_000
REQUESTS_S = 60.0
_IMPORT_S = {"sqlite": 120.0, "postgresql": 60.0}


def aims_of(database: str) -> tuple[Aim, ...]:
    """What is aimed for on a database."""
    return (
        Aim("requests a second", "requests", database, "rate", 0.99 * RATE, at_least=True),
        Aim("a request, p99", "requests", database, "p99_ms", 100.0, "ms"),
        Aim("import of a million", "import", database, "seconds", _IMPORT_S[database], "s"),
        Aim("import over HTTP", "upload", database, "seconds", _IMPORT_S[database], "s"),
    )


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """A run over some cells; each is saved as soon as it is measured.

    ``url`` is an empty database; where it is None every cell has a file of SQLite.
    """

    results: Results
    scale: float
    url: str | None
    resume: bool
    listen: Listener

    def measure(self, keys: Sequence[Key]) -> None:
        """Measure all; with ``resume`` what has no result file yet."""
        measure_cells(self.results, keys, self._found, self.listen, resume=self.resume)

    def _found(self, key: Key) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder:
            return self._found_in(Path(folder), key.cell)

    def _found_in(self, folder: Path, cell: str) -> dict[str, Any]:
        url = self.url or f"sqlite:///{folder}/tamis.db"
        return {**self._measured(folder, cell, url), "software": describe_software(url)}

    def _measured(self, folder: Path, cell: str, url: str) -> dict[str, Any]:
        n_imported = max(1_000, round(N_IMPORTED * self.scale))
        if cell == "import":
            return measure_import(folder, url, n_imported)
        if cell == "deliveries":
            return measure_deliveries(folder, url, max(100, round(N_NOTIFICATIONS * self.scale)))
        with running_server(folder, url, ["--no-sender"]) as server:
            if cell == "upload":
                return measure_upload(folder, server, url, n_imported)
            return measure_requests(server, max(1.0, REQUESTS_S * self.scale))


def plan(scale: float, only: Sequence[str], database: str) -> list[Key]:
    """The cells of a run; ``only`` names them, none means all.

    >>> [key.file_name for key in plan(0.1, ["import"], "sqlite")]
    ['sqlite-x0.1-import.json']
    """
    return [Key(cell, database, scale) for cell in known(only, CELLS)]
