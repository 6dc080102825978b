"""A database full of searches, for what is measured with many subscriptions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tamis.bench.ads import generate_searches
from tamis.bench.service.processes import BenchFailed, tamis_command

_AT_ONCE = 50_000


def fill_database(
    url: str, n_searches: int, folder: Path, listen: Callable[[str], None] = lambda said: None
) -> None:
    """Import searches with the command of users; their lines are written to the folder first."""
    lines = folder / "subscriptions.jsonl"
    listen(f"writing {n_searches:,} searches")
    with lines.open("w") as out:
        for first in range(0, n_searches, _AT_ONCE):
            some = generate_searches(min(_AT_ONCE, n_searches - first), seed=first)
            for number, one in enumerate(some, first):
                line = {**one.to_json(), "id": str(number)}
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
    listen("importing them")
    command = tamis_command("import", str(lines), "--database", url, "--owner", "importer")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchFailed(f"tamis import failed: {done.stderr[-2_000:]}")
