"""``tamis bench service`` at a small scale: every cell runs, and is checked before it counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tamis.bench.report import NothingMeasured
from tamis.bench.results import Results
from tamis.bench.service.importing import measure_import
from tamis.bench.service.processes import BenchFailed
from tamis.bench.service.report import write_report
from tamis.cli.app import app

CELLS = {"requests", "import", "upload", "deliveries"}


def test_every_cell_runs(tmp_path: Path) -> None:
    words = ["bench", "service", "--scale", "0.001", "-o", str(tmp_path)]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["cells"]
    assert found.keys() == CELLS
    assert found["import"]["n_subscriptions"] == 1_000
    assert found["upload"]["n_subscriptions"] == 1_000
    assert found["upload"]["indexed_s"] >= found["upload"]["seconds"]
    assert found["deliveries"]["twice"] == 0
    assert found["requests"]["n_requests"] == 300
    assert found["requests"]["p50_ms"] <= found["requests"]["p99_ms"]
    assert found["requests"]["software"]["database"].startswith("SQLite 3.")
    page = tmp_path / "page.md"
    page.write_text("# Before\n")
    again = CliRunner().invoke(app, [*words, "--resume", "--report", str(page)])
    assert "sqlite deliveries" in again.stdout
    written = page.read_text()
    assert written.startswith("# Before\n")
    for told in ("a request, p99", "| sqlite | 1,000 |", "Webhooks of one sender", "SQLite 3."):
        assert told in written
    write_report(Results(tmp_path), 0.001, page)
    assert page.read_text() == written
    with pytest.raises(NothingMeasured):
        write_report(Results(tmp_path), 0.5, page)


def test_an_import_that_fails_is_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tamis.db"
    measure_import(tmp_path, url, 50)
    with pytest.raises(BenchFailed, match="tamis import failed"):
        measure_import(tmp_path, url, 20)
