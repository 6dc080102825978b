"""Stages of a demo: how long each takes, and waiting for a pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from tamis.cli.terminal import BadInput
from tamis.spark.pipeline import Pipeline, Status

_PATIENCE_S = 120.0


class Stages:
    """How long each stage took, shown while it runs."""

    def __init__(self, console: Console) -> None:
        self.seconds: dict[str, float] = {}
        self._console = console

    @contextmanager
    def timed(self, name: str) -> Iterator[Callable[[str], None]]:
        """Time a stage; the function it gives says how far it is."""
        start = time.perf_counter()
        with self._console.status(name) as status:
            yield lambda text: status.update(f"{name}: {text}")
        self.seconds[name] = time.perf_counter() - start


def wait_for(
    pipeline: Pipeline, is_done: Callable[[Status], bool], say: Callable[[Status], None], what: str
) -> None:
    """Wait until a pipeline has come so far; ``what`` says what is wrong if it never does."""
    deadline = time.monotonic() + _PATIENCE_S
    while not is_done(status := pipeline.status()):
        if not pipeline.is_running() or time.monotonic() > deadline:
            raise BadInput(f"{what}; please report this")
        say(status)
        time.sleep(0.2)
