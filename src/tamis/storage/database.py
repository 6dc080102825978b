"""Database: one place for everything that must not be lost, in SQLite or PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

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
from sqlalchemy.pool import NullPool, PoolProxiedConnection

from tamis.errors import MissingExtra, StorageError, StorageUnavailable, quoted
from tamis.storage.direct import (
    Direct,
    PostgresqlDirect,
    Rows,
    SqliteDirect,
    Statement,
    Values,
)
from tamis.storage.group_commit import GroupCommit
from tamis.storage.tables import COUNTERS, counters

if TYPE_CHECKING:
    from alembic.config import Config

_T = TypeVar("_T")

_BUSY_S = 30
_CONNECT_S = 5
# One for each thread of a service; to open another for a moment costs more than to keep it.
_POOL = {"pool_size": 20, "max_overflow": 12}
_MOST_AT_HAND = 8  # connections that are not given back to the pool, as that takes long
# The log is written back after 8,000 pages (32 MB) instead of 1,000: pages that many commits
# change, as those of an index during an import, are written and synced once for all of them.
_PRAGMAS = (
    "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "wal_autocheckpoint=8000",
)  # fmt: skip
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SHOWN = frozenset({"dbname", "host", "port", "user"})  # of an address; others may be secret
_MIGRATING = 0x74616D6A  # the lock of those who make the tables, in PostgreSQL


class Database:
    """A database of Tamis; ``url`` is ``sqlite:///path`` or ``postgresql://user@host/name``.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> database = Database(f"sqlite:///{folder.name}/tamis.db")
    >>> database.migrate()
    >>> database.close(); folder.cleanup()

    ``reading`` and ``writing`` give a connection inside a transaction, which is committed at the
    end, or taken back if something is raised. ``ask`` and ``change`` do the same in fewer steps,
    without SQLAlchemy, for what every request does. All may be used by many threads. Connections
    are kept for the next transaction until ``close``; with ``keep=False`` none is.

    That a connection was lost since it was last used is noticed by the first statement, before
    anything is done; the transaction then begins again on a new one.
    """

    def __init__(self, url: str, *, keep: bool = True) -> None:
        self.url = _parse(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        make_engine = _sqlite_engine if self.is_sqlite else _postgresql_engine
        self._engine = make_engine(self.url, {} if keep else {"poolclass": NullPool})
        self._make_direct = SqliteDirect if self.is_sqlite else PostgresqlDirect
        self._driver_error: type[Exception] = self._engine.dialect.loaded_dbapi.Error
        # SQLite lets one write at a time, and those who wait sleep; here they queue.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()
        self._group = GroupCommit(self._transact) if self.is_sqlite else None
        self._at_hand: list[PoolProxiedConnection] = []
        self._most_at_hand = _MOST_AT_HAND if keep else 0

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
        shown = {name: held for name, held in self.url.query.items() if name in _SHOWN}
        text = self.url.set(query=shown).render_as_string(hide_password=True)
        return text.replace("+psycopg", "", 1)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads, and sees one state of the database from beginning to end."""
        with self._failing_clearly(), self._begin(writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may change the database."""
        with self._turn, self._failing_clearly(), self._begin(writes=True) as connection:
            yield connection

    def ask(self, statement: Statement, values: Values) -> Rows:
        """The rows of one statement that only reads: by itself it is a transaction."""
        return self._directly(lambda direct: direct.all(statement, values))

    def change(self, work: Callable[[Direct], _T]) -> _T:
        """What ``work`` returns, which may change the database, in one transaction.

        In SQLite that may be done by another thread, together with what others change: what raises
        changes nothing, and nothing is returned before it is committed. If the connection is lost
        before the commit was sent, ``work`` is done once more.
        """
        if self._group is not None:
            made: _T = self._group.change(work)
            return made
        return self._transact(work)

    def _transact(self, work: Callable[[Any], _T]) -> _T:
        def do(direct: SqliteDirect | PostgresqlDirect) -> _T:
            direct.begin()
            made = work(direct)
            direct.commit()
            return made

        with self._turn:
            return self._directly(do)

    def close(self) -> None:
        """End all connections."""
        while self._at_hand:
            self._at_hand.pop().close()
        self._engine.dispose()

    @contextmanager
    def _begin(self, *, writes: bool) -> Iterator[Connection]:
        connection = self._connect(writes)
        try:
            transaction = connection.begin()
        except DBAPIError as error:
            connection.close()
            if not error.connection_invalidated:
                raise
            connection = self._connect(writes)
            transaction = connection.begin()
        with connection, transaction:
            yield connection

    def _connect(self, writes: bool) -> Connection:
        return self._engine.connect().execution_options(tamis_writes=writes)

    def _directly(self, use: Callable[[SqliteDirect | PostgresqlDirect], _T]) -> _T:
        """Use a connection of the driver's; what was not committed is taken back."""
        with self._failing_clearly():
            for is_last in (False, True):
                held = self._take()
                direct = self._make_direct(held.driver_connection)
                try:
                    made = use(direct)
                except BaseException as error:
                    if not self._let_go(held, error):
                        raise
                    if is_last or direct.is_committing:
                        raise self._went_away(error) from error
                else:
                    self._put_back(held)
                    return made
        raise AssertionError("the last time returns or raises")

    def _take(self) -> PoolProxiedConnection:
        try:
            return self._at_hand.pop()
        except IndexError:
            return self._engine.raw_connection()

    def _put_back(self, held: PoolProxiedConnection) -> None:
        if len(self._at_hand) < self._most_at_hand:
            self._at_hand.append(held)
        else:
            held.close()

    def _let_go(self, held: PoolProxiedConnection, error: BaseException) -> bool:
        """Give back a connection that failed; whether that was because it was lost."""
        dialect = self._engine.dialect
        if not dialect.is_disconnect(error, held.driver_connection, None):  # type: ignore[arg-type]
            held.close()
            return False
        self._at_hand.append(held)
        while self._at_hand:  # the others are as old as this one
            self._at_hand.pop().invalidate()
        self._engine.dispose()
        return True

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, self._driver_error) as error:
            told = self._told(error)
            if isinstance(told, OperationalError):
                raise StorageUnavailable(
                    f"the database {self.name} cannot be used now: {_cause(told)}"
                ) from error
            if told.connection_invalidated:
                raise self._went_away(told.orig) from error
            raise told from None

    def _told(self, error: Exception) -> DBAPIError:
        """The error as SQLAlchemy tells it, whoever raised it."""
        if isinstance(error, DBAPIError):
            return error
        told = DBAPIError.instance(None, None, error, self._driver_error)
        assert isinstance(told, DBAPIError)
        return told

    def _went_away(self, error: BaseException | None) -> StorageUnavailable:
        return StorageUnavailable(f"the database {self.name} went away: {_line(error)}")


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
    engine = create_engine(url, connect_args={"timeout": _BUSY_S}, **(options or _POOL))

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.create_function("casefold", 1, str.casefold, deterministic=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could not wait its turn.
        writes = connection.get_execution_options().get("tamis_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql_engine(url: URL, options: dict[str, Any]) -> Engine:
    pool = options or {**_POOL, "pool_timeout": _CONNECT_S}
    arguments = {"connect_timeout": _CONNECT_S}
    try:
        # As in SQLite, transactions begin where we say.
        engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args=arguments, **pool)
    except ImportError as error:
        raise MissingExtra(
            f"PostgreSQL needs psycopg ({error}). Install it: pip install 'tamis[service]'"
        ) from error

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tamis_writes", False)
        connection.exec_driver_sql("BEGIN" if writes else _BEGIN_READING)

    return engine


def _cause(error: DBAPIError) -> str:
    return _line(error.orig)


def _line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
