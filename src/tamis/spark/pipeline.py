"""Pipeline: the matcher and the notifier of one settings file, started, watched and stopped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import PipelineError
from tamis.spark.checks import initial_mistakes, place_mistakes, source_mistakes
from tamis.spark.event_files import EventFiles
from tamis.spark.failures import is_loss, reason_of, told_in_a_line
from tamis.spark.identity import check_identity, keep_identity
from tamis.spark.kept_columns import KeptColumns
from tamis.spark.paths import plain_path
from tamis.spark.runtime import is_submitted, session
from tamis.spark.settings import PipelineSettings
from tamis.spark.source_logs import SourceLogs
from tamis.spark.state_folder import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tamis.spark.notifier import NotifyStream
    from tamis.spark.streaming import MatchStream


_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Status:
    """What a pipeline has done since it was started, and how it stands.

    ``match_seconds`` and ``notify_seconds`` are what the last micro-batch took;
    ``waiting_files`` how many files of events wait for the next; ``read_until`` when the newest
    file was written that was read, in seconds since 1970 (0 where it is not known).
    """

    index_version: int = 0
    events: int = 0
    matches: int = 0
    dead_letters: int = 0
    notifications: int = 0
    match_seconds: float = 0.0
    notify_seconds: float = 0.0
    waiting_files: int = 0
    read_until: float = 0.0

    def to_json(self) -> dict[str, float]:
        """The status as a JSON object."""
        return asdict(self)


# Spark would start a job with a task for each of the files to look at, which takes longer.
_LISTING = {"spark.sql.sources.parallelPartitionDiscovery.threshold": 10_000}


_MOST_STARTS, _WITHIN_S = 3, 600.0  # by itself: a loss that goes on is for somebody to look at

_POLL_S = 1


class Pipeline:
    """A pipeline of some settings.

    It keeps all it must remember in the folder ``state`` of the settings: the checkpoints of its
    queries, the index files and the match log. Started again, it goes on from there. ::

        pipeline = Pipeline(read_settings(Path("pipeline.toml")))
        pipeline.start()
        while pipeline.is_running():
            pipeline.tidy()
            time.sleep(1)
    """

    def __init__(self, settings: PipelineSettings) -> None:
        self.settings = settings
        self._state = StateFolder(settings.state)
        self._columns = KeptColumns(self._state, settings.events)
        self._files = _event_files(settings)
        self._logs = SourceLogs(_folders_read(settings, self._readers()))
        self._spark: SparkSession | None = None
        self._matching: MatchStream | None = None
        self._notifying: NotifyStream | None = None
        self._sending: StreamingQuery | None = None
        self._before = Status()  # what was done by queries that were started again since
        self._started_again: list[float] = []  # when

    def check(self) -> None:
        """Raise PipelineError for what can be seen to be wrong before Spark is started.

        Makes the folders to write to.
        """
        _refuse([*self._source_mistakes(), *place_mistakes(self.settings)])
        check_identity(self._state, self.settings)

    def check_sources(self) -> None:
        """Raise PipelineError for a folder or file to read that is not there; writes nothing."""
        _refuse(self._source_mistakes())
        check_identity(self._state, self.settings)

    def _source_mistakes(self) -> list[str]:
        initial = self._initial()
        found = [] if initial is None else initial_mistakes(initial)
        return [*source_mistakes(self.settings, self._columns.is_known), *found]

    def claim(self) -> bool:
        """Have the folder ``state`` for this pipeline alone; False while another runs with it."""
        return self._state.claim()

    def connect(self) -> None:
        """Start Spark, which `start` and `run_once` do too if it was not done before."""
        if self._spark is None:
            self._spark = session(self.settings.name, **self.spark_settings())

    def start(self) -> None:
        """Start all queries, or go on where they were stopped."""
        try:
            self._start_matching(self._every_interval())
            self._start_notifying(self.settings.notifications.interval)
            self._start_sending(self.settings.notifications.interval)
        except BaseException:
            self._end_queries()
            raise

    def run_once(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Match the events that are there, publish what is due, and return.

        Once ``is_stopped`` says so, it returns after the micro-batch that is being done. What is
        left is done by the next start.
        """
        steps: list[Callable[[], StreamingQuery | None]] = [
            lambda: self._start_matching({"availableNow": True}).query,
            lambda: self._start_notifying(None).query,
            lambda: self._start_sending(None),
        ]
        try:
            for start in steps:
                query = None if is_stopped() else start()
                if query is not None:
                    _finish(query, is_stopped)
            self.tidy()
        finally:
            self._end_queries()

    def _every_interval(self) -> dict[str, Any]:
        milliseconds = self.settings.matching.interval // timedelta(milliseconds=1)
        return {"processingTime": f"{milliseconds} milliseconds"}

    @told_in_a_line()
    def _start_matching(self, trigger: dict[str, Any]) -> MatchStream:
        self.check()
        if not self.claim():
            raise PipelineError(
                f"another pipeline runs with the state {self.settings.state}; stop it first, or "
                "give this one a folder of its own"
            )
        with ThreadPoolExecutor(1) as threads:  # Java starts while Python reads the engine
            connected = threads.submit(self.connect)
            from tamis.spark.sources import open_changes
            from tamis.spark.streaming import match_stream

            connected.result()
        settings, spark = self.settings, self._spark
        assert spark is not None
        initial = self._initial()
        events, mapping = self._columns.open(spark)
        mode = settings.matching.mode
        self._matching = match_stream(
            events,
            None if initial is None else spark.read.parquet(plain_path(initial)),
            changes=open_changes(spark, settings.subscriptions),
            checkpoint=settings.state / "matcher",
            n_tokens=settings.matching.tokens,
            mapping=mapping,
            mode=None if mode == "auto" else mode,
            trigger=trigger,
            name=f"{settings.name}: match",
            readers=self._readers(),
            keep=settings.matching.keep,
        )
        # Only now: a start that failed binds nobody.
        keep_identity(self._state, settings)
        self._columns.keep()
        return self._matching

    def _initial(self) -> Path | None:
        """The table of subscriptions to begin with, at the first start."""
        versions = self.settings.state / "matcher" / "snapshots" / "versions"
        return None if any(versions.glob("*.json")) else self.settings.subscriptions.initial

    def spark_settings(self) -> dict[str, Any]:
        """Those of the file, and Kafka's connector where it is needed and not named there.

        Raises MissingExtra if it is needed and not there.
        """
        given = {**_LISTING, **self.settings.spark}
        has_jars = any(name.startswith("spark.jars") for name in given)
        needs_kafka = self.settings.events.source == "kafka" or self.settings.matches is not None
        if not needs_kafka or has_jars or is_submitted():
            return given
        from tamis.spark.kafka import connector_settings

        return {**connector_settings(), **given}

    @told_in_a_line()
    def _start_notifying(self, interval: timedelta | None) -> NotifyStream:
        from tamis.spark.notifier import notify_stream
        from tamis.spark.sources import open_outbox

        assert self._matching is not None
        told = self.settings.notifications
        self._notifying = notify_stream(
            self._matching.matches,
            open_outbox(told.outbox),
            checkpoint=self.settings.state / "notifier",
            retention=told.retention,
            interval=interval,
            name=f"{self.settings.name}: notify",
            log=self._matching.log.path,
        )
        return self._notifying

    @told_in_a_line()
    def _start_sending(self, interval: timedelta | None) -> StreamingQuery | None:
        """Start to write matches to a topic, if the settings name one."""
        from tamis.spark.kafka import write_kafka

        topic = self.settings.matches
        if topic is None:
            return None
        assert self._matching is not None
        self._sending = write_kafka(
            self._matching.matches,
            topic.servers,
            topic.topic,
            checkpoint=self._readers()[-1],
            options=topic.options,
            interval=interval,
            name=f"{self.settings.name}: send",
        )
        return self._sending

    def _readers(self) -> list[Path]:
        """The checkpoints of the queries that read the match log."""
        names = ["notifier"] if self.settings.matches is None else ["notifier", "sender"]
        return [self.settings.state / name for name in names]

    def _queries(self) -> list[StreamingQuery]:
        streams = (self._matching, self._notifying)
        queries = [stream.query for stream in streams if stream is not None]
        return queries if self._sending is None else [*queries, self._sending]

    def is_running(self) -> bool:
        """Whether all queries run; raises PipelineError if one failed.

        One that Spark gave up as part of the cluster was lost is started again, from its
        checkpoint, some times.
        """
        are_active = []
        for query in self._queries():
            # Asked first: one that fails after this is active still, and is seen to the next time.
            is_active = query.isActive
            failure = query.exception()
            if failure is not None:
                if not is_loss(failure) or not self._may_start_again():
                    raise _stopped(query, failure)
                _logger.warning("%s is started again: %s", query.name, reason_of(failure))
                self._start_again(query)
                is_active = True
            are_active.append(is_active)
        return bool(are_active) and all(are_active)

    def _may_start_again(self) -> bool:
        now = time.monotonic()
        self._started_again = [at for at in self._started_again if now - at < _WITHIN_S]
        if len(self._started_again) >= _MOST_STARTS:
            return False
        self._started_again.append(now)
        return True

    def _start_again(self, query: StreamingQuery) -> None:
        """Start a query that has failed; what it did is counted on."""
        done, interval = self.status(), self.settings.notifications.interval
        if self._matching is not None and query is self._matching.query:
            counts = {name: getattr(done, name) for name in ("events", "matches", "dead_letters")}
            self._start_matching(self._every_interval())
            self._before = replace(self._before, **counts)
        elif query is self._sending:
            self._start_sending(interval)
        else:
            self._start_notifying(interval)
            self._before = replace(self._before, notifications=done.notifications)

    def status(self) -> Status:
        """How it stands."""
        matching, notifying = self._matching, self._notifying
        if matching is None:
            return Status()
        before, done, progress = self._before, matching.totals, matching.query.lastProgress
        return Status(
            matching.version,
            before.events + done.n_events,
            before.matches + done.n_matches,
            before.dead_letters + done.n_dead,
            before.notifications + (0 if notifying is None else notifying.n_notifications),
            _batch_seconds(progress),
            0.0 if notifying is None else _busy_seconds(notifying),
            _waiting_files(progress),
            0.0 if self._files is None else self._files.read_until,
        )

    def tidy(self) -> None:
        """Remove old files of events that were read, and write the status down: now and then."""
        if self._files is not None:
            self._files.tidy()
        self._logs.tidy()
        try:
            self._state.write_status(self.status().to_json())
        except OSError as error:
            _logger.warning("the status is not written: %s", error)

    def stop(self) -> None:
        """Stop all queries, each after its micro-batch, and Spark."""
        self._end_queries()
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

    def abandon(self) -> None:
        """End Spark's Java at once, where it is ours, for a process that ends itself then.

        It is as a crash: nothing is lost, and the next start goes on from the checkpoints.
        """
        gateway = None if self._spark is None else self._spark.sparkContext._gateway
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.kill()

    def _end_queries(self) -> None:
        """Stop all queries, each after its micro-batch; only then another may have the state."""
        from tamis.spark.notifier import stop_between_batches

        try:
            if self._notifying is not None:
                self._notifying.wake()
            for query in self._queries():
                if query.isActive:
                    stop_between_batches(query)
        finally:
            self._state.release()


