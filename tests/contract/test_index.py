"""The public face of Index: what it promises, whatever engine is inside."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis.errors as errors
from tamis import Event, Index, MatchSet, Point, Range, Schema, Subscription, col
from tamis.model import Attribute, Kind, events_to_arrow


@pytest.fixture
def index() -> Index:
    made = Index()
    made.add(Subscription("s1", "brand = 'Huawei' AND price < 3300", priority=0))
    made.add(Subscription("s2", col("price") < 5000, priority=7))
    made.add(Subscription("s3", {"attribute": "tag", "op": "in", "values": ["new", "sale"]}))
    return made


HUAWEI = {"brand": "Huawei", "price": 3200, "tag": ["sale", "red"]}


# -- saving


def test_match_returns_ids_highest_priority_first(index: Index) -> None:
    assert index.match(HUAWEI) == ["s1", "s3", "s2"]
    assert index.match(Event("e1", HUAWEI)) == ["s1", "s3", "s2"]
    assert index.match({}) == []


def test_size_and_membership(index: Index) -> None:
    assert len(index) == 3
    assert "s1" in index
    assert "s4" not in index
    assert 1 not in index
    assert index["s2"].priority == 7
    assert len(Index()) == 0


def test_a_removed_subscription_matches_no_more(index: Index) -> None:
    index.remove("s1")
    assert index.match(HUAWEI) == ["s3", "s2"]
    assert "s1" not in index
    index.add(Subscription("s1", "TRUE", priority=9))
    assert index.match(HUAWEI) == ["s3", "s2", "s1"]


def test_an_update_replaces_the_filter_and_the_priority(index: Index) -> None:
    index.update(Subscription("s1", "price BETWEEN 10 AND 20", priority=9))
    assert index.match(HUAWEI) == ["s3", "s2"]
    assert index.match({"price": 15}) == ["s2", "s1"]
    assert len(index) == 3


def test_the_same_filter_may_be_saved_under_many_ids() -> None:
    index = Index()
    index.add_many(Subscription(f"s{n}", "a = 1", priority=n % 10) for n in range(100))
    assert len(index.match({"a": 1})) == 100
    for n in range(0, 100, 2):
        index.remove(f"s{n}")
    assert sorted(index.match({"a": 1})) == sorted(f"s{n}" for n in range(1, 100, 2))


def test_an_id_whose_two_branches_hold_comes_once() -> None:
    index = Index()
    index.add(Subscription("s", "a = 1 OR b = 1 OR a < 5 OR NOT c = 9"))
    assert index.match({"a": 1, "b": 1}) == ["s"]
    assert index.match_batch([{"a": 1, "b": 1}] * 3).ids == ["s"] * 3


def test_add_many_reads_an_arrow_table() -> None:
    index = Index()
    filters = ["a = 1", json.dumps({"attribute": "a", "op": ">", "value": 0})]
    index.add_many(pa.table({"id": ["x", "y"], "filter": filters, "priority": [3, 1]}))
    index.add_many(
        pa.table({"id": ["z"], "filter": ["TRUE"], "priority": pa.array([None], pa.int8())})
    )
    assert index.match({"a": 1}) == ["y", "x", "z"]
    assert index["z"].priority == 5


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([Subscription("n1", "TRUE"), Subscription("s1", "TRUE")], errors.DuplicateSubscription),
        ([Subscription("n1", "TRUE"), Subscription("n1", "TRUE")], errors.DuplicateSubscription),
        ([Subscription("n1", "TRUE"), None], errors.InvalidSubscription),
        ([Subscription("n1", "TRUE"), {"id": "n2", "filter": "TRUE"}], errors.InvalidSubscription),
        (pa.table({"id": ["n1", "n2"], "filter": ["TRUE", "a <"]}), errors.InvalidSubscription),
        (pa.table({"id": ["n1", "n2"], "filter": ["TRUE", None]}), errors.InvalidSubscription),
        (pa.table({"id": ["n1", None], "filter": ["TRUE"] * 2}), errors.InvalidSubscription),
        (pa.table({"id": ["n1"]}), errors.InvalidSubscription),
        (pa.table([["n1"], ["a"], ["b"]], ["id", "filter", "filter"]), errors.InvalidSubscription),
        (
            pa.table({"id": ["n1"], "filter": pa.array([10**18]).cast(pa.timestamp("us"))}),
            errors.InvalidSubscription,
        ),
        (
            pa.table({"id": ["n1"], "filter": ["TRUE"], "priority": [10]}),
            errors.InvalidSubscription,
        ),
        (
            [
                Subscription("n1", "TRUE"),
                Subscription("n2", " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(11))),
            ],
            errors.FilterTooComplex,
        ),
    ],
)
def test_add_many_is_all_or_nothing(index: Index, given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        index.add_many(given)
    assert len(index) == 3
    assert "n1" not in index
    assert index.match(HUAWEI) == ["s1", "s3", "s2"]


def test_a_generator_that_fails_changes_nothing(index: Index) -> None:
    def failing() -> Any:
        yield Subscription("n1", "TRUE")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        index.add_many(failing())
    assert len(index) == 3


def test_unknown_ids_are_named(index: Index) -> None:
    for call in (
        lambda: index.remove("nobody"),
        lambda: index.update(Subscription("nobody", "TRUE")),
        lambda: index["nobody"],
        lambda: index.explain("nobody", {}),
    ):
        with pytest.raises(errors.UnknownSubscription, match="nobody"):
            call()
    assert len(index) == 3


def test_ids_that_nobody_can_have_are_unknown(index: Index, tmp_path: Path) -> None:
    index.save(tmp_path / "i")
    boxes = Index.from_boxes(["x"], [[0.0]], [[1.0]])
    for one in (index, Index.open(tmp_path / "i"), boxes):
        for id in ("\ud800", "9" * 5000, "", 5, None, [], b"s1"):
            assert id not in one
            for call in (one.remove, one.__getitem__):
                with pytest.raises(errors.UnknownSubscription):
                    call(id)  # type: ignore[arg-type]
    assert "0" in boxes


def test_a_failed_update_keeps_the_old_filter(index: Index) -> None:
    too_complex = " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(11))
    with pytest.raises(errors.FilterTooComplex):
        index.update(Subscription("s1", too_complex))
    assert index.match(HUAWEI)[0] == "s1"


# -- matching


@pytest.mark.parametrize("event", [{"a": b"bytes"}, {"a": object()}, {1: 2}, {"": 1}, {"a": 2**64}])
def test_an_event_that_cannot_be_read_is_refused(index: Index, event: Any) -> None:
    with pytest.raises(errors.TamisError):
        index.match(event)
    with pytest.raises(errors.TamisError, match=r"event 1 of the batch|batch"):
        index.match_batch([{}, event])


def test_a_batch_comes_in_many_forms(index: Index) -> None:
    pandas = pytest.importorskip("pandas")
    columns: dict[str, Any] = {"brand": ["Huawei", "Honor", None], "price": [3200, 4000, None]}
    rows = [{k: v[n] for k, v in columns.items()} for n in range(3)]
    wanted = [["s1", "s2"], ["s2"], []]
    for batch in (
        pa.table(columns),
        pa.RecordBatch.from_pydict(columns),
        pandas.DataFrame(columns),
        columns,
        {"brand": np.array(columns["brand"]), "price": pa.array(columns["price"])},
        rows,
        iter(rows),
        tuple(Event(str(n), row) for n, row in enumerate(rows)),
        events_to_arrow([Event(str(n), row, payload=b"x") for n, row in enumerate(rows)]),
    ):
        matches = index.match_batch(batch)
        assert isinstance(matches, MatchSet)
        assert list(matches) == wanted


def test_an_empty_batch(index: Index) -> None:
    for batch in ([], {}, pa.table({"a": pa.array([], pa.int64())})):
        matches = index.match_batch(batch)
        assert (len(matches), matches.n_matches, list(matches)) == (0, 0, [])
        assert matches.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    "batch", [7, "text", {"price": 7}, {"a": [1], "b": [1, 2]}, {"brand": "x"}]
)
def test_what_is_no_batch_is_refused(index: Index, batch: Any) -> None:
    with pytest.raises(errors.InvalidEvent):
        index.match_batch(batch)


def test_a_match_set_is_csr_and_a_table(index: Index) -> None:
    matches = index.match_batch([HUAWEI, {}, {"price": 4000}])
    assert matches.offsets.tolist() == [0, 3, 3, 4]
    assert list(matches.ids) == ["s1", "s3", "s2", "s2"]
    assert list(matches.priorities) == [0, 5, 7, 7]
    assert (matches[0], matches[1], matches[-1]) == (["s1", "s3", "s2"], [], ["s2"])
    assert (len(matches), matches.n_matches) == (3, 4)
    with pytest.raises(IndexError):
        matches[3]
    assert matches.to_arrow().to_pydict() == {
        "event": [0, 0, 0, 2],
        "subscription_id": ["s1", "s3", "s2", "s2"],
        "priority": [0, 5, 7, 7],
    }


def test_a_match_set_does_not_follow_later_changes(index: Index) -> None:
    matches = index.match_batch([HUAWEI])
    index.remove("s1")
    index.update(Subscription("s2", "FALSE", priority=0))
    index.add_many([Subscription(f"n{n}", "TRUE") for n in range(10)])
    assert list(matches.ids) == ["s1", "s3", "s2"]
    assert list(matches.priorities) == [0, 5, 7]


def test_a_moving_location_narrows_the_filter() -> None:
    index = Index()
    index.add(Subscription("near", "TRUE", location=(0, 0), radius_m=112_000))
    assert index.match(Event("e", {}, location=(0, 1))) == ["near"]
    assert index.match({"location": Point(0, 1.01)}) == []
    index.update(Subscription("near", "TRUE", location=(0, 2), radius_m=112_000))
    assert index.match({"location": Point(0, 1.01)}) == ["near"]


def test_explain_says_what_match_says(index: Index) -> None:
    for id in ("s1", "s2", "s3"):
        for event in (HUAWEI, {}, {"price": 4000}):
            assert index.explain(id, event).held == (id in index.match(event))
    assert "3400 is not < 3300" in str(index.explain("s1", {"price": 3400}))


# -- schema


def test_the_ends_of_a_domain_are_kept_and_enforced(tmp_path: Path) -> None:
    index = Index(schema={"x": {"kind": "number", "low": 0, "high": 1, "ends": "()"}})
    assert index.schema == Schema({"x": Attribute(Kind.NUMBER, True, Range(0, 1, "()"))})
    index.add(Subscription("s", "x < 5"))
    index.save(tmp_path / "i")
    for one in (index, Index.open(tmp_path / "i")):
        assert one.schema == index.schema
        assert one.match({"x": 0.5}) == ["s"]
        for x in (0, 1):
            with pytest.raises(errors.SchemaViolation, match=r"outside \(0, 1\)"):
                one.match({"x": x})
            for n in (1, 20):
                with pytest.raises(errors.SchemaViolation, match=r"outside \(0, 1\)"):
                    one.match_batch({"x": np.array([0.5] * n + [x])})
        with pytest.raises(errors.SchemaViolation, match=r"within \(0, 1\)"):
            one.add(Subscription("t", "x = 0"))


def test_a_schema_is_kept_and_enforced(tmp_path: Path) -> None:
    index = Index(schema={"price": "number", "tag": {"kind": "text", "single": False}})
    index.add(Subscription("s", "price > 1 AND price < 3"))
    with pytest.raises(errors.SchemaViolation):
        index.add(Subscription("t", "price = 'cheap'"))
    assert len(index) == 1
    with pytest.raises(errors.SchemaViolation):
        index.match({"price": [1, 2]})
    assert index.match({"price": 2, "tag": ["a", "b"]}) == ["s"]
    index.save(tmp_path / "i")
    again = Index.open(tmp_path / "i")
    assert again.schema == index.schema == Schema(index.schema.to_json())  # type: ignore[union-attr]


# -- files


def test_a_snapshot_keeps_everything(index: Index, tmp_path: Path) -> None:
    index.add(
        Subscription(
            "ü", "NOT a = 'é'", 1, owner="ö", delivery={"to": "x"}, location=(1, 2), radius_m=5
        )
    )
    index.remove("s2")
    index.save(tmp_path / "deep" / "er")
    again = Index.open(str(tmp_path / "deep" / "er"))
    assert len(again) == 3
    assert all(again[id] == index[id] for id in ("s1", "s3", "ü"))
    assert again.match(HUAWEI) == ["s1", "s3"]
    again.update(Subscription("s1", "FALSE"))
    assert again.match(HUAWEI) == ["s3"]
    assert Index.open(tmp_path / "deep" / "er").match(HUAWEI) == ["s1", "s3"]


def test_an_empty_index_is_saved_too(tmp_path: Path) -> None:
    Index().save(tmp_path / "empty")
    assert len(Index.open(tmp_path / "empty")) == 0


def test_snapshots_are_never_overwritten(index: Index, tmp_path: Path) -> None:
    index.save(tmp_path / "i")
    with pytest.raises(errors.SnapshotError, match="exists"):
        index.save(tmp_path / "i")


def test_what_is_no_snapshot_is_refused(index: Index, tmp_path: Path) -> None:
    with pytest.raises(errors.SnapshotError):
        Index.open(tmp_path / "nothing")
    with pytest.raises(errors.SnapshotError):
        Index.open(tmp_path)
    index.save(tmp_path / "i")
    manifest = tmp_path / "i" / "manifest.json"
    for text in ("", "[]", "{}", '{"format": 999}'):
        manifest.write_text(text)
        with pytest.raises(errors.SnapshotError):
            Index.open(tmp_path / "i")


def manifest_of(path: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return held


def test_one_flipped_bit_of_any_array_is_found(index: Index, tmp_path: Path) -> None:
    index.add_many([Subscription(f"n{i}", f"price < {i} OR NOT tag = 't{i}'") for i in range(50)])
    index.save(tmp_path / "i")
    assert Index.open(tmp_path / "i", verify=True).match(HUAWEI) == index.match(HUAWEI)
    n_flipped = 0
    for file in sorted((tmp_path / "i").glob("*.npy")):
        content = file.read_bytes()
        if len(content) <= 128:  # an array without elements
            continue
        damaged = bytearray(content)
        damaged[128 + n_flipped % (len(content) - 128)] ^= 1 << n_flipped % 8
        file.write_bytes(damaged)
        with pytest.raises(errors.SnapshotError, match=f"{file.name} does not have the bytes"):
            Index.open(tmp_path / "i", verify=True)
        file.write_bytes(content)
        n_flipped += 1
    assert n_flipped > 10
    assert Index.open(tmp_path / "i", verify=True).match(HUAWEI) == index.match(HUAWEI)


def test_an_array_in_another_order_is_refused(tmp_path: Path) -> None:
    Index.from_boxes(["x", "y"], [[0.0, 1.0]], [[1.0, 2.0]]).save(tmp_path / "i")
    file = tmp_path / "i" / "base.0.bounds.bounds.npy"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"'fortran_order': False", b"'fortran_order': True "))
    assert file.read_bytes() != content
    with pytest.raises(errors.SnapshotError, match="is not the array that was written"):
        Index.open(tmp_path / "i")


def test_a_changed_manifest_is_refused(index: Index, tmp_path: Path) -> None:
    index.save(tmp_path / "i")
    held = manifest_of(tmp_path / "i")
    for key in held:
        if key == "checksum":
            continue
        for change in ({}, {key: None}, {key: ["z"]}):
            rest = {name: one for name, one in held.items() if name != key}
            (tmp_path / "i" / "manifest.json").write_text(json.dumps({**rest, **change}))
            with pytest.raises(errors.SnapshotError):
                Index.open(tmp_path / "i")


def test_a_snapshot_without_checksums_opens_but_cannot_be_verified(
    index: Index, tmp_path: Path
) -> None:
    index.save(tmp_path / "i")
    older = manifest_of(tmp_path / "i")
    del older["checksum"], older["checksums"]
    file = tmp_path / "i" / "manifest.json"
    file.write_text(json.dumps(older))
    assert Index.open(tmp_path / "i").match(HUAWEI) == index.match(HUAWEI)
    with pytest.raises(errors.SnapshotError, match="no checksums; save it anew"):
        Index.open(tmp_path / "i", verify=True)
    for key in older:
        for change in ({}, {key: ["z"]}):
            rest = {name: one for name, one in older.items() if name != key}
            file.write_text(json.dumps({**rest, **change}))
            with pytest.raises(errors.SnapshotError):
                Index.open(tmp_path / "i")


@pytest.mark.parametrize("change", ["empty", "cut", "gone"])
def test_a_damaged_snapshot_is_refused(index: Index, tmp_path: Path, change: str) -> None:
    index.save(tmp_path / "whole")
    files = [f.name for f in (tmp_path / "whole").iterdir() if f.name != "manifest.json"]
    assert files
    for n, name in enumerate(files):
        path = tmp_path / f"damaged{n}"
        index.save(path)
        content = (path / name).read_bytes()
        if not content:
            continue
        if change == "gone":
            (path / name).unlink()
        else:
            (path / name).write_bytes(b"" if change == "empty" else content[: len(content) // 2])
        with pytest.raises(errors.SnapshotError):
            Index.open(path)


# -- boxes


def test_boxes_with_open_ends_and_priorities() -> None:
    nan = float("nan")
    index = Index.from_boxes(
        ["x", "y"],
        [[0, nan], [0, 0], [nan, nan]],
        [[1, nan], [1, 1], [nan, nan]],
        ids=["a", "b", "all"],
        high_open=[[True, False], [False, False], [False, False]],
        priority=[1, 0, 9],
    )
    assert index.match({"x": 0, "y": 0}) == ["b", "a", "all"]
    assert index.match({"x": 1, "y": 1}) == ["b", "all"]
    assert index.match({"x": 2}) == ["all"]
    index.remove("b")
    index.add(Subscription("c", "x = 0"))
    assert index.match({"x": 0, "y": 0}) == ["a", "c", "all"]


@pytest.mark.parametrize(
    "changed",
    [
        {"low": [[0.0, 0.0, 0.0]]},
        {"high": [[1.0], [1.0]]},
        {"ids": ["a", "b"]},
        {"ids": [""]},
        {"priority": [10]},
        {"priority": [[1]]},
        {"low_open": [[True]]},
    ],
)
def test_boxes_that_do_not_fit_are_refused(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {"low": [[0.0, 0.0]], "high": [[1.0, 1.0]], "ids": ["a"]}
    with pytest.raises(errors.InvalidSubscription):
        Index.from_boxes(["x", "y"], **{**given, **changed})


# -- threads


def test_readers_and_a_writer_at_once() -> None:
    index = Index()
    index.add_many(Subscription(f"keep{n}", "a = 1") for n in range(20))
    kept = {f"keep{n}" for n in range(20)}
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                found = index.match({"a": 1})
                if not kept <= set(found) or len(found) != len(set(found)):
                    wrong.append(found)
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(60):
        index.add(Subscription(f"n{n}", "a = 1 OR a > 0"))
        index.update(Subscription(f"n{n}", "a < 5 AND NOT b = 2"))
        if n % 2:
            index.remove(f"n{n}")
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(index.match({"a": 1})) == 50


@pytest.mark.parametrize("value", [3, [3, 4], Range(3, 4)])
def test_the_broadest_are_told_of_batches_whatever_their_events_hold(value):
    index = Index()
    index.add_many([Subscription("broad", col("x") > 0), Subscription("narrow", col("x") > 9)])
    index.match_batch([{"x": value}] * 32)
    stats = index.stats()
    assert stats["n_events_sampled"] == 16
    assert [(one["id"], one["n_matched"]) for one in stats["broadest"]] == [("broad", 16)]
