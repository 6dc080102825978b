"""Database: one place for everything that must not be lost, in SQLite or PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    insert,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from tamis.errors import MissingExtra, StorageError, StorageUnavailable, quoted
from tamis.storage.tables import COUNTERS, counters

if TYPE_CHECKING:
    from alembic.config import Config

_BUSY_S = 30
_CONNECT_S = 5
_MIGRATING = 0x74616D6A  # the lock of those who make the tables, in PostgreSQL


class Database:
    """A database of Tamis; ``url`` is ``sqlite:///path`` or ``postgresql://user@host/name``.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> database = Database(f"sqlite:///{folder.name}/tamis.db")
    >>> database.migrate()
    >>> database.close(); folder.cleanup()

    ``reading`` and ``writing`` give a connection inside a transaction, which is committed at the
    end, or taken back if something is raised. Both may be used by many threads. Connections are
    kept for the next transaction until ``close``; with ``keep=False`` none is.
    """

    def __init__(self, url: str, *, keep: bool = True) -> None:
        self.url = _parse(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        make_engine = _sqlite_engine if self.is_sqlite else _postgresql_engine
        self._engine = make_engine(self.url, {} if keep else {"poolclass": NullPool})
        # SQLite lets one write at a time, and those who wait sleep; here they queue.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()

    def migrate(self) -> None:
        """Make the tables, or bring them up to date with this version of Tamis."""
        from alembic import command
        from alembic.script.revision import ResolutionError
        from alembic.util import CommandError

        config = _migrations()
        try:
            with self.writing() as connection:
                if not self.is_sqlite:  # two services that start at once would both make tables
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
                _make_counters(connection)
        except (CommandError, ResolutionError) as error:
            raise StorageError(
                f"the database {self.name} was made by a newer version of Tamis ({error}); "
                "use that version, or another database"
            ) from None

    def state(self) -> Literal["empty", "older", "current", "newer"]:
        """Of which version of Tamis the tables are; looks, and changes nothing."""
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        scripts = ScriptDirectory.from_config(_migrations())
        known = [script.revision for script in scripts.walk_revisions()]  # the newest first
        with self.reading() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
        if found is None:
            return "empty"
        if found not in known:
            return "newer"
        return "current" if found == known[0] else "older"

    @property
    def name(self) -> str:
        """The address without a password, for people to read."""
        return self.url.render_as_string(hide_password=True).replace("+psycopg", "", 1)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads, and sees one state of the database from beginning to end."""
        with self._failing_clearly(), self._engine.connect() as connection:
            if not self.is_sqlite:
                connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may change the database."""
        with self._turn, self._failing_clearly(), self._engine.connect() as connection:
            connection.execution_options(tamis_writes=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        """End all connections."""
        self._engine.dispose()

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            raise StorageUnavailable(
                f"the database {self.name} cannot be used now: {_cause(error)}"
            ) from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise StorageUnavailable(
                    f"the database {self.name} went away: {_cause(error)}"
                ) from error
            raise


def _migrations() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("tamis.storage") / "migrations"))
    return config


def _make_counters(connection: Connection) -> None:
    known = set(connection.execute(select(counters.c.name)).scalars())
    for name in COUNTERS:
        if name not in known:
            connection.execute(insert(counters).values(name=name, last=0))


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is not None and parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed is not None and parsed.drivername == "sqlite" and parsed.database not in _NO_FILE:
        return parsed
    raise StorageError(
        f"the database {quoted(_without_user(url))} is not known; expected sqlite:///path or "
        "postgresql://user@host/name"
    )


def _without_user(url: str) -> str:
    """An address that may have a password in it, as it may be shown.

    >>> _without_user("mysql://zoe:p@ss@db/tamis")
    'mysql://…@db/tamis'
    """
    return re.sub("(?<=://).*@", "…@", url)


_NO_FILE = (None, "", ":memory:")


def _sqlite_engine(url: URL, options: dict[str, Any]) -> Engine:
    folder = Path(str(url.database)).absolute().parent
    if not folder.is_dir():
        raise StorageError(f"there is no folder {folder} for the database; make it first")
    engine = create_engine(url, connect_args={"timeout": _BUSY_S}, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could not wait its turn.
        writes = connection.get_execution_options().get("tamis_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql_engine(url: URL, options: dict[str, Any]) -> Engine:
    pool = options or {"pool_size": 8, "max_overflow": 8, "pool_timeout": _CONNECT_S}
    arguments = {"connect_timeout": _CONNECT_S}
    try:
        return create_engine(url, pool_pre_ping=True, connect_args=arguments, **pool)
    except ImportError as error:
        raise MissingExtra(
            f"PostgreSQL needs psycopg ({error}). Install it: pip install 'tamis[service]'"
        ) from error


def _cause(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())