def _folders_read(settings: PipelineSettings, readers: Iterable[Path]) -> dict[Path, Path]:
    """The checkpoints of queries that read files, and the folder that each reads."""
    matcher = settings.state / "matcher"
    read = dict.fromkeys(readers, matcher / "matches")
    if settings.events.path is not None:
        read[matcher / "spark"] = settings.events.path
    return read


def _event_files(settings: PipelineSettings) -> EventFiles | None:
    folder, checkpoint = settings.events.path, settings.state / "matcher" / "spark"
    return None if folder is None else EventFiles(folder, checkpoint, settings.events.keep)


def _refuse(mistakes: Iterable[str]) -> None:
    """Raise PipelineError if there are any, with all of them."""
    told = "\n".join(mistakes)
    if told:
        raise PipelineError(told)


def _finish(query: StreamingQuery, is_stopped: Callable[[], bool]) -> None:
    """Wait for the end of a query, or stop it; raises PipelineError if it failed."""
    from pyspark.errors import StreamingQueryException

    from tamis.spark.notifier import stop_between_batches

    try:
        while not query.awaitTermination(_POLL_S):
            if is_stopped():
                stop_between_batches(query)
                break
    except StreamingQueryException:
        _check(query)
        raise
    _check(query)


def _check(query: StreamingQuery) -> None:
    failure = query.exception()
    if failure is not None:
        raise _stopped(query, failure)


def _stopped(query: StreamingQuery, failure: Exception) -> PipelineError:
    return PipelineError(f"{query.name} stopped: {reason_of(failure)}")


def _batch_seconds(progress: Any) -> float:
    return 0.0 if progress is None else progress["durationMs"].get("triggerExecution", 0) / 1000


def _busy_seconds(notifying: NotifyStream) -> float:
    """How long the notifier's last micro-batch took, without its rest."""
    last = notifying.query.lastProgress
    return 0.0 if last is None else max(0.0, _batch_seconds(last) - notifying.rest_in(last.batchId))


def _waiting_files(progress: Any) -> int:
    """What Spark's file source says in its metrics; other sources have no such figure."""
    sources = [] if progress is None else progress["sources"]
    return sum(int((one.get("metrics") or {}).get("numFilesOutstanding") or 0) for one in sources)
