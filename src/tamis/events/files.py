"""Store files: the array files of an event store; the manifest has its clock and its segments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.events.moments import LONG_AGO, datetime_of
from tamis.events.segment import Segment
from tamis.events.table import EventTable
from tamis.kernels.event_cells import Cells
from tamis.slots.array_files import Array, ArrayReader, ArrayWriter, Kind, reading, writing
from tamis.slots.texts import Stored

FORMAT = 2  # what 1 was merged from had lost texts that lie between others of an event

_TEXTS = ("letters", "offsets", "table")
_OF_TABLE = ("whole", "whole_of", "moment", "sequence", "flags")  # the others are in the cells
_IF_OLDER = "where texts may be missing: insert the events into a new store, and save that"
_STORE = Kind(FORMAT, "segments", "store", "an event store", _IF_OLDER)


def write(path: Path, segments: Sequence[Segment], version: int, clock: int) -> None:
    """Write what a reader of a version sees to a directory that appears whole or not at all."""
    with writing(path, _STORE) as files:
        _Writer(files, version).write(segments, clock)


def read(path: Path, verify: bool = False) -> tuple[list[Segment], int]:
    """The segments of a store, memory-mapped, and its clock; every byte checked if so wanted."""
    with reading(path, _STORE, verify) as files:
        reader = _Reader(files)
        segments = [reader.segment(held) for held in files.manifest["segments"]]
        return segments, _clock_of(files.manifest["clock"])


def _clock_of(held: Any) -> int:
    """The clock of a manifest."""
    if type(held) is not int:
        raise ValueError(f"the clock is {held!r}")
    if held != LONG_AGO:
        datetime_of(held)  # an OverflowError if there is no such moment
    return held


class _Writer:
    def __init__(self, files: ArrayWriter, version: int) -> None:
        self._files, self._save, self.version = files, files.save, version

    def write(self, segments: Sequence[Segment], clock: int) -> None:
        held = [self._segment(f"segment.{i}", one) for i, one in enumerate(segments)]
        self._files.finish({"clock": clock, "segments": held})

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


class _Reader:
    def __init__(self, files: ArrayReader) -> None:
        self._files = files

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
        # Deaths are written to: pages are copied when that happens. All arrays are opened so, as
        # kernels take one kind.
        return self._files.load(name, "c")


def _buffers_of(blobs: pa.Array) -> tuple[Array, Array]:
    """Where each blob ends, after a 0, and the bytes of all."""
    _, ends, held = blobs.buffers()
    offsets = np.frombuffer(ends, np.int64)[blobs.offset : blobs.offset + len(blobs) + 1]
    return offsets - offsets[0], np.frombuffer(held, np.uint8)[offsets[0] : offsets[-1]]
