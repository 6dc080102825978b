"""What a task writes: the same matches in few row groups or many, and its memory given back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import Index, Subscription
from tamis.spark import match_files
from tamis.spark.events import EventMapping
from tamis.spark.match_files import write_matches
from tamis.spark.tasks import Plan
from tamis.spark.versions import Found, TokenPlace, Version

MOMENT = np.datetime64("2026-01-01T09:00:00", "us")
LIMITS = {None: "_GROUP_MATCHES", MOMENT: "_GROUP_DELIVERIES"}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    index = Index()
    for number in range(20):
        index.add(Subscription(f"s{number}", f"x >= {number}", priority=number % 10))
    index.save(tmp_path / "index")
    return Plan(Version(7, (TokenPlace(str(tmp_path / "index")),)), EventMapping())


def write(plan: Plan, folder: Path, matched_at: np.datetime64 | None) -> pq.ParquetFile:
    """The file of a task with three batches of five events."""
    folder.mkdir()
    batches = [
        pa.RecordBatch.from_pydict({"id": [f"e{n}" for n in few], "x": [float(n) for n in few]})
        for few in (range(0, 5), range(5, 10), range(10, 15))
    ]
    (report,) = write_matches(plan, folder, matched_at, iter(batches))
    assert report.column(1).to_pylist() == [15]
    return pq.ParquetFile(folder / report.column(0)[0].as_py())


@pytest.mark.parametrize("matched_at", [None, MOMENT])
def test_row_groups_are_bounded(
    plan: Plan, tmp_path: Path, matched_at: np.datetime64 | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write(plan, tmp_path / "whole", matched_at)
    monkeypatch.setattr(match_files, LIMITS[matched_at], 20)
    parts = write(plan, tmp_path / "parts", matched_at)
    assert whole.metadata.num_row_groups == 1
    sizes = [parts.metadata.row_group(n).num_rows for n in range(parts.metadata.num_row_groups)]
    assert sizes == [15, 20, 20, 20, 20, 20, 5]  # of 15, 40 and 65 matches
    assert parts.read().equals(whole.read())
    ids = [whole.read()[name].to_pylist() for name in ("event_id", "subscription_id")]
    wanted = {(f"e{e}", f"s{s}") for e in range(15) for s in range(e + 1)}
    assert set(zip(*ids, strict=True)) == wanted


def test_parts_of_what_was_found() -> None:
    rows = np.array([7, 3, 9, 4, 7, 1, 3], np.int32)
    found = Found(np.array([0, 3, 3, 4, 7]), rows)
    assert found.events.tolist() == [1, 1, 1, 3, 4, 4, 4]
    for first in range(8):
        for last in range(first, 10):
            part = found.part(first, last)
            assert part.events.tolist() == found.events[first:last].tolist()
            assert part.rows.tolist() == rows[first:last].tolist()
    is_removed = np.isin(np.arange(10), [7, 4])
    kept = found.without(is_removed)
    assert kept.events.tolist() == [1, 1, 4, 4]
    assert kept.rows.tolist() == [3, 9, 1, 3]
    assert len(found.without(np.ones(10, np.bool_)).events) == 0


def test_free_memory_is_given_back(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(match_files, "_trim", calls.append)
    write(plan, tmp_path / "once", MOMENT)
    assert calls == [0]
