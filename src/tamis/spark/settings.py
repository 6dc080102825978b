"""The settings of a pipeline: a TOML file, checked before Spark starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from tamis.errors import quoted
from tamis.settings import LongSpan, Section, Whole, read_settings_file
from tamis.spark.columns_ddl import names_of

__all__ = ["PipelineSettings", "read_settings"]

Format = Literal["jsonl", "csv", "parquet"]
Count = Annotated[Whole, Field(gt=0)]
# Spark counts files in 32 bits, messages in 64.
_MOST_FILES, _MOST_MESSAGES = 2**31 - 1, 2**63 - 1
_SQLITE = "sqlite:///"


def _long_enough(span: timedelta) -> timedelta:
    if span < timedelta(seconds=1):
        raise ValueError("expected a length of time of 1 s or more")
    return span


def _not_empty(path: Any) -> Any:
    if path == "":
        raise ValueError("expected a path, not an empty text; '.' is the folder of this file")
    return path


Place = Annotated[Path, BeforeValidator(_not_empty)]


class EventColumns(Section):
    """Which columns hold what; see `tamis.spark.EventMapping`."""

    id: str = "id"
    time: str | None = None
    until: str | None = None
    payload: str | None = None
    points: dict[str, tuple[str, str]] = Field(default_factory=dict)
    json_objects: list[str] = Field(alias="json", default_factory=list)
    attributes: list[str] | None = None

    def named(self) -> Iterator[tuple[str, str]]:
        """The settings that name a column which must be there, each with that column."""
        yield from (("json", column) for column in self.json_objects)
        yield from (("attributes", column) for column in self.attributes or ())
        if self.json_objects:
            return  # the others may be fields of the JSON objects
        for setting in ("id", "time", "until", "payload"):
            if getattr(self, setting) is not None:
                yield setting, getattr(self, setting)
        for point, sides in self.points.items():
            yield from ((f"points.{point}", side) for side in sides)


class EventSettings(Section):
    """Where events come from.

    Files that were read are removed ``keep`` after they were written; without it they stay.
    """

    source: Literal["files", "kafka"] = "files"
    path: Place | None = None
    format: Format = "jsonl"
    columns_ddl: Annotated[str | None, Field(alias="schema")] = None
    files_per_batch: Annotated[Count, Field(le=_MOST_FILES)] = 1_000
    keep: LongSpan | None = None
    servers: str | None = None
    topic: str | None = None
    messages_per_batch: Annotated[Count, Field(le=_MOST_MESSAGES)] = 100_000
    options: dict[str, str] = Field(default_factory=dict)
    columns: EventColumns = EventColumns()

    @property
    def is_table(self) -> bool:
        """Whether the events are rows of files that have columns."""
        return self.source == "files" and self.format != "jsonl"

    @field_validator("columns_ddl")
    @classmethod
    def _has_columns(cls, ddl: str | None) -> str | None:
        if not ddl:  # --set events.schema= lets them be learned
            return None
        names_of(ddl)
        return ddl

    @model_validator(mode="after")
    def _is_whole(self) -> EventSettings:
        wanted = ("path",) if self.source == "files" else ("servers", "topic")
        _require(self, self.source, wanted)
        if self.keep is not None and self.source != "files":
            raise ValueError(f"'keep' is for files; source {self.source!r} has its own retention")
        if self.source == "kafka" and self.columns != EventColumns():
            raise ValueError(
                "'columns' are those of files; a message says itself what its id, time, until, "
                "payload and attributes are"
            )
        if self.is_table and self.columns_ddl is not None:
            _require_columns(self.columns, names_of(self.columns_ddl))
        return self


class SubscriptionSettings(Section):
    """Where subscriptions and their changes come from.

    ``initial`` is a Parquet table of those to begin with, read at the first start only.
    """

    initial: Place | None = None
    source: Literal["files", "jdbc", "store"] = "files"
    path: Place | None = None
    url: str | None = None
    table: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> SubscriptionSettings:
        wanted = {"files": ("path",), "jdbc": ("url", "table"), "store": ("url",)}
        _require(self, self.source, wanted[self.source])
        if self.source == "jdbc" and not str(self.url).startswith("jdbc:"):
            raise ValueError(
                "source 'jdbc' needs a 'url' that begins with jdbc:, as jdbc:postgresql://host/name"
            )
        if self.source == "store":
            _check_database(str(self.url), "source 'store' needs a 'url' that is")
        return self


class MatchSettings(Section):
    """How matching is spread, and how often it is done."""

    mode: Literal["auto", "replicated", "sharded"] = "auto"
    tokens: Annotated[Count, Field(le=4096)] = 16
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
    retention: Annotated[LongSpan, AfterValidator(_long_enough)] = timedelta(hours=1)

    @field_validator("outbox")
    @classmethod
    def _is_place(cls, outbox: str) -> str:
        if not outbox:
            raise ValueError("expected a folder, or the address of a database")
        if "://" in outbox:
            _check_database(outbox, "expected a folder,")
        return outbox


class PipelineSettings(Section):
    """A pipeline: its sources, its state, its sinks.

    >>> settings = PipelineSettings.model_validate(
    ...     {"state": "state", "events": {"path": "ads"}, "subscriptions": {"path": "searches"},
    ...      "notifications": {"outbox": "outbox"}})
    >>> settings.matching.interval
    datetime.timedelta(microseconds=500000)
    """

    name: str = "tamis"
    state: Place
    events: EventSettings
    subscriptions: SubscriptionSettings
    matching: MatchSettings = MatchSettings()
    matches: TopicSettings | None = None
    notifications: NotificationSettings
    metrics_port: Annotated[Whole | None, Field(ge=0, le=65535)] = None
    spark: dict[str, str | int | float | bool] = Field(default_factory=dict)


def _require(section: Section, source: str, names: Sequence[str]) -> None:
    for name in names:
        if getattr(section, name) is None:
            raise ValueError(f"source {source!r} needs {name!r}")


def _require_columns(columns: EventColumns, names: Sequence[str]) -> None:
    absent = [f"columns.{setting} {column!r}" for setting, column in columns.named()
              if column not in names]  # fmt: skip
    if absent:
        raise ValueError(f"'schema' does not have {', '.join(absent)}; it has {', '.join(names)}")


def _check_database(url: str, expected: str) -> None:
    """Raise ValueError for an address of none of our databases; it may hold a password."""
    scheme, sign, _ = url.partition("://")
    is_known = url.startswith(_SQLITE) or scheme.partition("+")[0] == "postgresql"
    if not sign or not is_known or url in (_SQLITE, f"{_SQLITE}:memory:"):
        given = f"{scheme}://…" if sign else url
        raise ValueError(
            f"{expected} sqlite:///path or postgresql://user@host/name, not {quoted(given)}"
        )


def read_settings(path: Path, changes: Sequence[str] = ()) -> PipelineSettings:
    """Read a pipeline file; ``changes`` are ``key=value`` with dotted keys and win over it.

    Paths, also those of SQLite, are taken from the folder of the file.
    """
    settings = read_settings_file(path, PipelineSettings, changes)
    return _rooted(settings, path.absolute().parent)


def _rooted(settings: PipelineSettings, folder: Path) -> PipelineSettings:
    """The same with absolute paths."""

    def rooted(path: Path | None) -> Path | None:
        return None if path is None else folder / path

    def rooted_url(url: str | None) -> str | None:
        if url is None or not url.startswith(_SQLITE) or url.startswith(f"{_SQLITE}file:"):
            return url
        return f"{_SQLITE}{folder / url.removeprefix(_SQLITE)}"

    events, subscriptions, told = settings.events, settings.subscriptions, settings.notifications
    outbox = rooted_url(told.outbox) if "://" in told.outbox else str(folder / told.outbox)
    return settings.model_copy(
        update={
            "state": rooted(settings.state),
            "events": events.model_copy(update={"path": rooted(events.path)}),
            "subscriptions": subscriptions.model_copy(
                update={
                    "path": rooted(subscriptions.path),
                    "initial": rooted(subscriptions.initial),
                    "url": rooted_url(subscriptions.url),
                }
            ),
            "notifications": told.model_copy(update={"outbox": outbox}),
        }
    )
