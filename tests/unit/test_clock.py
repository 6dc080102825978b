"""The notifier's clock: what Spark's log of a micro-batch says, and a log that is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import PipelineError
from tamis.spark.clock import ClockGuard, batch_times

WHOLE = 'v1\n{"batchWatermarkMs":5,"batchTimestampMs":7,"conf":{}}\n{"logOffset":0}\n-'


@pytest.fixture
def offsets(tmp_path: Path) -> Path:
    folder = tmp_path / "offsets"
    folder.mkdir()
    (folder / "1").write_text(WHOLE)
    return folder


def test_a_whole_log(offsets: Path) -> None:
    assert batch_times(offsets.parent, 1).watermark_us == 5_000
    ClockGuard(offsets.parent).wait()


@pytest.mark.parametrize("content", ["", "v1", "v1\n", "v1\n{", "v1\n[]", "v1\n{}", "v1\n-\n-"])
def test_a_damaged_log_is_named(offsets: Path, content: str) -> None:
    (offsets / "2").write_text(content)
    with pytest.raises(PipelineError, match=r"offsets/2, .* is damaged .*restore the state folder"):
        ClockGuard(offsets.parent)


def test_a_log_of_another_format(offsets: Path) -> None:
    (offsets / "2").write_text(WHOLE.replace("v1", "v2"))
    with pytest.raises(PipelineError, match="the format 'v2'; this Tamis reads 'v1'"):
        ClockGuard(offsets.parent)
