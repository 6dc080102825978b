"""A market of ads for the tests of whole pipelines: what goes in, and what must come out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq

from tamis.language import evaluate
from tamis.model import Event, Subscription


class Market:
    """The folders of a pipeline, what was put into them, and what came out."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder = folder
        self.expected: set[tuple[str, str]] = set()
        self.searches: dict[str, Subscription] = {}
        self._sequence = 0
        self._told: dict[Path, list[tuple[str, str]]] = {}
        for name in ("ads", "searches"):
            (folder / name).mkdir()
        (folder / "pipeline.toml").write_text(settings)

    def save(self, searches: list[Subscription], deleted: list[str] | None = None) -> None:
        lines = []
        for one in [*searches, *(deleted or [])]:
            self._sequence += 1
            if isinstance(one, str):
                self.searches.pop(one)
                lines.append({"sequence": self._sequence, "op": "delete", "id": one})
            else:
                self.searches[one.id] = one
                lines.append({"sequence": self._sequence, **one.to_json()})
        self._put("searches", [json.dumps(line) for line in lines])

    def post(self, ads: list[Event], *broken: str, written_at: float | None = None) -> None:
        """Put a file of ads; every search of now must be told."""
        lines = []
        for ad in ads:
            plain = Event(ad.id, {k: v for k, v in ad.attributes.items() if k != "location"})
            lines.append(json.dumps({"id": ad.id, **plain.to_json()["attributes"]}))
            self.expected |= {
                (ad.id, one.id) for one in self.searches.values() if evaluate(one.filter, plain)
            }
        self._put("ads", [*lines, *broken], written_at)

    def _put(self, folder: str, lines: list[str], written_at: float | None = None) -> None:
        number = len(list((self.folder / folder).glob("*.jsonl")))
        aside = self.folder / folder / f".{number}"
        aside.write_text("\n".join(lines) + "\n")
        if written_at is not None:
            os.utime(aside, (written_at, written_at))
        aside.rename(self.folder / folder / f"{number:04}.jsonl")

    def told(self) -> list[tuple[str, str]]:
        """Each event and search it was told to, as often as it was."""
        for file in sorted((self.folder / "outbox").glob("batch=*/*.parquet")):
            if file not in self._told:  # files never change
                rows = pq.ParquetFile(file).read(["subscription_id", "matches"]).to_pylist()
                self._told[file] = [
                    (held["event_id"], one["subscription_id"])
                    for one in rows for held in one["matches"]
                ]  # fmt: skip
        return [pair for pairs in self._told.values() for pair in pairs]
