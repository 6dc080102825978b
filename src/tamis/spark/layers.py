"""Layers: an index with what its subscriptions want done with their matches, as files.

index/            the index, as ``Index.save`` writes it
settings.arrow    a row a subscription, in the order of the index: owner, schedule
removed.npy       the rows of the layer below that no longer count
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.delivery import parse_settings, settings_text
from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.model import Subscription

Rows = npt.NDArray[np.int32]
NO_ROWS: Rows = np.zeros(0, np.int32)

_TEXTS = pa.dictionary(pa.int32(), pa.string())
_SETTINGS = pa.schema([("owner", _TEXTS), ("schedule", _TEXTS)])


@dataclass(frozen=True)
class Layer:
    """An opened layer, memory-mapped."""

    index: Index
    ids: pa.Array
    owners: pa.DictionaryArray
    schedules: pa.DictionaryArray
    removed: Rows

    def __len__(self) -> int:
        return len(self.ids)

    def subscriptions(self) -> list[Subscription]:
        """All of them, in the order of the index."""
        return [self.index[id] for id in self.ids.to_pylist()]


def settings_of(subscriptions: Iterable[Subscription]) -> pa.Table:
    """The settings of subscriptions, in their order."""
    return settings_table((one.owner, one.delivery) for one in subscriptions)


def settings_table(deliveries: Iterable[tuple[str, Mapping[str, Any]]]) -> pa.Table:
    """The settings of subscriptions, from their owners and delivery settings."""
    pairs = [(owner, settings_text(delivery)) for owner, delivery in deliveries]
    for text in {text for _, text in pairs}:
        parse_settings(text)
    owners, schedules = zip(*pairs, strict=True) if pairs else ((), ())
    columns = [pa.array(texts, pa.string()).dictionary_encode() for texts in (owners, schedules)]
    return pa.table(columns, schema=_SETTINGS)


def ids_of(index: Index) -> pa.Array:
    """The id of every row of an index."""
    return index.match_batch([]).dictionary()


def write_layer(path: Path, index: Index, settings: pa.Table, removed: Rows = NO_ROWS) -> None:
    """Write a new directory, which appears whole or not at all."""
    aside = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-")
        folder = Path(aside)
        index.save(folder / "index")
        target = str(folder / "settings.arrow")
        with pa.OSFile(target, "wb") as file, pa.ipc.new_file(file, _SETTINGS) as writer:
            writer.write_table(settings.unify_dictionaries().combine_chunks())
        np.save(folder / "removed.npy", removed)
        # At once, for the file system then does with few writes of its journal.
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(sync, [*folder.glob("*.*"), *folder.glob("index/*.*"), folder]))
        folder.rename(path)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise SnapshotError(f"cannot write the snapshot {path}: {error}") from error
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def open_layer(path: Path) -> Layer:
    """Open a layer, or an index that was saved without settings."""
    if not (path / "index").is_dir():
        index = Index.open(path)
        ids = ids_of(index)
        nothing = pa.DictionaryArray.from_arrays(np.zeros(len(ids), np.int32), pa.array([""]))
        return Layer(index, ids, nothing, nothing, NO_ROWS)
    index = Index.open(path / "index")
    ids = ids_of(index)
    try:
        with pa.memory_map(str(path / "settings.arrow")) as file:
            settings = pa.ipc.open_file(file).read_all().combine_chunks()
        removed: Rows = np.load(path / "removed.npy")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SnapshotError(f"the snapshot {path} is damaged: {error}") from error
    if len(settings) != len(ids):
        raise SnapshotError(f"the snapshot {path} is damaged: settings and index differ in size")
    return Layer(index, ids, _whole(settings, "owner"), _whole(settings, "schedule"), removed)


def n_bytes_of(path: Path) -> int:
    """The size of a directory's files."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def sync(path: Path) -> None:
    """See to it that a file or the entries of a directory survive a crash of the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _whole(table: pa.Table, name: str) -> pa.DictionaryArray:
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.DictionaryArray.from_arrays(NO_ROWS, pa.array([], pa.string()))
