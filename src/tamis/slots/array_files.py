"""Array files: a directory of a manifest and arrays, written once, memory-mapped ever after.

manifest.json     format, types, shapes and checksums of the arrays, and what their user adds
<name>.npy        an array a file; a name says where the array belongs
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import SnapshotError

_MANIFEST = "manifest.json"
# What comes of files that are not what was written; the last two of the header of an array.
_DAMAGED = (
    OSError, EOFError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError,
    SyntaxError, TokenError,
)  # fmt: skip
Array = npt.NDArray[Any]


class Kind(NamedTuple):
    """What a directory holds, and how messages name it."""

    format: int
    key: str  # what every manifest of the kind has
    name: str
    indefinite: str
    if_older: str  # what to do about an older format


class ArrayWriter:
    """Writes arrays to a directory, and the manifest in the end."""

    def __init__(self, path: Path, format: int) -> None:
        self.path, self.format = path, format
        self.arrays: dict[str, list[Any]] = {}
        self.checksums: dict[str, int] = {}

    def save(self, name: str, array: Array) -> None:
        """Write an array."""
        array = np.ascontiguousarray(array)
        np.save(self.path / f"{name}.npy", array)
        self.arrays[name] = [array.dtype.str, list(array.shape)]
        self.checksums[name] = _checksum(array)

    def finish(self, held: dict[str, Any]) -> None:
        """Write the manifest, which also holds this."""
        manifest = {"format": self.format, **held}
        manifest |= {"arrays": self.arrays, "checksums": self.checksums}
        manifest["checksum"] = _checksum_of_manifest(manifest)
        (self.path / _MANIFEST).write_text(_text_of_manifest(manifest))


class ArrayReader:
    """Maps the arrays of a directory; every byte is checked if so wanted."""

    def __init__(self, path: Path, manifest: dict[str, Any], verify: bool) -> None:
        self.path, self.manifest, self.verify = path, manifest, verify

    def load(self, name: str, mode: Literal["r", "c"] = "r") -> Array:
        """Map an array; with "c" it may be written to, in memory only."""
        file = self.path / f"{name}.npy"
        # Files without elements cannot be mapped.
        array: Array = np.load(file, mmap_mode=mode if file.stat().st_size > 128 else None)
        # Kernels trust the sizes of arrays, so a file of another size must not get to them.
        is_written = [array.dtype.str, list(array.shape)] == self.manifest["arrays"][name]
        if not is_written or not array.flags.c_contiguous:
            raise ValueError(f"{file.name} is not the array that was written")
        if self.verify and _checksum(array) != self.manifest["checksums"][name]:
            raise ValueError(f"{file.name} does not have the bytes that were written")
        # A plain array over the mapping: np.memmap objects are slower to hand to kernels.
        return np.asarray(array)


@contextmanager
def writing(path: Path, kind: Kind) -> Iterator[ArrayWriter]:
    """Write a directory that appears whole or not at all."""
    if path.exists():
        raise SnapshotError(f"{path} exists; what was saved is never overwritten, give a new path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as made:
            whole = Path(made) / "whole"
            whole.mkdir()
            yield ArrayWriter(whole, kind.format)
            whole.rename(path)
    except OSError as error:
        raise SnapshotError(f"cannot write the {kind.name} to {path}: {error}") from error


@contextmanager
def reading(path: Path, kind: Kind, verify: bool) -> Iterator[ArrayReader]:
    """Read a directory; what shows within that it is damaged is told as such."""
    manifest = _read_manifest(path, kind)
    if verify and "checksums" not in manifest:
        raise SnapshotError(
            f"the {kind.name} at {path} has no checksums; save it anew to verify it"
        )
    try:
        yield ArrayReader(path, manifest, verify)
    except _DAMAGED as error:
        raise SnapshotError(f"the {kind.name} at {path} is damaged: {error}") from error


def _read_manifest(path: Path, kind: Kind) -> dict[str, Any]:
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
    except FileNotFoundError:
        message = f"{path} is not {kind.indefinite}: there is no {_MANIFEST} in it"
        raise SnapshotError(message) from None
    except (OSError, ValueError, RecursionError) as error:
        raise SnapshotError(f"the manifest of {path} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or kind.key not in manifest:
        raise SnapshotError(f"the manifest of {path} is not that of {kind.indefinite}")
    given = manifest.get("format")
    if not isinstance(given, int):
        raise SnapshotError(f"the manifest of {path} does not say its format; it is damaged")
    if given != kind.format:
        what = "upgrade Tamis" if given > kind.format else kind.if_older
        has = f"the {kind.name} at {path} has format {given}"
        raise SnapshotError(f"{has}; this Tamis reads {kind.format}, {what}")
    # Older directories have no checksum; they are read as they are.
    if manifest.get("checksum", checksum := _checksum_of_manifest(manifest)) != checksum:
        raise SnapshotError(f"the manifest of {path} is not the one that was written")
    return manifest


def _checksum(array: Array) -> int:
    """CRC-32 of an array's bytes: finds every flipped bit, and is fast."""
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _checksum_of_manifest(manifest: dict[str, Any]) -> int:
    rest = {name: held for name, held in manifest.items() if name != "checksum"}
    return zlib.crc32(_text_of_manifest(rest).encode())


def _text_of_manifest(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, indent=1)
