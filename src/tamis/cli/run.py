"""``tamis run``: a pipeline from its settings file, until somebody stops it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.live import Live
from rich.table import Table
from rich.text import Text

from tamis.cli.stop import Stop
from tamis.cli.terminal import INTERRUPTED, stderr_console
from tamis.spark.pipeline import Pipeline, Status
from tamis.spark.settings import read_settings

_EVERY_S = 1.0
_LINE_EVERY_S = 10.0  # where nobody looks


@dataclass(slots=True)
class RunJob:
    """The options of one run, and what it does with them."""

    file: Path
    changes: Sequence[str] = ()
    once: bool = False
    json: bool = False
    until_eof: bool = False
    _stopped: Stop = field(default_factory=Stop)

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or a failure; with ``once`` at most until all is done.

        With ``until_eof`` also until the end of standard input.
        """
        pipeline = Pipeline(read_settings(self.file, self.changes))
        pipeline.check()
        since = time.monotonic()
        if self.until_eof:
            threading.Thread(target=self._stop_at_eof, name="stdin", daemon=True).start()
        with self._stopping_cleanly(pipeline):
            if self.once:
                pipeline.run_once(lambda: self._stopped.wait(0))
            elif self._wait_for_state(pipeline):
                self._serve_metrics(pipeline)
                pipeline.start()
                self._watch(pipeline)
            status = pipeline.status()
        self._print_summary(status, time.monotonic() - since)

    def _wait_for_state(self, pipeline: Pipeline) -> bool:
        """Wait while another pipeline has the state, to go on when it ends; False if stopped."""
        if pipeline.claim():
            return True
        stderr_console().print(
            f"another pipeline runs with the state {pipeline.settings.state}; waiting for its end",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        while not self._stopped.wait(_EVERY_S):
            if pipeline.claim():
                return True
        return False

    def _serve_metrics(self, pipeline: Pipeline) -> None:
        port = pipeline.settings.metrics_port
        if port is None:
            return
        from tamis.spark.metrics import serve_metrics

        used = serve_metrics(port, pipeline.status)
        stderr_console().print(f"metrics: http://127.0.0.1:{used}/metrics", highlight=False)

    def _stop_at_eof(self) -> None:
        # Not by way of sys.stdin, whose lock no thread may hold when Python ends.
        with suppress(OSError):
            while os.read(0, 1 << 16):
                pass
        self._stopped.say()

    @contextmanager
    def _stopping_cleanly(self, pipeline: Pipeline) -> Iterator[None]:
        """SIGTERM ends the watching; whatever ends it, the pipeline is stopped.

        While it is, SIGTERM says nothing new, and SIGINT ends all at once.
        """
        is_ending = False

        def stop(signum: int, frame: FrameType | None) -> None:
            self._stopped.say()

        def interrupt(signum: int, frame: FrameType | None) -> None:
            nonlocal is_ending
            if is_ending:
                _end_at_once(pipeline)
            try:
                if callable(on_interrupt):
                    on_interrupt(signum, frame)  # which may let it wait for a better moment
            except KeyboardInterrupt:
                is_ending = True
                raise

        on_interrupt = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, interrupt)
        on_stop = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            is_ending = True
            try:
                pipeline.stop()
            finally:
                signal.signal(signal.SIGTERM, on_stop)
                signal.signal(signal.SIGINT, on_interrupt)

    def _watch(self, pipeline: Pipeline) -> None:
        console = stderr_console()
        if not console.is_terminal:
            self._watch_quietly(pipeline)
            return
        last, since = Status(), time.monotonic()
        with Live(Text("starting"), console=console, transient=True, auto_refresh=False) as live:
            while not self._stopped.wait(_EVERY_S) and pipeline.is_running():
                status, now = pipeline.status(), time.monotonic()
                live.update(_line(status, last, now - since), refresh=True)
                last, since = status, now
                pipeline.tidy()

    def _watch_quietly(self, pipeline: Pipeline) -> None:
        """A JSON object now and then, for whoever reads the log."""
        told_at = time.monotonic()
        while not self._stopped.wait(_EVERY_S) and pipeline.is_running():
            pipeline.tidy()
            if time.monotonic() - told_at >= _LINE_EVERY_S:
                told_at = time.monotonic()
                print(json.dumps(pipeline.status().to_json()), file=sys.stderr, flush=True)

    def _print_summary(self, status: Status, seconds: float) -> None:
        if self.json:
            print(json.dumps({**status.to_json(), "seconds": round(seconds, 3)}))
            return
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim")
        table.add_column(justify="right")
        for name in ("events", "matches", "notifications", "dead_letters", "index_version"):
            table.add_row(name.replace("_", " "), f"{getattr(status, name):,}")
        stderr_console().print(table)


def _end_at_once(pipeline: Pipeline) -> None:
    """End without a word of what was interrupted, in Python or in Java."""
    pipeline.abandon()
    os._exit(INTERRUPTED)


def _line(status: Status, last: Status, seconds: float) -> Text:
    """The status line: rates of the last second, and how it stands."""
    events = (status.events - last.events) / seconds
    matches = (status.matches - last.matches) / seconds
    lag = f"lag {status.match_seconds + status.notify_seconds:.1f} s"
    if status.waiting_files:
        lag += f", {status.waiting_files:,} files wait"
    parts = [
        f"{status.events:,} events ({events:,.0f}/s)",
        f"{status.matches:,} matches ({matches:,.0f}/s)",
        f"{status.notifications:,} notifications",
        f"index {status.index_version}",
        lag,
    ]
    if status.dead_letters:
        parts.append(f"[red]{status.dead_letters:,} dead letters[/red]")
    return Text.from_markup("  ·  ".join(parts))
