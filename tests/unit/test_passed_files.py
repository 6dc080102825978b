"""Which files a query has passed, as its checkpoint tells it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.errors import PipelineError
from tamis.spark.passed import PassedFiles, files_of_batch, has_only_beat


class Checkpoint:
    """What Spark writes for a query whose second source reads files, and whose first does not."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.n_batches = folder, 0
        for name in ("offsets", "commits", "sources/1"):
            (folder / name).mkdir(parents=True)

    def write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("\n".join(["v1", *lines]))

    def found(self, offset: int, *names: str) -> str:
        """What the source writes when it has found files."""
        entries = [
            {"path": f"file:///x/batch=1/{name}", "timestamp": 1_000 + offset, "batchId": offset}
            for name in names
        ]
        lines = [json.dumps(entry) for entry in entries]
        self.write(f"sources/1/{offset}", *lines)
        return "\n".join(lines)

    def batch(self, offset: int | None) -> None:
        """A micro-batch that goes as far as an offset of the source."""
        held = "-" if offset is None else json.dumps({"logOffset": offset})
        self.write(f"offsets/{self.n_batches}", "{}", '{"offset":3,"timestamp":4}', held)
        self.write(f"commits/{self.n_batches}", "{}")
        self.n_batches += 1


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path)


def test_the_last_batch_may_be_looked_at_again(checkpoint: Checkpoint) -> None:
    passed = PassedFiles(checkpoint.folder)
    assert passed.more() == {}
    checkpoint.batch(None)
    checkpoint.found(0, "a", "b")
    checkpoint.batch(0)
    assert passed.more() == {}
    checkpoint.found(1, "c")
    checkpoint.batch(1)
    assert passed.more() == {"a": 1_000, "b": 1_000}
    assert passed.more() == {}
    (checkpoint.folder / "commits" / "2").unlink()  # not committed: the next may be repeated, too
    assert PassedFiles(checkpoint.folder).more() == {}


def test_what_was_read_is_more_than_what_was_passed(checkpoint: Checkpoint) -> None:
    read = PassedFiles(checkpoint.folder, n_left=0)
    assert read.more() == {}
    checkpoint.found(0, "a")
    checkpoint.batch(0)
    assert read.more() == {"a": 1_000}
    assert PassedFiles(checkpoint.folder).more() == {}


def test_logs_are_compacted(checkpoint: Checkpoint) -> None:
    early = PassedFiles(checkpoint.folder)
    lines = []
    for offset in range(3):
        lines.append(checkpoint.found(offset, f"f{offset}", f"g{offset}"))
        checkpoint.batch(offset)
    assert early.more().keys() == {"f0", "g0", "f1", "g1"}
    checkpoint.write("sources/1/2.compact", *lines)
    (checkpoint.folder / "sources" / "1" / "2").unlink()
    checkpoint.found(3, "f3")
    checkpoint.batch(3)
    checkpoint.batch(3)  # a micro-batch without files
    assert early.more() == {"f2": 1_002, "g2": 1_002, "f3": 1_003}
    for offset in range(2):
        (checkpoint.folder / "sources" / "1" / str(offset)).unlink()
    everything = PassedFiles(checkpoint.folder).more()
    assert everything.keys() == {"f0", "g0", "f1", "g1", "f2", "g2", "f3"}


def test_another_format_is_refused(checkpoint: Checkpoint) -> None:
    checkpoint.batch(None)
    checkpoint.batch(None)
    (checkpoint.folder / "offsets" / "0").write_text("v2\n{}\n-")
    with pytest.raises(PipelineError, match="'v2'"):
        PassedFiles(checkpoint.folder).more()


def test_the_files_of_a_batch_that_is_not_done(checkpoint: Checkpoint) -> None:
    checkpoint.found(0, "a", "b")
    checkpoint.batch(0)
    assert list(files_of_batch(checkpoint.folder, 1)) == []  # there is none
    checkpoint.found(1, "c")
    checkpoint.batch(1)
    (checkpoint.folder / "commits" / "1").unlink()
    assert list(files_of_batch(checkpoint.folder, 0)) == [f"file:///x/batch=1/{n}" for n in "ba"]
    assert list(files_of_batch(checkpoint.folder, 1)) == ["file:///x/batch=1/c"]
    checkpoint.batch(1)
    assert list(files_of_batch(checkpoint.folder, 2)) == []


def test_a_source_of_another_kind_may_write_what_it_likes(checkpoint: Checkpoint) -> None:
    checkpoint.found(0, "a")
    checkpoint.batch(0)
    checkpoint.write("offsets/0", "{}", "offset 3", json.dumps({"logOffset": 0}))
    assert list(files_of_batch(checkpoint.folder, 0)) == ["file:///x/batch=1/a"]


def test_a_batch_with_nothing_but_the_beat(tmp_path: Path) -> None:
    """The beat is the last source; the first batch may hold what came before it."""
    (tmp_path / "offsets").mkdir()
    for batch, (events, beat) in enumerate([("-", "1"), ("-", "2"), ("5", "2"), ("5", "9")]):
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{events}\n{beat}")
    assert [has_only_beat(tmp_path, batch) for batch in range(5)] == [
        False, True, False, True, False,
    ]  # fmt: skip
    (tmp_path / "offsets" / "4").write_text("v1\n{}\n9")
    assert not has_only_beat(tmp_path, 4)  # it has no beat
