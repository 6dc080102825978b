"""A pipeline sees how its queries end, at whatever moment they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.errors import PipelineError
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import PipelineSettings

LOSS = RuntimeError("Job aborted: Spark cannot rollback the ResultStage 7")


class Query:
    """A query of Spark that ends before the n-th question about it."""

    name = "tamis: match"

    def __init__(self, n: int, failure: Exception | None) -> None:
        self._n_left, self._failure = n, failure

    def _has_ended(self) -> bool:
        self._n_left -= 1
        return self._n_left <= 0

    def exception(self) -> Exception | None:
        return self._failure if self._has_ended() else None

    @property
    def isActive(self) -> bool:  # noqa: N802
        return not self._has_ended()


def pipeline_of(query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    pipeline = Pipeline(
        PipelineSettings.model_validate(
            {
                "state": str(tmp_path / "state"),
                "events": {"path": "/shop/ads"},
                "subscriptions": {"path": "/shop/searches"},
                "notifications": {"outbox": str(tmp_path / "outbox")},
            }
        )
    )
    queries: list[Any] = [query]

    def start_again(failed: Any) -> None:
        assert failed is query
        queries[:] = [Query(99, None)]

    monkeypatch.setattr(pipeline, "_queries", lambda: list(queries))
    monkeypatch.setattr(pipeline, "_start_again", start_again)
    return pipeline


def wait_for(pipeline: Pipeline) -> None:
    while pipeline.is_running():
        pass


@pytest.mark.parametrize("n", range(1, 9))
def test_a_loss_is_taken_up_again_whenever_it_comes(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(Query(n, LOSS), tmp_path, monkeypatch)
    assert all(pipeline.is_running() for _ in range(8))
    assert pipeline._queries()[0]._n_left > 50  # it was started again


@pytest.mark.parametrize("n", range(1, 9))
def test_another_failure_is_told_whenever_it_comes(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(Query(n, RuntimeError("no more disk")), tmp_path, monkeypatch)
    with pytest.raises(PipelineError, match="no more disk"):
        wait_for(pipeline)


@pytest.mark.parametrize("n", range(1, 9))
def test_a_query_that_was_stopped_is_not_running(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(Query(n, None), tmp_path, monkeypatch)
    wait_for(pipeline)
