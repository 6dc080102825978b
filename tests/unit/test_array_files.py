"""Array files that are damaged: whoever opens them is told so, of an index and of a store alike."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tamis import Event, Index, Subscription
from tamis.errors import SnapshotError
from tamis.events import EventStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Open = Callable[..., object]


def a_store(path: Path) -> Open:
    store = EventStore()
    made = [Event(f"e{n}", {"x": n, "t": f"t{n}", "y": [n, 1]}, b"p") for n in range(300)]
    store.insert_many(made, NOON)
    store.save(path)
    return EventStore.open


def an_index(path: Path) -> Open:
    index = Index()
    index.add_many([Subscription(f"s{n}", f"x < {n} OR t = 't{n}'") for n in range(300)])
    index.save(path)
    return Index.open


both = pytest.mark.parametrize("saved", [a_store, an_index])


@both
def test_a_header_that_nothing_can_read_is_damage(
    saved: Callable[[Path], Open], tmp_path: Path
) -> None:
    opened = saved(tmp_path / "s")
    for file in sorted((tmp_path / "s").glob("*.npy")):
        content = file.read_bytes()
        for old, new in ((b"{", b"("), (b"'descr'", b"\n descr"), (b"(", b"\0")):
            file.write_bytes(content.replace(old, new, 1))
            with pytest.raises(SnapshotError, match="damaged"):
                opened(tmp_path / "s")
        file.write_bytes(content)
    opened(tmp_path / "s")


@both
def test_a_flipped_bit_is_found_if_asked_for(saved: Callable[[Path], Open], tmp_path: Path) -> None:
    opened = saved(tmp_path / "s")
    opened(tmp_path / "s", verify=True)
    n_flipped = 0
    for file in sorted((tmp_path / "s").glob("*.npy")):
        content = bytearray(file.read_bytes())
        if len(content) <= 128:  # an array without elements
            continue
        content[-1 - n_flipped % (len(content) - 128)] ^= 1 << n_flipped % 8
        whole = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(SnapshotError, match=f"{file.name} does not have the bytes"):
            opened(tmp_path / "s", verify=True)
        file.write_bytes(whole)
        n_flipped += 1
    assert n_flipped > 10
    opened(tmp_path / "s", verify=True)


def with_manifest(path: Path, change: dict[str, Any], has_checksum: bool) -> None:
    """Change a manifest, perhaps as if it had been written so."""
    file = path / "manifest.json"
    held = {**json.loads(file.read_text()), **change}
    if has_checksum:
        del held["checksum"]
        held["checksum"] = zlib.crc32(json.dumps(held, indent=1).encode())
    file.write_text(json.dumps(held, indent=1))


@pytest.mark.parametrize("clock", [1e400, 1e3, 10**30, 2**62, -(2**63) - 1, "1", None, True])
def test_a_clock_that_is_no_moment_is_damage(clock: Any, tmp_path: Path) -> None:
    opened = a_store(tmp_path / "s")
    with_manifest(tmp_path / "s", {"clock": clock}, has_checksum=False)
    with pytest.raises(SnapshotError, match="is not the one that was written"):
        opened(tmp_path / "s")
    with_manifest(tmp_path / "s", {"clock": clock}, has_checksum=True)
    with pytest.raises(SnapshotError, match="damaged"):
        opened(tmp_path / "s")


@both
def test_the_other_kind_is_told_apart(saved: Callable[[Path], Open], tmp_path: Path) -> None:
    other = EventStore.open if saved(tmp_path / "s") == Index.open else Index.open
    with pytest.raises(SnapshotError, match="is not that of an"):
        other(tmp_path / "s")


def test_an_empty_store_is_saved_and_opened(tmp_path: Path) -> None:
    EventStore().save(tmp_path / "s")
    assert len(EventStore.open(tmp_path / "s", verify=True)) == 0
