"""Cell of files: saving an index, and opening it in this and in other processes."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tamis.bench.cases import BoxCase, Case
from tamis.bench.measure import time_once
from tamis.bench.probe import ask
from tamis.index import Index

_OPENINGS = 5


def measure_files(case: Case) -> dict[str, Any]:
    """Save, open again and again, and open in a fresh process."""
    index = case.index
    directory = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    try:
        path = directory / "index"
        _, save_seconds = time_once(lambda: index.save(path))
        opened = [time_once(lambda: Index.open(path)) for _ in range(_OPENINGS)]
        case.check(opened[-1][0])
        found: dict[str, Any] = {
            "n_subscriptions": case.n_subscriptions,
            "save_seconds": round(save_seconds, 4),
            "open_seconds": round(median(seconds for _, seconds in opened), 5),
            "bytes_on_disk": _size(path),
        }
        if isinstance(case, BoxCase):  # events of W5 hold values that plain JSON does not
            events = directory / "events.json"
            events.write_text(json.dumps(case.events[:200]))
            found["fresh_process"] = ask("open", str(path), str(events))
        return found
    finally:
        shutil.rmtree(directory)


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
