"""An import of many subscriptions by ``tamis import``, into an empty database."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from time import perf_counter
from typing import Any

from tamis.bench.ads import generate_searches
from tamis.bench.service.processes import BenchFailed, new_key, tamis_command
from tamis.storage import Database, SubscriptionStore

_AT_ONCE = 50_000
_OWNER = "importer"


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
