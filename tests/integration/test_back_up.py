"""Back up and restore, with the commands of docs/operations.md."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.client import Client
from tamis.service.settings import ServiceSettings
from tests.integration.postgresql import PostgreSQL
from tests.integration.service_server import Service, running_service, serving

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def commands(name: str) -> str:
    """The block of commands on the page that begins with a comment."""
    (found,) = re.findall(rf"```sh\n# {name}\n(.*?)```", PAGE.read_text(), re.S)
    return str(found)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    """Runs a block in a folder where the service's data is tamis-data."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, what in (("python3", ""), ("tamis", '-c "from tamis.cli import main; main()"')):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
        (programs / name).chmod(stat.S_IRWXU)

    def run_block(name: str) -> str:
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-eu", "-c", commands(name)], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_block


def fill(service: Service) -> None:
    with Client(service.url, service.admin) as client:
        client.create("x = 1", id="s1")
        client.publish({"id": "e1", "x": 1})


def test_a_database_that_is_in_use_is_backed_up_and_restored(
    tmp_path: Path, run: Callable[[str], str]
) -> None:
    with running_service(tmp_path / "tamis-data") as service:
        service.wait_until_ready()
        fill(service)
        assert (tmp_path / "tamis-data" / "tamis.db-wal").stat().st_size > 0
        run("hot back-up")
        with Client(service.url, service.admin) as client:
            client.create("x = 2", id="too late")
    listed = run("restore")
    assert service.admin.split("_")[1] in listed
    with serving(service.settings) as url, Client(url, service.admin) as client:
        assert [one.id for one in client.subscriptions()] == ["s1"]
        assert client.create("x = 3", id="s2").version == 1
        assert list((tmp_path / "tamis-data" / "events").iterdir()) == []


def test_all_of_it_is_backed_up_and_restored(tmp_path: Path, run: Callable[[str], str]) -> None:
    with running_service(tmp_path / "tamis-data") as service:
        service.wait_until_ready()
        fill(service)
    run("cold back-up")
    (tmp_path / "tamis-data").rename(tmp_path / "broken")
    subprocess.run(["tar", "-xzf", "tamis-data.tar.gz"], cwd=tmp_path, check=True)
    with serving(service.settings) as url, Client(url, service.admin) as client:
        assert client.get("s1").filter == "x = 1"
        assert client.preview("x = 1").n_matches == 1  # the event is in the log


def test_a_database_of_postgresql_is_dumped_and_restored(
    tmp_path: Path, postgresql: PostgreSQL
) -> None:
    old, new = postgresql.new_database(), postgresql.new_database()
    with running_service(tmp_path / "old", old) as service:
        service.wait_until_ready()
        fill(service)
        dump = [postgresql.program("pg_dump"), "--format=custom", f"--file={tmp_path}/tamis.dump"]
        subprocess.run([*dump, f"--dbname={old}"], check=True)
    restore = [postgresql.program("pg_restore"), "--clean", "--if-exists", f"--dbname={new}"]
    subprocess.run([*restore, f"{tmp_path}/tamis.dump"], check=True)
    with (
        serving(ServiceSettings(tmp_path / "new", new)) as url,
        Client(url, service.admin) as client,
    ):
        assert client.get("s1").filter == "x = 1"
        assert client.create("x = 3", id="s2").version == 1
