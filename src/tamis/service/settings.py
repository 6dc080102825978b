"""The settings of a service."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tamis.service.limits import Limits
from tamis.service.sending.settings import SenderSettings

__all__ = ["KafkaSettings", "ServiceSettings"]

_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A topic that takes the events instead of files; ``options`` are those of librdkafka."""

    servers: str
    topic: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Where a service keeps what it must not lose, and what it allows.

    ``data`` is the folder of the event log, and of the database if ``database`` names no other.
    Where ``sends`` a sender runs beside the API, by the settings ``sender``; these also say
    where subscriptions may have their notifications sent. ``pipeline`` is the settings file of the
    pipeline, if it is not the one in ``data``.

    A database of SQLite is taken from the working directory; whoever gets its address from here,
    as the pipeline in another folder does, finds the same.

    >>> ServiceSettings(Path("/var/lib/tamis")).database_url
    'sqlite:////var/lib/tamis/tamis.db'
    """

    data: Path
    database: str | None = None
    kafka: KafkaSettings | None = None
    limits: Limits = field(default_factory=Limits)
    sends: bool = False
    sender: SenderSettings = field(default_factory=SenderSettings)
    pipeline: Path | None = None
    n_recent_events: int = 10_000

    @property
    def database_url(self) -> str:
        """The address of the database."""
        if self.database is None:
            return f"{_SQLITE}{self.data.absolute()}/tamis.db"
        path = self.database.removeprefix(_SQLITE)
        is_file = path not in (self.database, "", ":memory:") and not path.startswith("file:")
        return f"{_SQLITE}{Path(path).absolute()}" if is_file else self.database

    @property
    def pipeline_file(self) -> Path:
        """The settings file of the pipeline."""
        return self.pipeline or self.data.absolute() / "pipeline.toml"

    @property
    def events(self) -> Path:
        """The folder of the event log."""
        return self.data.absolute() / "events"

    @property
    def index(self) -> Path:
        """The folder of the saved index, which may be lost."""
        return self.data.absolute() / "index"
