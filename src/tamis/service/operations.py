"""Operations: how the whole of it stands, sampled by a thread so that asking costs nothing."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamis.errors import StorageUnavailable, TamisError
from tamis.service.event_log import EventLog
from tamis.service.live_index import LiveIndex
from tamis.service.logs import log
from tamis.service.pipeline_status import PipelineStatus, read_status
from tamis.service.recent import RecentEvents
from tamis.service.standing_out import N_EVENTS, StandingOut, find_standing_out
from tamis.service.turns import Turn
from tamis.storage import Database
from tamis.storage.figures import Figures, read_figures
from tamis.storage.inbox import Inbox

__all__ = ["Operations"]

N_POINTS = 300
_EVERY_S = 2.0
_STANDING_OUT_EVERY_S = 60.0
_RATE_SAMPLES = 6  # a rate is taken over so many
_WARN_AFTER_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read at one time; None is what was not known."""

    time: datetime
    status: PipelineStatus | None
    figures: Figures | None
    n_notifications: int | None


@dataclass(frozen=True, slots=True)
class FileCounts:
    """The files of the event log; ``unread`` is not known where the pipeline's status is not."""

    total: int
    unread: int | None
    oldest_unread_s: float | None


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the history."""

    time: str
    events_per_s: float | None
    matches_per_s: float | None
    lag_s: float | None
    deliveries_per_s: float | None


class Operations:
    """Samples the pipeline's status, deliveries and the event log every few seconds."""

    def __init__(
        self, database: Database, index: LiveIndex, recent: RecentEvents, pipeline: Path
    ) -> None:
        self._database, self._inbox = database, Inbox(database)
        self._index, self._recent, self._pipeline = index, recent, pipeline
        self._event_log: EventLog | None = None
        self._samples: deque[Sample] = deque(maxlen=_RATE_SAMPLES)
        self._history: deque[Point] = deque(maxlen=N_POINTS)
        self._figures: Figures | None = None
        self._n_notifications: int | None = None
        self._files: FileCounts | None = None
        self._standing_out = StandingOut()
        self._figures_turn, self._files_turn = Turn(), Turn()
        self._standing_out_turn = Turn(_STANDING_OUT_EVERY_S)
        self._warning_turn = Turn(_WARN_AFTER_S)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operations", daemon=True)

    def start(self, event_log: EventLog) -> None:
        """Begin to sample."""
        self._event_log = event_log
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def figures(self) -> Figures | None:
        """The figures of deliveries, a few seconds ago; None where they cannot be read."""
        return self._figures

    @property
    def files(self) -> FileCounts | None:
        """The files of the event log, a few seconds ago; None where it is none of files."""
        return self._files

    def describe(self) -> dict[str, Any]:
        """What is known now, as operators are told it."""
        samples = list(self._samples)
        last = samples[-1] if samples else Sample(datetime.now(UTC), None, None, None)
        history = list(self._history)
        point = history[-1] if history else Point("", None, None, None, None)
        status = _fresh(last)
        index = self._index
        return {
            "time": _moment(last.time),
            "events": {"total": status and status.events, "per_s": point.events_per_s},
            "matches": {"total": status and status.matches, "per_s": point.matches_per_s},
            "lag_s": point.lag_s,
            "index": {
                "version": index.sequence if index.is_ready else None,
                "n_subscriptions": len(index) if index.is_ready else None,
            },
            "notifications": {"total": last.n_notifications},
            "deliveries": _described(last.figures),
            "event_files": self._files and asdict(self._files),
            "history": [asdict(one) for one in history],
            "broadest": [asdict(one) for one in self._standing_out.broadest],
            "costliest": [asdict(one) for one in self._standing_out.costliest],
        }

    # -- the thread

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._sample(datetime.now(UTC))
            except (OSError, TamisError) as error:
                log.warning("operations", problem=str(error))
            self._stopped.wait(_EVERY_S)

    def _sample(self, now: datetime) -> None:
        try:
            self._figures_turn.take(lambda: self._read_figures(now))
        except StorageUnavailable as error:
            self._figures = self._n_notifications = None
            log.warning("operations", problem=str(error))
        sample = Sample(now, read_status(self._pipeline), self._figures, self._n_notifications)
        self._samples.append(sample)
        self._files_turn.take(lambda: self._count_files(sample))
        self._history.append(self._point(sample))
        if self._index.is_ready and len(self._recent):
            self._standing_out_turn.take(self._find_standing_out)

    def _read_figures(self, now: datetime) -> None:
        self._figures = read_figures(self._database, now)
        self._n_notifications = self._inbox.last()

    def _count_files(self, sample: Sample) -> None:
        assert self._event_log is not None
        written = self._event_log.file_times()
        if written is None or sample.status is None:
            self._files = None if written is None else FileCounts(len(written), None, None)
            return
        unread = [one for one in written if one > sample.status.read_until]
        waited = max(0.0, sample.time.timestamp() - min(unread)) if unread else 0.0
        self._files = FileCounts(len(written), len(unread), round(waited, 3))
        if waited > _WARN_AFTER_S:
            self._warning_turn.take(
                lambda: log.warning(
                    "event files", unread=len(unread), oldest_unread_s=round(waited),
                    problem="the pipeline does not read them; they stay until it has",
                )
            )  # fmt: skip

    def _find_standing_out(self) -> None:
        events = self._recent.newest(N_EVENTS)
        self._standing_out = find_standing_out(self._index.index, events)

    def _point(self, sample: Sample) -> Point:
        first, status = self._samples[0], _fresh(sample)
        before = _fresh(first)
        events_per_s = matches_per_s = deliveries_per_s = None
        if status is not None and before is not None:
            seconds = (status.time - before.time).total_seconds()
            events_per_s = _rate(status.events - before.events, seconds)
            matches_per_s = _rate(status.matches - before.matches, seconds)
        if sample.figures is not None and first.figures is not None:
            seconds = (sample.time - first.time).total_seconds()
            deliveries_per_s = _rate(sample.figures.sent - first.figures.sent, seconds)
        lag_s = self._lag_s(status)
        return Point(_moment(sample.time), events_per_s, matches_per_s, lag_s, deliveries_per_s)

    def _lag_s(self, status: PipelineStatus | None) -> float | None:
        """How long the oldest unread file waits, at least what the last micro-batches took."""
        known = []
        if status is not None:
            known.append(status.match_seconds + status.notify_seconds)
        if self._files is not None and self._files.oldest_unread_s is not None:
            known.append(self._files.oldest_unread_s)
        return round(max(known), 3) if known else None


def _fresh(sample: Sample) -> PipelineStatus | None:
    status = sample.status
    return status if status is not None and status.is_fresh(sample.time) else None


def _rate(count: int, seconds: float) -> float | None:
    """A rate; None where it is not known, or the pipeline was started anew meanwhile."""
    return round(count / seconds, 3) if seconds > 0 and count >= 0 else None


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _described(figures: Figures | None) -> dict[str, Any]:
    if figures is None:
        names = ("waiting", "sent", "failed", "dead", "oldest_waiting_s")
        return {**dict.fromkeys(names), "destinations": []}
    return {
        "waiting": figures.waiting,
        "sent": figures.sent,
        "failed": figures.failed,
        "dead": figures.dead,
        "oldest_waiting_s": round(figures.oldest_waiting_s, 3),
        "destinations": [asdict(one) for one in figures.destinations],
    }
