"""Result files: one JSON file a cell, so that a run that was stopped can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from tamis.bench.machine import commit, load, machine, versions
from tamis.errors import TamisError


class BadResult(TamisError):
    """A result file cannot be read."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Which cell: what was measured, on which workload, at which scale or sweep point.

    >>> Key("match", "W1", 0.1).file_name
    'W1-x0.1-match.json'
    """

    cell: str
    workload: str
    scale: float
    point: str = ""

    @property
    def file_name(self) -> str:
        """The name of the result file."""
        words = (self.workload, f"x{self.scale:g}", self.cell, self.point)
        return "-".join(word for word in words if word) + ".json"

    @property
    def title(self) -> str:
        """The cell in words."""
        return " ".join(word for word in (self.workload, self.cell, self.point) if word)


class Results:
    """The result files of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __contains__(self, key: Key) -> bool:
        return (self.directory / key.file_name).exists()

    def read(self, key: Key) -> dict[str, Any]:
        """What was found; empty if nothing was measured yet."""
        return dict(self.whole(key).get("found", {}))

    def whole(self, key: Key) -> dict[str, Any]:
        """A result file with what it was measured on; empty if nothing was measured yet."""
        path = self.directory / key.file_name
        return _read(path) if path.exists() else {}

    def write(self, key: Key, found: dict[str, Any], seconds: float | None = None) -> None:
        """Save a cell with what it was measured on, and how long that took in all."""
        self.directory.mkdir(parents=True, exist_ok=True)
        whole = {
            "cell": key.cell,
            "workload": key.workload,
            "scale": key.scale,
            "point": key.point,
            "found": found,
            "seconds": None if seconds is None else round(seconds, 1),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit(),
            "load": load(),
            "machine": machine(),
            "versions": versions(),
        }
        path = self.directory / key.file_name
        part = path.with_suffix(".part")
        part.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
        part.rename(path)

    def remove(self, key: Key) -> None:
        """Forget a cell, if it was measured."""
        (self.directory / key.file_name).unlink(missing_ok=True)

    def all(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        """Every result file of the directory, whole."""
        for path in sorted(self.directory.glob("*.json")):
            whole = _read(path)
            yield Key(whole["cell"], whole["workload"], whole["scale"], whole["point"]), whole


def _read(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads(path.read_text())
    except ValueError as error:
        raise BadResult(f"the result file {path} is damaged: {error}; remove it") from None
    if not isinstance(whole, dict) or "found" not in whole:
        raise BadResult(f"{path} is no result file; remove it")
    return whole


Listener = Callable[[Key, str, float], None]
"""Told of a cell that it is kept, starts or is done, and how many seconds it took."""


def measure_cells(
    results: Results,
    keys: Sequence[Key],
    measure: Callable[[Key], dict[str, Any]],
    listen: Listener,
    *,
    resume: bool,
) -> None:
    """Measure all, with ``resume`` what has no result file yet; each is saved at once."""
    for key in keys:
        if resume and key in results:
            listen(key, "kept", 0.0)
            continue
        listen(key, "starts", 0.0)
        start = perf_counter()
        found = measure(key)
        seconds = perf_counter() - start
        results.write(key, found, seconds)
        listen(key, "done", seconds)
