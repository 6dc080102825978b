"""Index files: a directory with a manifest and the subscriptions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import SnapshotError, TamisError
from tamis.model import Schema, Subscription

FORMAT = 1

_MANIFEST = "manifest.json"
_SUBSCRIPTIONS = "subscriptions.parquet"


def write(path: Path, subscriptions: Iterable[Subscription], schema: Schema | None) -> None:
    """Write a directory that appears whole or not at all."""
    if path.exists():
        raise SnapshotError(f"{path} exists; snapshots are never overwritten, give a new path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as made:
            whole = Path(made) / "whole"
            whole.mkdir()
            rows = [json.dumps(one.to_json(), ensure_ascii=False) for one in subscriptions]
            table = pa.table({"subscription": pa.array(rows, pa.string())})
            pq.write_table(table, whole / _SUBSCRIPTIONS)
            manifest = {
                "format": FORMAT,
                "n_subscriptions": len(rows),
                "schema": None if schema is None else schema.to_json(),
            }
            (whole / _MANIFEST).write_text(json.dumps(manifest, indent=1))
            whole.rename(path)
    except OSError as error:
        raise SnapshotError(f"cannot write the index to {path}: {error}") from error


def read(path: Path) -> tuple[list[Subscription], Schema | None]:
    """The subscriptions and the schema of a snapshot."""
    manifest = _read_manifest(path)
    try:
        rows = pq.read_table(path / _SUBSCRIPTIONS).column("subscription").to_pylist()
        subscriptions = [Subscription.from_json(row) for row in rows]
    except (OSError, pa.ArrowException, KeyError, TamisError) as error:
        raise SnapshotError(f"the index at {path} is damaged: {error}") from error
    if len(subscriptions) != manifest["n_subscriptions"]:
        raise SnapshotError(
            f"the index at {path} holds {len(subscriptions)} subscriptions, its manifest says "
            f"{manifest['n_subscriptions']}; it is damaged"
        )
    schema = manifest["schema"]
    return subscriptions, None if schema is None else Schema(schema)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
    except FileNotFoundError:
        raise SnapshotError(f"{path} is not an index: there is no {_MANIFEST} in it") from None
    except (OSError, ValueError) as error:
        raise SnapshotError(f"the manifest of {path} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise SnapshotError(f"the manifest of {path} does not say its format; it is damaged")
    if manifest["format"] > FORMAT:
        raise SnapshotError(
            f"the index at {path} has format {manifest['format']}; this Tamis reads up to "
            f"{FORMAT}, upgrade it"
        )
    return manifest
