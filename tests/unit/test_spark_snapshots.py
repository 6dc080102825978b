"""Versions of the subscriptions: changes, layers, pins, and files that are damaged."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import Index, Subscription, evaluate
from tamis.delivery import settings_text
from tamis.errors import PipelineError, SnapshotError
from tamis.spark import layers, snapshots
from tamis.spark.changes import ChangeDirectory
from tamis.spark.follower import Follower
from tamis.spark.match_log import MatchLog
from tamis.spark.pins import Pin, Pins
from tamis.spark.snapshots import SnapshotStore, token_of
from tamis.spark.subscriptions import load, subscription_of
from tamis.spark.versions import Version, open_version

NOON = np.datetime64("2026-01-01T12:00:00.000001", "us")


def matched(version: Version, event: dict[str, Any]) -> list[tuple[str, int, str, str]]:
    """What an event matches: id, priority, owner, schedule."""
    opened = open_version(version)
    rows = []
    for found in opened.match([event]):
        for row in found.rows:
            texts = (opened.ids, opened.owners, opened.schedules)
            id, owner, schedule = (array[int(row)].as_py() for array in texts)
            rows.append((id, int(opened.priorities[row]), owner, schedule))
    return sorted(rows)


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots", n_tokens=4)


def test_random_changes_give_what_a_dict_of_them_gives(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_DELTA_ROWS", 5)  # so that deltas are merged, too
    rng = random.Random(7)
    living: dict[str, Subscription] = {}
    version = store.apply({}, 0)
    for sequence in range(1, 26):
        changes: dict[str, Subscription | None] = {}
        for _ in range(rng.randrange(1, 5)):
            id = f"s{rng.randrange(40)}"
            made = Subscription(
                id, f"x < {rng.randrange(10)}", rng.randrange(10), rng.choice(["", "zoe", "bob"]),
                rng.choice([{}, {"schedule": "every hour"}]),
            )  # fmt: skip
            changes[id] = made if rng.random() < 0.7 else None
        version = store.apply(changes, sequence)
        living.update({id: one for id, one in changes.items() if one is not None})
        for id in [id for id, one in changes.items() if one is None]:
            living.pop(id, None)
        x = rng.randrange(10)
        expected = sorted(
            (one.id, one.priority, one.owner, settings_text(one.delivery))
            for one in living.values()
            if evaluate(one.condition, {"x": x})
        )
        assert matched(version, {"x": x}) == expected
    assert version.sequence == 25
    assert any(token.delta for token in version.tokens)


def test_only_the_changed_tokens_get_new_layers(store: SnapshotStore) -> None:
    many = {f"s{n}": Subscription(f"s{n}", "x < 5") for n in range(100)}
    before = store.apply(dict(many), 1)
    after = store.apply({"s3": Subscription("s3", "x < 9")}, 2)
    changed = [t for t in range(4) if before.tokens[t] != after.tokens[t]]
    assert changed == [token_of("s3", 4)]
    assert after.tokens[changed[0]].base == before.tokens[changed[0]].base
    assert len(matched(before, {"x": 7})) == 0
    assert [row[0] for row in matched(after, {"x": 7})] == ["s3"]


def test_old_versions_go_and_needed_layers_stay(store: SnapshotStore) -> None:
    for sequence in range(1, 5):
        store.apply({f"s{sequence}": Subscription(f"s{sequence}", "x < 5")}, sequence)
    store.drop_before(3)
    assert store.numbers() == [3, 4]
    assert len(matched(store.version(3), {"x": 1})) == 3
    store.drop_before(99)
    assert store.numbers() == [4]
    assert len(matched(store.version(4), {"x": 1})) == 4
    needed = {layer for token in store.version(4).tokens for layer in token.layers}
    assert {str(path) for path in (store.path / "layers").iterdir()} == needed


def test_a_store_of_a_newer_format_is_refused(store: SnapshotStore) -> None:
    store.apply({}, 0)
    file = store.path / "store.json"
    file.write_text(json.dumps({"format": 99, "n_tokens": 4}))
    with pytest.raises(SnapshotError, match=r"format 99.*upgrade Tamis"):
        SnapshotStore(store.path)
    file.write_text("{")
    with pytest.raises(SnapshotError, match="cannot be read"):
        SnapshotStore(store.path)


def test_an_index_of_a_newer_format_is_refused(store: SnapshotStore) -> None:
    version = store.apply({"s1": Subscription("s1", "x < 5")}, 1)
    (token,) = [token for token in version.tokens if token.base]
    assert token.base
    file = Path(token.base) / "index" / "manifest.json"
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "format": 99}))
    with pytest.raises(SnapshotError, match=r"format 99.*upgrade Tamis"):
        layers.open_layer(Path(token.base))


def test_another_number_of_tokens_is_refused(store: SnapshotStore) -> None:
    with pytest.raises(SnapshotError, match="have 4 tokens, 8 were asked"):
        SnapshotStore(store.path, 8)


def test_a_full_disk_leaves_nothing_behind_and_is_tried_again(
    store: SnapshotStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changes").mkdir()
    write_lines(tmp_path / "changes" / "1.jsonl", {"sequence": 1, "id": "s1", "filter": "x < 5"})
    store.apply({}, 0)
    follower = Follower(store, ChangeDirectory(tmp_path / "changes"))
    monkeypatch.setattr("tamis.spark.follower._WAITS_S", (0.0, 0.0, 0.0))
    n_failures = 0

    def failing_sync(path: Path) -> None:
        nonlocal n_failures
        if path.name == "removed.npy" and n_failures < limit:
            n_failures += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(layers, "sync", failing_sync)
    limit = 100
    with pytest.raises(SnapshotError, match="No space left"):
        follower.refresh()
    assert n_failures == 4
    assert store.numbers() == [1]
    assert list((store.path / "layers").iterdir()) == []
    limit = n_failures + 2  # full twice more, then not
    version = follower.refresh()
    assert (version.number, version.sequence) == (2, 1)
    assert len(matched(version, {"x": 1})) == 1


def test_a_disk_too_full_for_what_a_version_changes_is_tried_again(
    store: SnapshotStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changes").mkdir()
    write_lines(tmp_path / "changes" / "1.jsonl", {"sequence": 1, "id": "s1", "filter": "x < 5"})
    store.apply({}, 0)
    store.keeps_changes = True
    monkeypatch.setattr("tamis.spark.follower._WAITS_S", (0.0, 0.0, 0.0))
    n_failures = 0

    def failing_sync(path: Path) -> None:
        nonlocal n_failures
        if path.suffix == ".ids" and n_failures < 2:
            n_failures += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(snapshots, "sync", failing_sync)
    with pytest.raises(SnapshotError, match=r"cannot write .*\.ids: .*No space left"):
        store.apply({}, 1)
    assert not list((store.path / "versions").glob("*.ids"))
    version = Follower(store, ChangeDirectory(tmp_path / "changes")).refresh()
    assert (n_failures, version.number) == (2, 2)
    assert store.changed(1, 2) == {"s1"}


def test_what_was_written_before_the_disk_was_full_is_removed(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_written = 0

    def sync(path: Path) -> None:
        nonlocal n_written
        n_written += path.name == "removed.npy"
        if n_written > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(layers, "sync", sync)
    with pytest.raises(SnapshotError, match="No space left"):
        store.apply({f"s{n}": Subscription(f"s{n}", "x < 5") for n in range(20)}, 1)
    assert n_written == 3  # of four tokens
    assert list((store.path / "layers").iterdir()) == []


def test_a_filter_that_cannot_be_indexed_is_rejected_like_one_that_cannot_be_read(
    store: SnapshotStore, tmp_path: Path
) -> None:
    folder = tmp_path / "changes"
    folder.mkdir()
    store.apply({}, 0)
    write_lines(folder / "1.jsonl", upsert(1, "s1"), upsert(2, "s2"))
    follower = Follower(store, ChangeDirectory(folder))
    too_complex = " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(14))
    no_text = {**upsert(4, "s2", "x < 9"), "delivery": {"to": "\ud800"}}
    write_lines(folder / "1.jsonl", upsert(3, "s1", too_complex), no_text, upsert(5, "s3"))
    version = follower.refresh()
    assert version.sequence == 5
    assert [row[0] for row in matched(version, {"x": 1})] == ["s1", "s2", "s3"]
    assert matched(version, {"x": 7}) == []
    assert len(list((store.path / "rejected").iterdir())) == 2
    assert follower.refresh() == version


def test_a_second_writer_is_told_so(store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.apply({}, 0)
    other = SnapshotStore(store.path)
    monkeypatch.setattr(other, "numbers", lambda: [])  # it looked before the first one wrote
    with pytest.raises(SnapshotError, match="another process wrote version 1"):
        other.apply({}, 0)
    assert store.version(1).sequence == 0


# -- changes


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no directory"):
        ChangeDirectory(tmp_path / "chnages")


def write_lines(file: Path, *records: dict[str, Any], end: str = "\n") -> None:
    with file.open("a") as opened:
        opened.write("\n".join(map(json.dumps, records)) + end)


def upsert(sequence: int, id: str = "", filter: str = "x < 5") -> dict[str, Any]:
    return {"sequence": sequence, "id": id or f"s{sequence}", "filter": filter}


def sequences(source: ChangeDirectory, after: int) -> list[int]:
    return [change.sequence for change in source.after(after)]


def test_a_line_counts_when_its_end_is_there(tmp_path: Path) -> None:
    source = ChangeDirectory(tmp_path)
    file = tmp_path / "1.jsonl"
    write_lines(file, upsert(1), upsert(2), end="")
    assert sequences(source, 0) == [1]
    assert sequences(source, 1) == []
    with file.open("a") as opened:
        opened.write("\n")
    assert sequences(source, 1) == [2]
    assert sequences(source, 0) == [1, 2]  # asked again, as after a restart
    write_lines(file, upsert(3))
    assert sequences(source, 2) == [3]
    assert ChangeDirectory(tmp_path).after(3) == []


def test_later_files_wait_for_one_that_is_not_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = ChangeDirectory(tmp_path)
    write_lines(tmp_path / "1.jsonl", upsert(1))
    table = pa.Table.from_pylist([upsert(2), {**upsert(3), "filter": None}])
    table = table.append_column("op", pa.array([None, "delete"]))
    pq.write_table(table, tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    (tmp_path / "2.parquet").write_bytes(content[: len(content) // 2])
    write_lines(tmp_path / "3.jsonl", upsert(4))
    assert sequences(source, 0) == [1]
    assert "2.parquet is not whole" in source.waiting_for
    assert sequences(source, 1) == []
    assert len(caplog.records) == 1  # said once
    (tmp_path / "2.parquet").write_bytes(content)
    assert sequences(source, 1) == [2, 3, 4]
    assert source.waiting_for == ""
    write_lines(tmp_path / "3.jsonl", upsert(5), end="")
    write_lines(tmp_path / "4.jsonl", upsert(6))
    assert sequences(source, 4) == []
    assert "last line does not end" in source.waiting_for
    (tmp_path / "5.parquet").write_bytes(b"")
    write_lines(tmp_path / "3.jsonl", end="\n")
    assert sequences(source, 4) == [5, 6]
    assert "5.parquet" in source.waiting_for


def test_a_last_file_that_cannot_be_opened_is_told_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = ChangeDirectory(tmp_path)
    write_lines(tmp_path / "1.jsonl", upsert(1))
    (tmp_path / "2.jsonl").mkdir()  # root, too, cannot read it as a file
    assert sequences(source, 0) == [1]
    assert "2.jsonl cannot be read (" in source.waiting_for
    assert "2.jsonl cannot be read (" in caplog.text
    (tmp_path / "2.jsonl").rmdir()
    write_lines(tmp_path / "2.jsonl", upsert(2))
    assert sequences(source, 1) == [2]
    assert source.waiting_for == ""


def test_a_change_that_cannot_be_read_is_kept_and_changes_nothing(
    store: SnapshotStore, tmp_path: Path
) -> None:
    folder = tmp_path / "changes"
    folder.mkdir()
    write_lines(folder / "1.jsonl", upsert(1, "s1"), upsert(2, "s2"))
    store.apply({}, 0)
    follower = Follower(store, ChangeDirectory(folder))
    follower.refresh()
    with (folder / "1.jsonl").open("a") as file:
        file.write("{ nonsense\n")
    bad = [{"sequence": 3, "id": "s1", "filter": "x <"}, {"sequence": 4, "op": "drop", "id": "s1"}]
    bad += [{**upsert(1, "s9"), "sequence": True}, {"sequence": "5", "id": "s1"}]
    bad += [{"sequence": 6, "op": "delete", "id": None}]
    write_lines(folder / "1.jsonl", *bad, {"sequence": 7, "op": "delete", "id": "s2"})
    pq.write_table(pa.table({"sequence": [8], "name": ["s1"]}), folder / "2.parquet")
    version = follower.refresh()
    assert version.sequence == 7
    assert [row[0] for row in matched(version, {"x": 1})] == ["s1"]

    def rejected() -> list[str]:
        files = (store.path / "rejected").iterdir()
        return sorted(json.loads(file.read_text())["reason"] for file in files)

    reasons = rejected()
    assert len(reasons) == 7
    parts = ["not JSON", "op 'drop'", "sequence True", "sequence '5'", "non-empty text"]
    for part in [*parts, "no column 'id'"]:
        assert any(part in reason for reason in reasons), part
    assert Follower(store, ChangeDirectory(folder)).refresh() == version  # a restart
    assert rejected() == reasons


def test_values_that_python_cannot_hold_cost_their_changes_only(
    store: SnapshotStore, tmp_path: Path
) -> None:
    folder = tmp_path / "changes"
    folder.mkdir()
    store.apply({}, 0)
    at = pa.array(
        [None, None, None, {"until": 10**18}, {"until": None}, None],
        pa.struct([("until", pa.timestamp("us"))]),
    )
    table = pa.table(
        {
            "sequence": pa.array([Decimal(number) for number in range(1, 7)], pa.decimal128(20, 0)),
            "op": ["upsert"] * 5 + ["delete"],
            "id": raw_text(b"s1", b"s2\xff", b"s3", b"s4", b"s5", b"s6\xff"),
            "filter": raw_text(b"x < 5", b"x < 5", b"x < \xfe", b"x < 5", b"x < 5", b"x < 5"),
            "delivery": at,
        }
    )
    pq.write_table(table, folder / "1.parquet")
    write_lines(folder / "2.jsonl", upsert(7))
    source = ChangeDirectory(folder)
    assert sequences(source, 2) == [3, 4, 5, 6, 7]
    version = Follower(store, source).refresh()
    assert version.sequence == 7
    assert [row[0] for row in matched(version, {"x": 1})] == ["s1", "s5", "s7"]
    kept = [json.loads(file.read_text()) for file in (store.path / "rejected").iterdir()]
    reason_of = {one["place"]: one["reason"] for one in kept}
    assert reason_of.keys() == {f"1.parquet, row {number}" for number in (1, 2, 3, 5)}
    assert "s2\\xff cannot be read: it is no UTF-8" in reason_of["1.parquet, row 1"]
    assert "filter: x < \\xfe cannot be read" in reason_of["1.parquet, row 2"]
    assert "delivery: " in reason_of["1.parquet, row 3"]
    assert "s6\\xff" in reason_of["1.parquet, row 5"]


def raw_text(*texts: bytes) -> pa.Array:
    """Text as it is, whether it is UTF-8 or not."""
    return pa.array(texts, pa.binary()).view(pa.string())


def test_a_table_of_deletions_needs_no_filters(tmp_path: Path) -> None:
    table = pa.table({"sequence": [1, 2], "op": ["delete", "upsert"], "id": ["s1", "s2"]})
    pq.write_table(table, tmp_path / "1.parquet")
    pq.write_table(table.drop_columns("op"), tmp_path / "2.parquet")
    whole, deletion, upsert = ChangeDirectory(tmp_path).after(0)
    assert (deletion.id, deletion.subscription, deletion.problem) == ("s1", None, "")
    assert "no 'filter'" in upsert.problem
    assert (whole.place, "no column 'filter'" in whole.problem) == ("2.parquet", True)


def test_a_carriage_return_ends_no_line(tmp_path: Path) -> None:
    held = b'{"sequence": 1,\r "id": "s1", "filter": "x < 5"}\r\n\r\n{"sequence": 2,\r'
    (tmp_path / "1.jsonl").write_bytes(held + b'"op": "delete", "id": "s1"}\n')
    changes = ChangeDirectory(tmp_path).after(0)
    assert [(one.sequence, one.problem) for one in changes] == [(1, ""), (2, "")]
    assert changes[1].place == f"1.jsonl, byte {held.rindex(b'{')}"


# -- pins and the log


def test_a_pin_is_written_once(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins")
    assert pins.get(3) is None
    assert pins.oldest_version() is None
    first = Pin(3, 7, NOON)
    assert pins.put(first) == first
    assert pins.put(Pin(3, 8, NOON + 1)) == first
    assert Pins(tmp_path / "pins").get(3) == first
    pins.put(Pin(4, 9, NOON))
    assert pins.oldest_version() == 7
    pins.drop_before(4)
    assert pins.get(3) is None
    assert pins.oldest_version() == 9
    (tmp_path / "pins" / "4.json").write_text("{}")
    with pytest.raises(PipelineError, match="damaged"):
        pins.get(4)


def test_a_log_belongs_to_one_checkpoint(tmp_path: Path) -> None:
    MatchLog(tmp_path).claim("one")
    MatchLog(tmp_path).claim("one")
    with pytest.raises(PipelineError, match="another checkpoint"):
        MatchLog(tmp_path).claim("other")
    shutil.rmtree(tmp_path)
    MatchLog(tmp_path).claim("other")


def test_an_index_is_a_version_of_one_token(tmp_path: Path) -> None:
    index = Index()
    index.add(Subscription("s1", "x < 5", 3, "zoe", {"schedule": "every hour"}))
    index.add(Subscription("s2", "x < 5"))
    index.remove("s2")
    index.add(Subscription("s2", "x < 5", owner="bob"))
    index.save(tmp_path / "index")
    for number, given in enumerate([tmp_path / "index", index]):
        store = load(None, tmp_path / f"store{number}", given)  # type: ignore[arg-type]
        version = store.apply({"s3": Subscription("s3", "x < 3")}, 1)
        assert matched(version, {"x": 1}) == [
            ("s1", 3, "zoe", '{"schedule":"every hour"}'), ("s2", 5, "bob", ""), ("s3", 5, "", ""),
        ]  # fmt: skip


def test_a_row_may_have_a_square_around_a_place() -> None:
    row = {
        "id": "s", "filter": "TRUE", "priority": None, "location": {"lon": 1.0, "lat": 2.0},
        "radius_m": 500.0, "area": "square",
    }  # fmt: skip
    wanted = Subscription("s", "TRUE", location=(1, 2), radius_m=500, area="square")
    assert subscription_of(row) == wanted
    assert subscription_of({**row, "area": None}).area == "circle"


@pytest.mark.parametrize(
    "held",
    [
        {"format": 1},
        {"format": 1, "number": 1, "sequence": 0, "n_bytes": 0, "tokens": 3},
        {"format": 1, "number": 1, "sequence": 0, "n_bytes": 0, "tokens": [[1]]},
        {"format": 1, "sequence": 0, "n_bytes": 0, "tokens": []},
    ],
)
def test_a_version_that_lacks_something_is_named(
    store: SnapshotStore, held: dict[str, Any]
) -> None:
    store.apply({}, 0)
    store._file(1).write_text(json.dumps(held))
    with pytest.raises(SnapshotError, match=r"versions/0*1\.json is damaged .*back-up"):
        store.latest()


@pytest.mark.parametrize("held", [{"format": 1}, {"format": 1, "n_tokens": "x"}])
def test_a_store_that_lacks_something_is_named(store: SnapshotStore, held: dict[str, Any]) -> None:
    (store.path / "store.json").write_text(json.dumps(held))
    with pytest.raises(SnapshotError, match=r"store\.json is damaged .*back-up"):
        SnapshotStore(store.path)
