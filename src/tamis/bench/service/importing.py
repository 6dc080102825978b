"""Imports of many subscriptions into an empty database, by ``tamis import`` and over HTTP."""

from __future__ import annotations

import json
import subprocess
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx

from tamis.bench.ads import generate_searches
from tamis.bench.service.processes import BenchFailed, Server, new_key, tamis_command
from tamis.storage import Database, SubscriptionStore

_AT_ONCE = 50_000
_OWNER = "importer"
_WAIT_S = 600.0
_PATH = "/v1/subscriptions/import"
_LONGEST_SUMMARY = 4_096


def measure_import(folder: Path, database_url: str, n_subscriptions: int) -> dict[str, Any]:
    """How long the whole command takes, its start included."""
    new_key(database_url)
    lines = folder / "subscriptions.jsonl"
    _write_lines(lines, n_subscriptions)
    command = tamis_command("import", str(lines), "--database", database_url, "--owner", _OWNER)
    start = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = perf_counter() - start
    if done.returncode:
        raise BenchFailed(f"tamis import failed: {done.stderr[-2_000:]}")
    _check(database_url, n_subscriptions)
    return _figures(lines, n_subscriptions, seconds)


def measure_upload(
    folder: Path, server: Server, database_url: str, n_subscriptions: int
) -> dict[str, Any]:
    """From the first byte sent until the result of every line was read; until all can match."""
    lines = folder / "subscriptions.jsonl"
    _write_lines(lines, n_subscriptions)
    before, start = server.cpu_s(), perf_counter()
    n_results, last = _upload(server, lines)
    seconds, cpu = perf_counter() - start, server.cpu_s() - before
    summary = json.loads(last)["summary"]
    if (n_results, summary["created"]) != (n_subscriptions + 1, n_subscriptions):
        raise BenchFailed(f"{n_results:,} results of {n_subscriptions:,} lines: {summary}")
    _check(database_url, n_subscriptions)
    while httpx.get(server.url + "/readyz", timeout=60).json()["n_subscriptions"] < n_subscriptions:
        if perf_counter() > start + _WAIT_S:
            raise BenchFailed("what was imported is still not in the index of the service")
        sleep(0.2)
    return {
        **_figures(lines, n_subscriptions, seconds),
        "server_cpu_s": round(cpu, 2),
        "indexed_s": round(perf_counter() - start, 2),
    }


def _upload(server: Server, lines: Path) -> tuple[int, bytes]:
    """How many results a service tells, and the last line of what it tells."""
    connection = HTTPConnection(
        server.url.removeprefix("http://"), timeout=_WAIT_S, blocksize=1 << 16
    )
    headers = {
        "Authorization": f"Bearer {server.key}", "Content-Length": str(lines.stat().st_size),
    }  # fmt: skip
    with lines.open("rb") as body:
        connection.request("POST", _PATH, body, headers)
    n_results, last = 0, b""
    with connection.getresponse() as answer:
        while part := answer.read1(1 << 16):
            n_results += part.count(b"\n")
            last = (last + part)[-_LONGEST_SUMMARY:]
    connection.close()
    return n_results, last.rstrip().rpartition(b"\n")[2]


def _figures(lines: Path, n_subscriptions: int, seconds: float) -> dict[str, Any]:
    return {
        "n_subscriptions": n_subscriptions,
        "seconds": round(seconds, 2),
        "us_each": round(1e6 * seconds / n_subscriptions, 2),
        "file_mb": round(lines.stat().st_size / 1e6, 1),
    }


def _write_lines(file: Path, n_subscriptions: int) -> None:
    """Searches for cars and flats; a part of them again and again, under ids of their own."""
    searches = generate_searches(min(n_subscriptions, _AT_ONCE))
    bodies = [json.dumps(one.to_json(), ensure_ascii=False) for one in searches]
    held = [
        body.replace(json.dumps(one.id), '"%d"', 1)
        for body, one in zip(bodies, searches, strict=True)
    ]
    with file.open("w") as out:
        for first in range(0, n_subscriptions, len(held)):
            some = held[: n_subscriptions - first]
            out.writelines(
                body.replace("%d", str(first + n), 1) + "\n" for n, body in enumerate(some)
            )


def _check(database_url: str, n_subscriptions: int) -> None:
    database = Database(database_url)
    try:
        found = SubscriptionStore(database).count()
    finally:
        database.close()
    if found != n_subscriptions:
        raise BenchFailed(f"{found:,} subscriptions of {n_subscriptions:,} were imported")
