"""The event log in a folder: durable when acknowledged, whole when seen."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tamis import Event, Point, Range
from tamis.errors import InvalidEvent, StorageUnavailable
from tamis.service import event_log
from tamis.service.event_log import FileLog
from tamis.service.published import event_of, event_of_line, line_of, new_id, read_events


def event(number: int) -> Event:
    return event_of({"id": f"e{number}", "price": number})


def visible(folder: Path) -> list[dict[str, Any]]:
    found = [path for path in sorted(folder.glob("*.jsonl")) if not path.name.startswith(".")]
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


def test_what_is_acknowledged_is_seen_once_and_in_order(tmp_path: Path) -> None:
    log = FileLog(tmp_path, visible_every_s=0.01)
    for number in range(20):
        log.append([event(number)]).result(10)
    log.close()
    assert [line["@id"] for line in visible(tmp_path)] == [f"e{number}" for number in range(20)]
    assert not list(tmp_path.glob(".open-*"))


def test_many_at_once_share_files(tmp_path: Path) -> None:
    log = FileLog(tmp_path, visible_every_s=3600)
    waiting = [log.append([event(number)]) for number in range(500)]
    for one in waiting:
        one.result(30)
    log.close()
    assert sorted(line["@id"] for line in visible(tmp_path)) == sorted(
        f"e{number}" for number in range(500)
    )
    assert len(list(tmp_path.glob("*.jsonl"))) <= 2


def test_an_idle_log_shows_what_it_has(tmp_path: Path) -> None:
    log = FileLog(tmp_path, visible_every_s=0.05)
    log.append([event(1)]).result(10)
    log.append([event(2)]).result(10)
    until = time.monotonic() + 30
    while len(visible(tmp_path)) < 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    log.close()


def test_what_a_crash_left_is_shown_at_the_next_start(tmp_path: Path) -> None:
    whole = line_of(event(1)) + line_of(event(2))
    (tmp_path / ".open-a.jsonl").write_bytes(whole + line_of(event(3))[:-5])  # never acknowledged
    (tmp_path / ".open-b.jsonl").write_bytes(b'{"@id": "e4"')
    (tmp_path / ".open-c.jsonl").write_bytes(b"")
    log = FileLog(tmp_path)
    assert [line["@id"] for line in visible(tmp_path)] == ["e1", "e2"]
    assert not list(tmp_path.glob(".open-*"))
    log.close()


def test_the_open_file_of_another_process_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / ".open-other.jsonl"
    with other.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line_of(event(1)))
        file.flush()
        FileLog(tmp_path).close()
        assert other.exists()
    FileLog(tmp_path).close()
    assert [line["@id"] for line in visible(tmp_path)] == ["e1"]


def test_a_full_disk_is_told_and_nothing_half_written_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path, visible_every_s=3600)
    log.append([event(1)]).result(10)
    is_full = threading.Event()
    sync = os.fsync

    def fail(descriptor: int) -> None:
        if is_full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(event_log.os, "fsync", fail)
    is_full.set()
    with pytest.raises(StorageUnavailable, match="No space left on device"):
        log.append([event(2)]).result(10)
    is_full.clear()
    log.append([event(3)]).result(10)
    log.close()
    with pytest.raises(StorageUnavailable, match="closed"):
        log.append([event(4)]).result(10)
    FileLog(tmp_path).close()  # shows what could not be renamed while the disk was full
    assert [line["@id"] for line in visible(tmp_path)] == ["e1", "e3"]


def test_a_disk_that_takes_a_part_only_is_full(tmp_path: Path) -> None:
    log = FileLog(tmp_path, visible_every_s=3600)
    log.append([event(1)]).result(10)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))  # the system writes up to there
    try:
        with pytest.raises(StorageUnavailable, match="too large"):
            log.append([event(number) for number in range(100, 200)]).result(10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.append([event(2)]).result(10)
    log.close()
    assert [line["@id"] for line in visible(tmp_path)] == ["e1", "e2"]


def test_the_recent_events(tmp_path: Path) -> None:
    log = FileLog(tmp_path, visible_every_s=0.0)
    for number in range(6):
        log.append([event(number)]).result(10)
    log.close()
    (tmp_path / "strange.jsonl").write_text("no event\n")
    again = FileLog(tmp_path)
    assert [one.id for one in again.recent(4)] == ["e2", "e3", "e4", "e5"]
    assert len(again.recent(100)) == 6
    again.close()


def test_an_event_comes_back_from_its_line() -> None:
    at = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
    given = Event(
        "e1",
        {"price": 3, "tag": ["a", "b"], "car.mark": "Škoda", "range": Range(1, 2), "seen": at},
        "payload ü".encode(), at, location=Point(13.4, 52.5),
    )  # fmt: skip
    read = event_of_line(line_of(given))
    assert (read.id, read.attributes, read.payload, read.time) == (
        "e1", given.attributes, given.payload, at,
    )  # fmt: skip


def test_bytes_that_are_no_text_are_a_data_url() -> None:
    line = json.loads(line_of(Event("e1", {}, b"\xff\x00", datetime.now(UTC))))
    assert line["@payload"] == "data:application/octet-stream;base64,/wA="


def test_what_an_event_lacks_it_is_given() -> None:
    before = datetime.now(UTC)
    made = event_of({"price": 3, "car": {"mark": "FORD"}})
    assert len(made.id) == 26
    assert made.time is not None
    assert made.time >= before
    assert json.loads(made.payload) == {"price": 3, "car.mark": "FORD"}
    kept = event_of(
        {"id": "e1", "attributes": {"price": 3}, "payload": "eA==", "time": "2026-01-01T00:00:00Z"}
    )
    assert (kept.id, kept.payload, kept.time) == ("e1", b"x", datetime(2026, 1, 1, tzinfo=UTC))


def test_names_that_the_log_keeps_for_itself_are_refused() -> None:
    with pytest.raises(InvalidEvent, match="'@time'"):
        event_of({"price": 3, "@time": "now"})
    with pytest.raises(InvalidEvent, match="line 3: "):
        read_events(b'{"price": 1}\n\n{"price": [[1]]}\n', is_lines=True)


def test_ids_sort_by_their_time() -> None:
    ids = []
    for _ in range(5):
        ids.append(new_id())
        time.sleep(0.002)
    assert ids == sorted(ids)
    assert len({new_id() for _ in range(1_000)}) == 1_000


def test_a_line_says_all_of_an_event() -> None:
    given = event_of(
        {
            "id": "e1", "attributes": {"tag": ["a", "b"], "n": 2**60}, "payload": "eA==",
            "time": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00.5Z",
            "location": [4.9, 52.37],
        }
    )  # fmt: skip
    read = event_of_line(line_of(given))
    assert (read.id, read.attributes, read.payload) == ("e1", given.attributes, b"x")
    assert (read.time, read.until) == (given.time, given.until)
    assert given.until is not None
