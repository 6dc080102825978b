"""The settings of a pipeline: a TOML file, checked before Spark starts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from tamis.errors import PipelineError

__all__ = ["PipelineSettings", "read_settings"]

_SPAN = re.compile(r"([1-9]\d{0,8}) ?(ms|s|min|h|d)", re.ASCII)
_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _span(raw: Any) -> Any:
    """Read ``500 ms``, ``2 s``, ``15 min``, ``1 h`` or ``7 d``."""
    if isinstance(raw, timedelta):
        return raw
    found = _SPAN.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError("expected a length of time such as '500 ms', '2 s', '15 min' or '1 h'")
    return timedelta(milliseconds=int(found[1]) * _MILLISECONDS[found[2]])


Span = Annotated[timedelta, BeforeValidator(_span)]
Format = Literal["jsonl", "csv", "parquet"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EventColumns(_Section):
    """Which columns hold what; see `tamis.spark.EventMapping`."""

    id: str = "id"
    time: str | None = None
    until: str | None = None
    payload: str | None = None
    points: dict[str, tuple[str, str]] = {}
    json_objects: Annotated[list[str], Field(alias="json")] = []
    attributes: list[str] | None = None


class EventSettings(_Section):
    """Where events come from.

    Files that were read are removed ``keep`` after they were written; without it they stay.
    """

    source: Literal["files", "kafka"] = "files"
    path: Path | None = None
    format: Format = "jsonl"
    columns_ddl: Annotated[str | None, Field(alias="schema")] = None
    files_per_batch: Annotated[int, Field(gt=0)] = 1_000
    keep: Span | None = None
    servers: str | None = None
    topic: str | None = None
    messages_per_batch: Annotated[int, Field(gt=0)] = 100_000
    options: dict[str, str] = {}
    columns: EventColumns = EventColumns()

    @model_validator(mode="after")
    def _is_whole(self) -> EventSettings:
        wanted = ("path",) if self.source == "files" else ("servers", "topic")
        _require(self, self.source, wanted)
        if self.keep is not None and self.source != "files":
            raise ValueError(f"'keep' is for files; source {self.source!r} has its own retention")
        return self


class SubscriptionSettings(_Section):
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


class MatchSettings(_Section):
    """How matching is spread, and how often it is done."""

    mode: Literal["auto", "replicated", "sharded"] = "auto"
    tokens: Annotated[int, Field(gt=0, le=4096)] = 16
    interval: Span = timedelta(milliseconds=500)
    keep: Span = timedelta(hours=1)


class TopicSettings(_Section):
    """A topic of Kafka that every match goes to, besides being notified."""

    servers: str
    topic: str
    options: dict[str, str] = {}


class NotificationSettings(_Section):
    """When subscribers are told, and where notifications wait for a sender."""

    outbox: str
    interval: Span = timedelta(seconds=1)
    retention: Span = timedelta(hours=1)


class PipelineSettings(_Section):
    """A pipeline: its sources, its state, its sinks.

    >>> settings = PipelineSettings.model_validate(
    ...     {"state": "state", "events": {"path": "ads"}, "subscriptions": {"path": "searches"},
    ...      "notifications": {"outbox": "outbox"}}, strict=False)
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
    spark: dict[str, str | int | float | bool] = {}


def _require(section: BaseModel, source: str, names: Sequence[str]) -> None:
    for name in names:
        if getattr(section, name) is None:
            raise ValueError(f"source {source!r} needs {name!r}")


def read_settings(path: Path, changes: Sequence[str] = ()) -> PipelineSettings:
    """Read a pipeline file; ``changes`` are ``key=value`` with dotted keys and win over it.

    Paths are taken from the folder of the file.
    """
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} is not TOML: {error}") from None
    for change in changes:
        _change(held, change)
    try:
        settings = PipelineSettings.model_validate(held, strict=False)
    except ValidationError as error:
        told = "\n".join(f"  {_told(one)}" for one in error.errors())
        raise PipelineError(f"{path} cannot be used:\n{told}") from None
    return _rooted(settings, path.absolute().parent)


def _change(held: dict[str, Any], change: str) -> None:
    key, sign, text = change.partition("=")
    if not sign or not key:
        raise PipelineError(f"--set {change!r}: expected key=value, as in matching.mode=sharded")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word is a text
    *sections, name = key.strip().split(".") if not key.startswith("spark.") else ["spark", key]
    for section in sections:
        held = held.setdefault(section, {})
        if not isinstance(held, dict):
            raise PipelineError(f"--set {change!r}: {section!r} is not a section")
    held[name] = value


def _told(error: Any) -> str:
    """One mistake in words: where, what was given, what was expected."""
    place = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        close = get_close_matches(str(error["loc"][-1]), _names_beside(error["loc"]), 1)
        return f"{place}: there is no such setting" + (
            f"; did you mean {close[0]!r}?" if close else ""
        )
    if error["type"] == "missing":
        return f"{place}: is missing"
    said = str(error["msg"]).removeprefix("Value error, ")
    given = error["input"]
    shown = f" ({given!r} was given)" if not isinstance(given, dict) else ""
    return f"{place}: {said[0].lower()}{said[1:]}{shown}"


def _names_beside(place: Sequence[Any]) -> list[str]:
    """The settings of the section a mistake is in."""
    model: Any = PipelineSettings
    for part in place[:-1]:
        field = model.model_fields.get(part)
        if field is None or not isinstance(field.annotation, type):
            return []
        model = field.annotation
    return [field.alias or name for name, field in model.model_fields.items()]


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
