"""The settings of a pipeline: a TOML file, checked before Spark starts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tamis.settings import LongSpan, Section, read_settings_file

__all__ = ["PipelineSettings", "read_settings"]

Format = Literal["jsonl", "csv", "parquet"]


class EventColumns(Section):
    """Which columns hold what; see `tamis.spark.EventMapping`."""

    id: str = "id"
    time: str | None = None
    until: str | None = None
    payload: str | None = None
    points: dict[str, tuple[str, str]] = Field(default_factory=dict)
    json_objects: list[str] = Field(alias="json", default_factory=list)
    attributes: list[str] | None = None


class EventSettings(Section):
    """Where events come from.

    Files that were read are removed ``keep`` after they were written; without it they stay.
    """

    source: Literal["files", "kafka"] = "files"
    path: Path | None = None
    format: Format = "jsonl"
    columns_ddl: Annotated[str | None, Field(alias="schema")] = None
    files_per_batch: Annotated[int, Field(gt=0)] = 1_000
    keep: LongSpan | None = None
    servers: str | None = None
    topic: str | None = None
    messages_per_batch: Annotated[int, Field(gt=0)] = 100_000
    options: dict[str, str] = Field(default_factory=dict)
    columns: EventColumns = EventColumns()

    @model_validator(mode="after")
    def _is_whole(self) -> EventSettings:
        wanted = ("path",) if self.source == "files" else ("servers", "topic")
        _require(self, self.source, wanted)
        if self.keep is not None and self.source != "files":
            raise ValueError(f"'keep' is for files; source {self.source!r} has its own retention")
        return self


class SubscriptionSettings(Section):
    """Where subscriptions and their changes come from.

    ``initial`` is a Parquet table of those to begin with, read at the first start only.
    """

    initial: Path | None = None
    source: Literal["files", "jdbc", "store"] = "files"
    path: Path | None = None
    url: str | None = None
    table: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> SubscriptionSettings:
        wanted = {"files": ("path",), "jdbc": ("url", "table"), "store": ("url",)}
        _require(self, self.source, wanted[self.source])
        return self


class MatchSettings(Section):
    """How matching is spread, and how often it is done."""

    mode: Literal["auto", "replicated", "sharded"] = "auto"
    tokens: Annotated[int, Field(gt=0, le=4096)] = 16
    interval: LongSpan = timedelta(milliseconds=500)
    keep: LongSpan = timedelta(hours=1)


class TopicSettings(Section):
    """A topic of Kafka that every match goes to, besides being notified."""

    servers: str
    topic: str
    options: dict[str, str] = Field(default_factory=dict)


class NotificationSettings(Section):
    """When subscribers are told, and where notifications wait for a sender."""

    outbox: str
    interval: LongSpan = timedelta(seconds=1)
    retention: LongSpan = timedelta(hours=1)


class PipelineSettings(Section):
    """A pipeline: its sources, its state, its sinks.

    >>> settings = PipelineSettings.model_validate(
    ...     {"state": "state", "events": {"path": "ads"}, "subscriptions": {"path": "searches"},
    ...      "notifications": {"outbox": "outbox"}})
    >>> settings.matching.interval
    datetime.timedelta(microseconds=500000)
    """

    name: str = "tamis"
    state: Path
    events: EventSettings
    subscriptions: SubscriptionSettings
    matching: MatchSettings = MatchSettings()
    matches: TopicSettings | None = None
    notifications: NotificationSettings
    metrics_port: Annotated[int | None, Field(ge=0, le=65535)] = None
    spark: dict[str, str | int | float | bool] = Field(default_factory=dict)


def _require(section: Section, source: str, names: Sequence[str]) -> None:
    for name in names:
        if getattr(section, name) is None:
            raise ValueError(f"source {source!r} needs {name!r}")


def read_settings(path: Path, changes: Sequence[str] = ()) -> PipelineSettings:
    """Read a pipeline file; ``changes`` are ``key=value`` with dotted keys and win over it.

    Paths are taken from the folder of the file.
    """
    settings = read_settings_file(path, PipelineSettings, changes)
    return _rooted(settings, path.absolute().parent)


def _rooted(settings: PipelineSettings, folder: Path) -> PipelineSettings:
    """The same with absolute paths."""

    def rooted(path: Path | None) -> Path | None:
        return None if path is None else folder / path

    events, subscriptions, told = settings.events, settings.subscriptions, settings.notifications
    is_database = "://" in told.outbox
    return settings.model_copy(
        update={
            "state": rooted(settings.state),
            "events": events.model_copy(update={"path": rooted(events.path)}),
            "subscriptions": subscriptions.model_copy(
                update={
                    "path": rooted(subscriptions.path),
                    "initial": rooted(subscriptions.initial),
                }
            ),
            "notifications": told.model_copy(
                update={"outbox": told.outbox if is_database else str(folder / told.outbox)}
            ),
        }
    )
