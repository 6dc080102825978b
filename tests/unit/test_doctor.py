"""``tamis doctor``: what it finds where something is missing or wrong."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from tamis.cli.app import app
from tamis.cli.doctor import installation, report, surroundings
from tamis.cli.doctor.subject import Finding, Subject
from tamis.spark import java, kafka
from tamis.storage import Database
from tests.integration.ports import free_ports

FILE = """\
state = "state"
[events]
path = "events"
[subscriptions]
source = "store"
url = "sqlite:///{folder}/tamis.db"
[notifications]
outbox = "sqlite:///{folder}/tamis.db"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pipeline's settings, to be in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.toml").write_text(FILE.format(folder=tmp_path))
    (tmp_path / "events").mkdir()
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["doctor", *arguments])


def by_name(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {one.name: one for one in findings}


# -- the whole


def test_what_a_machine_reads(folder: Path) -> None:
    (port,) = free_ports(1)
    done = run("--json", "--port", str(port), "--pipeline", "pipeline.toml")
    told = json.loads(done.stdout)
    found = {one["name"]: one for one in told["checks"]}
    assert (done.exit_code, told["ok"], done.stderr) == (0, True, "")
    assert {"Python", "packages", "extra spark", "Java", "kernels", "cache"} <= set(found)
    assert found["pipeline"]["state"] == "ok"
    assert found[f"port {port}"] == {
        "name": f"port {port}", "state": "ok", "found": "free on 127.0.0.1", "to_do": "",
    }  # fmt: skip
    assert "Spark" not in found
    assert sorted(path.name for path in folder.iterdir()) == ["events", "pipeline.toml"]


def test_what_people_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    checks = [
        Finding("Python", "ok", "3.12"),
        Finding("Java", "note", "[bold]none\x1b[2J", "Install\none."),
        Finding("disk", "wrong", "full", "Make space."),
    ]
    monkeypatch.setattr(report, "examine", lambda subject: iter(checks))
    done = run()
    assert done.exit_code == 1
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        "✓ Python 3.12", r"– Java [bold]none\x1b[2J", "Install", "one.", "✗ disk full",
        "Make space.", "1 to be mended",
    ]  # fmt: skip
    checks.pop()
    done = run()
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "all that is needed is there"


def test_a_check_that_fails_does_not_stop_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Iterator[Finding]:
        raise SystemError("a package is broken")
        yield

    monkeypatch.setattr(installation, "check_java", fail)
    found = by_name(report.examine(Subject(folder, "127.0.0.1", 0)))
    assert found["Java"].state == "wrong"
    assert "SystemError: a package is broken" in found["Java"].found
    assert found["port 0"].state == "ok"


