"""Snapshots: every version of the subscriptions as immutable files, by token.

store.json                  format, n_tokens
versions/<number>.json      number, sequence of the last change in it, the layers of each token
versions/<number>.ids       the subscriptions that it changes, where that is asked for; Parquet
layers/<name>/              written once (see layers.py)

A version is there when its file is, which one rename brings; layers are written before.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import SnapshotError, TamisError
from tamis.index import Index
from tamis.model import Subscription
from tamis.spark.layers import (
    NO_ROWS,
    Layer,
    n_bytes_of,
    open_layer,
    settings_of,
    sync,
    write_layer,
)
from tamis.spark.versions import TokenPlace, Version

FORMAT = 1
DEFAULT_TOKENS = 8

# A delta is merged into its base when it has passed both of these: its subscriptions are read
# again for every version, and the base is then written again.
_DELTA_ROWS = 500
_DELTA_SHARE = 0.02


def token_of(id: str, n_tokens: int) -> int:
    """The token of a subscription: the CRC-32 of its id, modulo their number.

    >>> token_of("s1", 8), token_of("s2", 8)
    (0, 2)
    """
    return zlib.crc32(id.encode()) % n_tokens


class SnapshotStore:
    """A directory of versions; one process writes to it, any number read.

    ``n_tokens`` is fixed when the store is made. One that ``keeps_changes`` writes down which
    subscriptions each version changes.
    """

    keeps_changes = False

    def __init__(self, path: str | Path, n_tokens: int | None = None) -> None:
        self.path = Path(path).absolute()
        held = read_json(self.path / "store.json")
        if held is None:
            self.n_tokens = n_tokens or DEFAULT_TOKENS
            write_json(self.path / "store.json", {"format": FORMAT, "n_tokens": self.n_tokens})
            return
        _check_format(self.path, held)
        with _reading(self.path / "store.json"):
            self.n_tokens = int(held["n_tokens"])
        if n_tokens not in (None, self.n_tokens):
            raise SnapshotError(
                f"the snapshots at {self.path} have {self.n_tokens} tokens, {n_tokens} were asked "
                "for; their number cannot change, give a new directory"
            )

    # -- versions

    def numbers(self) -> list[int]:
        """The versions there are, ascending."""
        files = (self.path / "versions").glob("*.json")
        return sorted(int(file.stem) for file in files if file.stem.isdigit())

    def latest(self) -> Version | None:
        """The newest version, if there is one."""
        numbers = self.numbers()
        return self.version(numbers[-1]) if numbers else None

    def version(self, number: int) -> Version:
        """A version by its number."""
        held = read_json(self._file(number))
        if held is None:
            raise SnapshotError(f"there is no version {number} at {self.path}")
        _check_format(self.path, held)
        layers = self.path / "layers"
        with _reading(self._file(number)):
            tokens = tuple(
                TokenPlace(*(None if name is None else str(layers / name) for name in pair))
                for pair in held["tokens"]
            )
            return Version(held["number"], tokens, held["n_bytes"], held["sequence"])

    def publish(self, tokens: Iterable[TokenPlace], sequence: int) -> Version:
        """Make the next version of layers that are written."""
        places = tuple(tokens)
        number = (self.numbers() or [0])[-1] + 1
        n_bytes = sum(n_bytes_of(Path(layer)) for token in places for layer in token.layers)
        held = {
            "format": FORMAT,
            "number": number,
            "sequence": sequence,
            "n_bytes": n_bytes,
            "tokens": [[layer and Path(layer).name for layer in token] for token in places],
        }
        try:
            write_json(self._file(number), held, is_new=True)
        except FileExistsError:
            raise SnapshotError(
                f"another process wrote version {number} at {self.path}; only one may, give each "
                "pipeline its own directory"
            ) from None
        return Version(number, places, n_bytes, sequence)

    def drop_before(self, number: int) -> None:
        """Remove the versions before one, and the layers that no version needs."""
        numbers = self.numbers()
        for old in numbers[:-1]:
            if old < number:
                self._file(old).unlink(missing_ok=True)
                self._file(old).with_suffix(".ids").unlink(missing_ok=True)
        needed = {
            Path(layer).name
            for kept in self.numbers()
            for token in self.version(kept).tokens
            for layer in token.layers
        }
        for layer in (self.path / "layers").glob("*"):
            if layer.name not in needed:
                shutil.rmtree(layer, ignore_errors=True)

    # -- changes

    def new_layer(self, token: int, kind: str) -> Path:
        """A path for a layer that is about to be written."""
        return self.path / "layers" / f"t{token:05}-{kind}-{uuid.uuid4().hex[:12]}"

    def apply(self, changes: Mapping[str, Subscription | None], sequence: int) -> Version:
        """The next version: subscriptions by id to save, None where one goes.

        Only the tokens of these ids get new layers.
        """
        before = self.latest()
        tokens = list(before.tokens) if before else [TokenPlace(None)] * self.n_tokens
        of_token: dict[int, dict[str, Subscription | None]] = {}
        for id, change in changes.items():
            of_token.setdefault(token_of(id, self.n_tokens), {})[id] = change
        held = {layer for token in tokens for layer in token.layers}
        try:
            for token, some in of_token.items():
                tokens[token] = self._changed(token, tokens[token], some)
            if self.keeps_changes:
                self._write_changed(list(changes))
            return self.publish(tokens, sequence)
        except BaseException:
            # Left behind, they would fill a disk that is full already.
            for layer in {layer for token in tokens for layer in token.layers} - held:
                shutil.rmtree(layer, ignore_errors=True)
            raise

    def changed(self, before: int, after: int) -> set[str] | None:
        """The subscriptions that changed from one version to another; None if that is not known."""
        ids: set[str] = set()
        for number in self.numbers():
            if before < number <= after:
                file = self._file(number).with_suffix(".ids")
                if not file.exists():
                    return None
                ids.update(pq.read_table(file)["id"].to_pylist())
        return ids

    def ids(self, version: Version) -> Iterator[str]:
        """The subscriptions that a version has."""
        for place in version.tokens:
            over = open_layer(Path(place.delta)) if place.delta else None
            if place.base:
                gone = set() if over is None else set(over.removed.tolist())
                ids = open_layer(Path(place.base)).ids.to_pylist()
                yield from (id for row, id in enumerate(ids) if row not in gone)
            if over is not None:
                yield from over.ids.to_pylist()

    def find(self, version: Version, ids: Iterable[str]) -> dict[str, Subscription]:
        """Those of some subscriptions that a version has."""
        of_token: dict[int, list[str]] = {}
        for id in ids:
            of_token.setdefault(token_of(id, self.n_tokens), []).append(id)
        found: dict[str, Subscription] = {}
        for token, some in of_token.items():
            place = version.tokens[token]
            over = open_layer(Path(place.delta)) if place.delta else None
            base = open_layer(Path(place.base)) if place.base else None
            if base is not None:
                gone = set() if over is None else set(over.removed.tolist())
                held = [id for id in some if id in base.index]
                rows = _rows_of(base, held)
                living = (id for id, row in zip(held, rows, strict=True) if row not in gone)
                found.update((id, base.index[id]) for id in living)
            if over is not None:
                found.update((id, over.index[id]) for id in some if id in over.index)
        return found

    def _write_changed(self, ids: list[str]) -> None:
        """For the next version; written before it, so that whoever sees it knows its changes."""
        file = self._file((self.numbers() or [0])[-1] + 1).with_suffix(".ids")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"id": pa.array(ids, pa.string())}), file)
            sync(file)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise SnapshotError(f"cannot write {file}: {error}") from error

    def _changed(
        self, token: int, place: TokenPlace, changes: dict[str, Subscription | None]
    ) -> TokenPlace:
        base = open_layer(Path(place.base)) if place.base else None
        over = open_layer(Path(place.delta)) if place.delta else None
        saved: dict[str, Subscription | None] = {}
        if over is not None:
            saved.update({one.id: one for one in over.subscriptions()})
        saved.update(changes)
        removed = set(over.removed.tolist()) if over is not None else set()
        if base is not None:
            rows = _rows_of(base, changes)
            removed.update(rows)
        living = [one for one in saved.values() if one is not None]
        n_base = 0 if base is None else len(base)
        n_changed = len(living) + len(removed)
        if base is None or n_changed > max(_DELTA_ROWS, _DELTA_SHARE * n_base):
            return self._merged(token, base, living, removed)
        path = self.new_layer(token, "delta")
        gone = np.array(sorted(removed), np.int32)
        _write(path, living, gone)
        return TokenPlace(place.base, str(path))

    def _merged(
        self, token: int, base: Layer | None, living: list[Subscription], removed: set[int]
    ) -> TokenPlace:
        path = self.new_layer(token, "base")
        if base is None:
            _write(path, living)
            return TokenPlace(str(path))
        ids = base.ids.to_pylist()
        index = base.index
        for row in removed:
            index.remove(ids[row])
        index.add_many(living)
        kept = np.delete(np.arange(len(base)), sorted(removed))
        old = pa.table({"owner": base.owners.take(kept), "schedule": base.schedules.take(kept)})
        settings = pa.concat_tables([old, settings_of(living)])
        write_layer(path, index, settings)
        return TokenPlace(str(path))

    def _file(self, number: int) -> Path:
        return self.path / "versions" / f"{number:020}.json"


def write_subscriptions(path: Path, subscriptions: list[Subscription]) -> None:
    """Write a base layer of subscriptions."""
    _write(path, subscriptions)


def problem_of(subscription: Subscription) -> str:
    """Why a subscription that can be read cannot be indexed; empty if it can be."""
    try:
        Index().add(subscription)
        settings_of([subscription])
    except (TamisError, ValueError) as error:
        return str(error) or repr(error)
    return ""


def _write(path: Path, subscriptions: list[Subscription], removed: Any = NO_ROWS) -> None:
    index = Index()
    index.add_many(subscriptions)
    write_layer(path, index, settings_of(subscriptions), removed)


def _rows_of(layer: Layer, ids: Iterable[str]) -> list[int]:
    """The rows of ids that a layer has."""
    wanted = pa.array([id for id in ids if id in layer.index], pa.string())
    if not len(wanted):
        return []
    rows: list[int] = pc.index_in(wanted, layer.ids).to_pylist()
    return rows


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say which file is to blame where something is missing in it, or is of another kind."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"{path} is damaged ({error!r}); restore it from a back-up, or begin with a new "
            "directory: docs/operations.md says how a pipeline does that"
        ) from None


def _check_format(path: Path, held: dict[str, Any]) -> None:
    if held.get("format") != FORMAT:
        has = held.get("format")
        newer = isinstance(has, int) and has > FORMAT
        what = "upgrade Tamis" if newer else "give a new directory"
        raise SnapshotError(
            f"the snapshots at {path} have format {has}; this Tamis reads {FORMAT}, {what}"
        )


def read_json(path: Path) -> dict[str, Any] | None:
    """What a file of ours holds; None if there is none."""
    try:
        held = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SnapshotError(f"{path} cannot be read: {error}; restore it from a back-up") from error
    if not isinstance(held, dict):
        raise SnapshotError(f"{path} is damaged: it holds no object")
    return held


def write_json(path: Path, held: dict[str, Any], is_new: bool = False) -> None:
    """Write a file that is there whole or not at all, and stays after a crash.

    One that ``is_new`` replaces no other: FileExistsError.
    """
    aside = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(handle, "w") as file:
            json.dump(held, file)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            os.link(aside, path)  # unlike a rename, never replaces
        else:
            Path(aside).replace(path)
        sync(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise SnapshotError(f"cannot write {path}: {error}") from error
    finally:
        if aside:
            Path(aside).unlink(missing_ok=True)
