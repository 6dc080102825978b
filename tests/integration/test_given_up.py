"""A micro-batch that Spark gives up, as part of the cluster was lost, is taken up again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tamis.errors import PipelineError
from tamis.model import Event, Subscription
from tamis.spark.match_log import MatchLog
from tamis.spark.outbox import ParquetOutbox
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings
from tests.integration.ad_market import Market

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SETTINGS = """
state = "state"
[events]
path = "ads"
format = "jsonl"
[subscriptions]
path = "searches"
[matching]
tokens = 2
interval = "200 ms"
[notifications]
outbox = "outbox"
interval = "200 ms"
"""
GIVEN_UP = (
    "Job aborted due to stage failure: A shuffle map stage with indeterminate output was failed "
    "and retried. However, Spark cannot rollback the ResultStage 7 to re-process the input data"
)


@pytest.fixture
def market(tmp_path: Path) -> Market:
    made = Market(tmp_path, SETTINGS)
    made.save([Subscription("cheap", "price < 10"), Subscription("dear", "price > 20")])
    return made


@contextmanager
def running(market: Market) -> Iterator[Pipeline]:
    pipeline = Pipeline(read_settings(market.folder / "pipeline.toml", []))
    pipeline.start()
    try:
        yield pipeline
    finally:
        pipeline._spark = None  # the session is that of all tests
        pipeline.stop()


def fail(monkeypatch: pytest.MonkeyPatch, owner: type, n_times: int) -> list[int]:
    """Let a handing over fail some times, after its job; the batches for which it did."""
    failed: list[int] = []
    publish = owner.publish  # type: ignore[attr-defined]

    def publish_later(self: Any, batch: int, *more: Any) -> Any:
        if len(failed) < n_times:
            failed.append(batch)
            raise RuntimeError(GIVEN_UP)
        return publish(self, batch, *more)

    monkeypatch.setattr(owner, "publish", publish_later)
    return failed


def post(market: Market, first: int) -> None:
    market.post([Event(f"e{n}", {"price": n % 30}) for n in range(first, first + 30)])


def wait_until_told(market: Market, pipeline: Pipeline) -> None:
    until = time.monotonic() + 200
    while set(market.told()) != market.expected:
        assert time.monotonic() < until
        assert pipeline.is_running()
        time.sleep(0.2)


def test_it_is_taken_up_again_and_all_is_told_once(
    spark: SparkSession, market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    matching, telling = fail(monkeypatch, MatchLog, 1), fail(monkeypatch, ParquetOutbox, 2)
    post(market, 0)
    with running(market) as pipeline:
        wait_until_told(market, pipeline)
        post(market, 30)
        wait_until_told(market, pipeline)
        status = pipeline.status()
    assert (len(matching), len(telling)) == (1, 2)
    assert telling[0] == telling[1]  # the very same micro-batch
    assert len(market.told()) == len(market.expected)
    assert (status.events, status.matches) == (60, len(market.expected))
    files = (market.folder / "outbox").glob("batch=*/*.parquet")
    assert status.notifications == sum(pq.read_metadata(file).num_rows for file in files)


def test_a_loss_that_goes_on_ends_the_pipeline(
    spark: SparkSession, market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = fail(monkeypatch, ParquetOutbox, 99)
    post(market, 0)
    with running(market) as pipeline, pytest.raises(PipelineError, match="cannot rollback"):
        wait_until_told(market, pipeline)
    assert len(failed) == 4  # at first, and three times more
    monkeypatch.undo()
    with running(market) as pipeline:
        wait_until_told(market, pipeline)
    assert len(market.told()) == len(market.expected)