@pytest.mark.spark
def test_spark_is_started_when_that_is_asked_for() -> None:
    command = [sys.executable, "-W", "error", "-c", "from tamis.cli import main; main()"]
    done = subprocess.run(
        [*command, "doctor", "--spark", "--json", "--port", "0"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert (found["Spark"]["state"], done.returncode) == ("ok", 0)
    assert "starts, in" in found["Spark"]["found"]


# -- what is installed


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The versions of what is installed, where Tamis wants numpy, and pandas and pyspark."""
    held = {"numpy": "2.1", "pandas": "2.2.3", "pyspark": "4.3.0"}
    wanted = ["numpy>=2.0", 'pandas<3,>=2.2; extra == "spark"', 'pyspark==4.3.*; extra == "spark"']

    def version(name: str) -> str:
        if name not in held:
            raise PackageNotFoundError(name)
        return held[name]

    monkeypatch.setattr(installation, "requires", lambda name: wanted)
    monkeypatch.setattr(installation, "version", version)
    return held


def test_packages_that_are_there(packages: dict[str, str]) -> None:
    found = by_name(installation.check_packages({"spark"}))
    assert found["packages"] == Finding("packages", "ok", "installed")
    assert found["extra spark"].state == "ok"


def test_an_extra_that_is_not_installed(packages: dict[str, str]) -> None:
    del packages["pandas"]
    found = by_name(installation.check_packages(()))["extra spark"]
    assert (found.state, found.found) == ("note", "not installed: pandas")
    assert found.to_do.startswith("Install it: pip install 'tamis[spark]'.")
    assert by_name(installation.check_packages({"spark"}))["extra spark"].state == "wrong"


def test_versions_that_do_not_fit(packages: dict[str, str]) -> None:
    packages |= {"pandas": "3.0.1", "numpy": "1.26"}
    found = by_name(installation.check_packages(()))
    assert found["extra spark"].state == found["packages"].state == "wrong"
    assert found["extra spark"].found == "pandas 3.0.1 (wanted <3,>=2.2) does not fit"


def test_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.platform, "python_version", lambda: "3.10.12")
    (found,) = installation.check_python()
    assert (found.state, found.found) == ("wrong", "3.10.12; wanted >=3.11")


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", lambda environ: [("PATH", None)])
    (found,) = installation.check_java()
    assert found.state == "wrong"
    assert "pip install 'tamis[spark]'" in found.to_do


def test_kernels_that_are_not_compiled_and_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.kernels.compiled.cache_directory", lambda: tmp_path / "kernels")
    monkeypatch.setattr("tamis.kernels.compiled.IS_COMPILED", True)
    (found,) = installation.check_kernels()
    assert (found.state, found.found) == (
        "note", f"none is compiled yet in {tmp_path / 'kernels'}"
    )  # fmt: skip
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "one.nbi").write_bytes(bytes(2_000_000))
    (found,) = installation.check_kernels()
    assert found.state == "ok"
    assert " ago; 2 MB in " in found.found
    monkeypatch.setattr("tamis.kernels.compiled.IS_COMPILED", False)
    (found,) = installation.check_kernels()
    assert (found.state, found.to_do) == ("note", "Unset NUMBA_DISABLE_JIT.")


def test_tools_of_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_BROWSER", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kafka, "jar_folder", lambda name: tmp_path / name)
    found = by_name(installation.check_tools())
    assert {one.state for one in found.values()} == {"note"}
    assert "is no browser that runs" in found["browser"].found
    assert "no mvn" in found["Kafka"].found
    monkeypatch.delenv("TAMIS_BROWSER")
    for name in ("mvn", "chromium"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = by_name(installation.check_tools())
    assert found["browser"] == Finding("browser", "ok", str(tmp_path / "chromium"))
    assert found["Kafka"].to_do == "make kafka fetches it."


# -- what is around it


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look: Callable[[Path], Finding] = partial(
        surroundings.check_folder, "data", otherwise="Name another."
    )
    (tmp_path / "file").touch()
    assert look(tmp_path / "new" / "folder").state == "ok"
    found = look(tmp_path / "file" / "folder")
    assert (found.state, found.found) == ("wrong", f"{tmp_path / 'file'} cannot be written to")
    usage = shutil.disk_usage(tmp_path)
    for free, state in ((50_000_000, "wrong"), (1_500_000_000, "note"), (3_000_000_000, "ok")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, n=free: usage._replace(free=n))
        assert look(tmp_path).state == state


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status": "ok"}')

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: it would be on stderr."""


def test_a_port_that_is_taken_by_a_service_or_by_another() -> None:
    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        found = surroundings.check_port("127.0.0.1", server.server_port)
        server.shutdown()
        thread.join()
    assert (found.state, found.found[:14]) == ("ok", "a service runs")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = surroundings.check_port("127.0.0.1", taken.getsockname()[1])
    assert found.state == "wrong"
    assert "Address already in use" in found.found


def database_state(folder: Path) -> tuple[str, str]:
    (found,) = surroundings.check_database(f"sqlite:///{folder}/tamis.db")
    return found.state, found.found


def test_the_tables_of_a_database(tmp_path: Path) -> None:
    assert database_state(tmp_path) == ("note", "not there")
    assert not any(tmp_path.iterdir())
    (tmp_path / "tamis.db").touch()
    assert database_state(tmp_path) == ("note", "has no tables yet")
    with closing(Database(f"sqlite:///{tmp_path}/tamis.db")) as database:
        database.migrate()
    assert database_state(tmp_path) == ("ok", "answers, and its tables are of this version")
    with closing(sqlite3.connect(tmp_path / "tamis.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    assert database_state(tmp_path) == ("wrong", "was made by a newer version of Tamis")


def test_databases_that_cannot_be_used(folder: Path) -> None:
    (folder / "tamis.db").write_text("this is no database, and it is long enough to tell" * 9)
    for url, said in (
        (f"sqlite:///{folder}/tamis.db", "not a database"),
        ("postgresql://tamis:secret@127.0.0.1:1/tamis", "cannot be used now"),
        ("mysql://db", "expected sqlite:///path"),
        (f"sqlite:///{folder}/none/tamis.db", "make it first"),
    ):
        done = run("--json", "--port", "0", "--database", url)
        assert done.exit_code == 1
        (found,) = (c for c in json.loads(done.stdout)["checks"] if c["state"] == "wrong")
        assert found["name"].startswith("database")
        assert said in found["found"]
        assert "secret" not in done.stdout


def test_a_pipeline_that_cannot_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def problem(**changes: str) -> str:
        text = FILE.format(folder=folder)
        for before, after in changes.items():
            text = text.replace(before, after)
        Path("other.toml").write_text(text)
        done = run("--json", "--port", "0", "--pipeline", "other.toml")
        assert done.exit_code == 1
        told = [c for c in json.loads(done.stdout)["checks"] if c["state"] == "wrong"]
        assert len(told) == 1
        return str(told[0]["found"])

    assert "did you mean 'path'" in problem(path="pth")
    assert "there is no folder" in problem(**{'"events"': '"ads"'})
    monkeypatch.setattr(kafka, "jar_folder", lambda name: folder / name)
    topic = 'source = "kafka"\nservers = "b:1"\ntopic = "t"'
    assert "Spark's connector for Kafka" in problem(**{'path = "events"': topic})
    assert not (folder / "state").exists()
    done = run("--json", "--port", "0", "--pipeline", "none.toml")
    assert "none.toml: No such file" in done.stdout
