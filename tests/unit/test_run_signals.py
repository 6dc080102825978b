"""Signals to ``tamis run`` while it stops: it ends in order, or at once if asked twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tamis.cli.run import RunJob
from tamis.spark.pipeline import Pipeline


class SignalledPipeline:
    """A pipeline that gets a signal while it is stopped."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        self.is_stopped = self.is_abandoned = False

    def stop(self) -> None:
        os.kill(os.getpid(), self.signum)
        self.is_stopped = True

    def abandon(self) -> None:
        self.is_abandoned = True


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The signals that nobody handles."""
    found: list[int] = []

    def note(signum: int, frame: Any) -> None:
        found.append(signum)

    before = signal.signal(signal.SIGTERM, note)
    yield found
    assert signal.getsignal(signal.SIGTERM) is note
    signal.signal(signal.SIGTERM, before)


def test_a_second_sigterm_says_nothing_new(heard: list[int]) -> None:
    pipeline = SignalledPipeline(signal.SIGTERM)
    with RunJob(Path("p.toml"))._stopping_cleanly(cast(Pipeline, pipeline)):
        os.kill(os.getpid(), signal.SIGTERM)
    assert pipeline.is_stopped
    assert heard == []


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_sigint_while_it_stops_ends_all_at_once(
    heard: list[int], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("tamis.cli.run.os._exit", end)
    before = signal.getsignal(signal.SIGINT)
    pipeline = SignalledPipeline(signal.SIGINT)
    with (
        pytest.raises(SystemExit, match="130"),
        RunJob(Path("p.toml"))._stopping_cleanly(cast(Pipeline, pipeline)),
    ):
        os.kill(os.getpid(), first)
    assert pipeline.is_abandoned
    assert signal.getsignal(signal.SIGINT) is before
