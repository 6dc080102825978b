"""Store files: a directory of a manifest and arrays, written once, memory-mapped ever after.

manifest.json     format, clock, the columns and texts of each segment
<name>.npy        an array a file; a name says where the array belongs
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import SnapshotError
from tamis.events.segment import Segment
from tamis.events.table import EventTable
from tamis.kernels.event_cells import Cells
from tamis.slots.texts import Stored

FORMAT = 2  # what 1 was merged from had lost texts that lie between others of an event

_MANIFEST = "manifest.json"
_TEXTS = ("letters", "offsets", "table")
_OF_TABLE = ("whole", "whole_of", "moment", "sequence", "flags")  # the others are in the cells
Array = npt.NDArray[Any]


def write(path: Path, segments: Sequence[Segment], version: int, clock: int) -> None:
    """Write what a reader of a version sees to a directory that appears whole or not at all."""
    if path.exists():
        raise SnapshotError(f"{path} exists; saved stores are never overwritten, give a new path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as made:
            whole = Path(made) / "whole"
            whole.mkdir()
            _Writer(whole, version).write(segments, clock)
            whole.rename(path)
    except OSError as error:
        raise SnapshotError(f"cannot write the store to {path}: {error}") from error


def read(path: Path) -> tuple[list[Segment], int]:
    """The segments of a store, memory-mapped, and its clock."""
    manifest = _read_manifest(path)
    try:
        reader = _Reader(path, manifest)
        segments = [reader.segment(held) for held in manifest["segments"]]
        return segments, int(manifest["clock"])
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"the store at {path} is damaged: {error}") from error


class _Writer:
    def __init__(self, path: Path, version: int) -> None:
        self.path, self.version = path, version
        self.arrays: dict[str, list[Any]] = {}

    def write(self, segments: Sequence[Segment], clock: int) -> None:
        held = [self._segment(f"segment.{i}", one) for i, one in enumerate(segments)]
        manifest = {"format": FORMAT, "clock": clock, "segments": held, "arrays": self.arrays}
        (self.path / _MANIFEST).write_text(json.dumps(manifest, indent=1))

    def _segment(self, name: str, segment: Segment) -> dict[str, Any]:
        table = segment.table
        for part, array in segment.cells._asdict().items():
            if part == "death":  # whoever opens the store begins with version 1
                array = ((array > 0) & (array <= self.version)).astype(np.int64)
            self._save(f"{name}.{part}", array)
        for part in _OF_TABLE:
            self._save(f"{name}.{part}", getattr(table, part))
        texts = [segment.ids, *segment.texts.values()]
        for i, stored in enumerate(texts):
            for part, array in stored.arrays().items():
                self._save(f"{name}.texts.{i}.{part}", array)
        if table.blobs is not None:
            for part, array in zip(("ends", "bytes"), _buffers_of(table.blobs), strict=True):
                self._save(f"{name}.blobs.{part}", array)
        return {
            "name": name,
            "columns": table.names,
            "texts": list(segment.texts),
            "has_blobs": table.blobs is not None,
        }

    def _save(self, name: str, array: Array) -> None:
        np.save(self.path / f"{name}.npy", array)
        self.arrays[name] = [array.dtype.str, list(array.shape)]


class _Reader:
    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.arrays = path, manifest["arrays"]

    def segment(self, held: dict[str, Any]) -> Segment:
        name = held["name"]
        cells = Cells(*(self._load(f"{name}.{part}") for part in Cells._fields))
        whole, whole_of, moment, sequence, flags = (
            self._load(f"{name}.{part}") for part in _OF_TABLE
        )
        ids, *codes = (self._texts(f"{name}.texts.{i}") for i in range(len(held["texts"]) + 1))
        texts = dict(zip(held["texts"], codes, strict=True))
        blobs = self._blobs(name) if held["has_blobs"] else None
        table = EventTable(
            tuple((str(attribute), int(lane)) for attribute, lane in held["columns"]),
            cells.low, cells.high, cells.high_of, whole, whole_of,
            {attribute: stored.array for attribute, stored in texts.items()}, ids.array,
            cells.until, moment, sequence, flags, blobs,
        )  # fmt: skip
        return Segment(table, ids, texts, cells)

    def _texts(self, name: str) -> Stored:
        return Stored(*(self._load(f"{name}.{part}") for part in _TEXTS))

    def _blobs(self, name: str) -> pa.Array:
        ends, held = (self._load(f"{name}.blobs.{part}") for part in ("ends", "bytes"))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(held)]
        return pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)

    def _load(self, name: str) -> Array:
        file = self.path / f"{name}.npy"
        # Deaths are written to: pages are copied when that happens. All arrays are opened so, as
        # kernels take one kind; files without elements cannot be mapped.
        array: Array = np.load(file, mmap_mode="c" if file.stat().st_size > 128 else None)
        # Kernels trust the sizes of arrays, so a file of another size must not get to them.
        if [array.dtype.str, list(array.shape)] != self.arrays[name]:
            raise ValueError(f"{file.name} is not the array that was written")
        return np.asarray(array)


def _buffers_of(blobs: pa.Array) -> tuple[Array, Array]:
    """Where each blob ends, after a 0, and the bytes of all."""
    _, ends, held = blobs.buffers()
    offsets = np.frombuffer(ends, np.int64)[blobs.offset : blobs.offset + len(blobs) + 1]
    return offsets - offsets[0], np.frombuffer(held, np.uint8)[offsets[0] : offsets[-1]]


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
    except FileNotFoundError:
        raise SnapshotError(f"{path} is not a store: there is no {_MANIFEST} in it") from None
    except (OSError, ValueError) as error:
        raise SnapshotError(f"the manifest of {path} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or "segments" not in manifest:
        raise SnapshotError(f"the manifest of {path} is not that of an event store")
    given = manifest.get("format")
    if given != FORMAT:
        what = (
            "upgrade Tamis"
            if isinstance(given, int) and given > FORMAT
            else "where texts may be missing: insert the events into a new store, and save that"
        )
        raise SnapshotError(
            f"the store at {path} has format {given!r}; this Tamis reads {FORMAT}, {what}"
        )
    return manifest
