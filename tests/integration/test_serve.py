"""``tamis serve`` as people run it: one command, the whole way, ended cleanly."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from tamis.cli.app import app
from tamis.client import Client
from tests.integration.ports import free_ports
from tests.integration.receiver import receiving
from tests.integration.spark_cluster import parents

RUN = [sys.executable, "-W", "error", "-c", "from tamis.cli import main; main()"]


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of a service, and its address."""
    (port,) = free_ports(1)
    command = [*RUN, "serve", "--data", str(folder / "data"), "--port", str(port), *options]
    with (folder / "err").open("a") as errors, (folder / "out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=errors, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 240  # an empty cache of kernels is filled first
        while True:
            assert process.poll() is None, (folder / "err").read_text()
            assert time.monotonic() < until
            try:
                if httpx.get(url + "/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        yield process, url
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def first_key(folder: Path) -> str:
    found = re.search(r"tamis_\w+", (folder / "out").read_text())
    assert found is not None
    return found[0]


@pytest.mark.spark
def test_from_an_event_to_its_notification(tmp_path: Path) -> None:
    """A subscription is saved, an event published, its owner told, at a webhook too.

    Only that a webhook may be on this machine is configured. Who comes late is told of what is
    still valid.
    """
    (tmp_path / "sender.toml").write_text("[webhook]\nallow_networks = ['127.0.0.0/8']\n")
    options = ("--sender", str(tmp_path / "sender.toml"))
    with receiving() as receiver, serve(tmp_path, *options) as (process, url):
        key = first_key(tmp_path)
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
        with Client(url, key) as client:
            webhook = {"webhook": f"{receiver.url}/told"}
            client.create("price < 10 AND note = 'ü'", id="s1", priority=0, delivery=webhook)
            client.create("price < 5", id="s2")
            client.publish({"id": "e1", "price": 7, "note": "ü", "id2": "x"})
            lasting = {"id": "e2", "attributes": {"price": 100}, "until": "2999-01-01T00:00:00Z"}
            client.publish([lasting])
            (told,) = _wait_for_notifications(client, 1)
            assert (told.subscription_id, told.owner, told.n_matches) == ("s1", "admin", 1)
            assert told.matches[0]["event_id"] == "e1"
            client.create("price > 50", id="s3")
            late, _ = _wait_for_notifications(client, 2)
            assert (late.subscription_id, late.matches[0]["event_id"]) == ("s3", "e2")
            (sent,) = _wait(lambda: receiver.received)
            assert sent.headers["webhook-id"] == told.id
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    errors = (tmp_path / "err").read_text()
    assert "Traceback" not in errors
    assert key.rpartition("_")[2] not in errors


def _wait(found: Callable[[], list]) -> list:
    until = time.monotonic() + 60
    while not found():
        assert time.monotonic() < until
        time.sleep(0.1)
    return found()


def _wait_for_notifications(client: Client, n_wanted: int) -> list:
    until = time.monotonic() + 200
    while len(found := client.notifications()) < n_wanted:
        assert time.monotonic() < until
        time.sleep(0.2)
    return found


def test_ctrl_c_ends_a_service_that_is_being_followed(tmp_path: Path) -> None:
    with serve(tmp_path, "--no-pipeline") as (process, url):
        key = first_key(tmp_path)
        headers = {"Authorization": f"Bearer {key}"}
        stream = httpx.stream("GET", url + "/v1/notifications/stream", headers=headers, timeout=60)
        with stream as response:
            assert response.status_code == 200
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(60) == 130
    assert "Traceback" not in (tmp_path / "err").read_text()


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    with serve(tmp_path, "--no-pipeline") as (process, url):
        key = first_key(tmp_path)
        with Client(url, key) as client:
            for number in range(20):
                client.publish({"id": f"e{number}", "x": number})
            client.create("x = 1", id="s1")
            process.kill()
            process.wait()
    with serve(tmp_path, "--no-pipeline") as (_, url), Client(url, key) as client:
        assert "tamis_" not in (tmp_path / "out").read_text()  # the key is shown once
        assert client.get("s1").version == 1
        files = sorted((tmp_path / "data" / "events").glob("[!.]*.jsonl"))
        lines = [
            json.loads(line)["@id"] for path in files for line in path.read_text().splitlines()
        ]
        assert lines == [f"e{number}" for number in range(20)]


def test_a_pipeline_ends_with_its_service_also_after_kill_9(tmp_path: Path) -> None:
    state = tmp_path / "data" / "pipeline"
    state.mkdir(parents=True)
    with (state / "lock").open("ab") as lock:
        # The pipeline waits for its state and starts no Spark; that would end in the same way.
        fcntl.flock(lock, fcntl.LOCK_EX)
        with serve(tmp_path) as (process, _):
            _wait(lambda: _are_in("waiting for its end", tmp_path / "err"))
            (pipeline,) = [pid for pid, parent in parents().items() if parent == process.pid]
            process.kill()
            process.wait()
        _wait(lambda: [] if pipeline in parents() else [pipeline])
    assert "Traceback" not in (tmp_path / "err").read_text()


def _are_in(text: str, file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if text in line]


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*RUN, "serve", "--no-pipeline", "--data", str(tmp_path), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"could not start on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_keys_on_the_command_line(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tamis.db"

    def keys(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["keys", *arguments, "--database", url])

    made = keys("create", "zoe", "--scope", "subscriber", "--limit", "burst=5")
    assert made.exit_code == 0, made.stderr
    key = made.stdout.strip()
    listed = keys("list", "--json")
    (held,) = [json.loads(line) for line in listed.stdout.splitlines()]
    assert (held["owner"], held["limits"], held["revoked_at"]) == ("zoe", {"burst": 5}, None)
    assert key.rpartition("_")[2] not in listed.stdout
    assert keys("revoke", held["prefix"]).exit_code == 0
    assert json.loads(keys("list", "--json").stdout)["revoked_at"]
    for arguments, said in (
        (("create", "zoe", "--scope", "king"), "subscriber, publisher, admin"),
        (("create", "zoe", "--scope", "admin", "--limit", "burst"), "name=number"),
        (("create", "zoe", "--scope", "admin", "--limit", "speed=1"), "no limit 'speed'"),
        (("revoke", "0000000000"), "no key"),
    ):
        done = keys(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert said in done.stderr


def test_imports_on_the_command_line(tmp_path: Path) -> None:
    def tamis_import(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [*RUN, "import", *arguments, "--database", "sqlite:///tamis.db"]
        return subprocess.run(
            command, capture_output=True, text=True, input=given, cwd=tmp_path, check=False
        )

    lines = (
        '{"id": "a", "filter": "x = 1"}\n{"id": "b", "filter": "x ="}\n'
        '{"id": "c", "filter": "y = 1", "owner": "max"}\n'
    )
    done = tamis_import("-", "--owner", "zoe", "--json", given=lines)
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert (told["created"], told["replaced"], told["error"]) == (2, 0, 1)
    assert "line 2: " in done.stderr
    (tmp_path / "subs.jsonl").write_text('{"id": "a", "filter": "x = 2"}\n')
    done = tamis_import("subs.jsonl", "--owner", "zoe")
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 replaced" in done.stderr
    done = tamis_import("none")
    assert done.returncode == 2
    assert "No such file" in done.stderr
