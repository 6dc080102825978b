"""Statements straight to the driver: for what every request does, in the fewest steps.

What SQLAlchemy does around a statement takes longer than a small statement does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection

_NAME = re.compile(r":([a-z_]+)")

Values = Mapping[str, Any] | Sequence[Any]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as the driver of each database wants it spelt."""

    sqlite: str
    postgresql: str


def statement(text: str, *, postgresql: str | None = None) -> Statement:
    """A statement whose values are written ``:name``; ``postgresql`` where it is another.

    >>> statement("SELECT last FROM counters WHERE name = :name").postgresql
    'SELECT last FROM counters WHERE name = %(name)s'
    """
    return Statement(text, _NAME.sub(r"%(\1)s", text if postgresql is None else postgresql))


class Direct(Protocol):
    """A transaction on a connection of the driver's."""

    is_sqlite: bool

    def all(self, statement: Statement, values: Values) -> Rows:
        """The rows of a statement that returns some."""

    def later(self, statement: Statement, values: Values) -> None:
        """Execute a statement before the end, after those that were asked for before it."""


class SqliteDirect:
    """A transaction of SQLite, which has no way to go to the database: later is at once."""

    is_sqlite = True

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.is_committing = False

    def all(self, statement: Statement, values: Values) -> Rows:
        """The rows of a statement."""
        rows: Rows = self._driver.execute(statement.sqlite, values).fetchall()
        return rows

    def later(self, statement: Statement, values: Values) -> None:
        """Execute a statement."""
        self._driver.execute(statement.sqlite, values)

    def insert(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row."""
        self._driver.executemany(text, rows)

    def begin(self) -> None:
        """Begin; nobody else writes until the end."""
        self._driver.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End, for good."""
        self.is_committing = True
        self._driver.execute("COMMIT")

    @property
    def is_open(self) -> bool:
        """Whether the transaction has not ended: some errors end it."""
        return bool(self._driver.in_transaction)

    def mark(self) -> None:
        """What comes from here on can be taken back without the rest."""
        self._driver.execute("SAVEPOINT mark")

    def back_to_mark(self) -> None:
        """Take back what came since the mark, which stays."""
        self._driver.execute("ROLLBACK TO mark")

    def drop_mark(self) -> None:
        """What came since the mark is as the rest."""
        self._driver.execute("RELEASE mark")


def insert_rows(
    direct: Direct, into: str, rows: Sequence[Sequence[Any]], on_conflict: str = ""
) -> None:
    """Insert rows in SQLite, of which there may be none; ``into`` is a table with its columns."""
    assert isinstance(direct, SqliteDirect)
    if rows:
        marks = ", ".join(["?"] * len(rows[0]))
        direct.insert(f"INSERT INTO {into} VALUES ({marks}) {on_conflict}", rows)


class PostgresqlDirect:
    """A transaction of PostgreSQL in few ways to the server and back.

    The first statement goes with BEGIN, and what can wait goes with COMMIT: a lock that is taken
    there is held no longer than the server itself needs.
    """

    is_sqlite = False

    def __init__(self, driver: Any, *, can_wait: bool = True) -> None:
        self._driver = driver
        self.is_committing = False
        self._can_wait = can_wait
        self._has_to_begin = False
        self._waiting: list[tuple[str, Values]] = []

    def all(self, statement: Statement, values: Values) -> Rows:
        """The rows of a statement."""
        if self._has_to_begin:
            self._has_to_begin = False
            with self._driver.pipeline():
                self._driver.execute("BEGIN")
                rows: Rows = self._driver.execute(statement.postgresql, values).fetchall()
        else:
            rows = self._driver.execute(statement.postgresql, values).fetchall()
        return rows

    def later(self, statement: Statement, values: Values) -> None:
        """Execute a statement with the commit, if that is ours to do."""
        if self._can_wait:
            self._waiting.append((statement.postgresql, values))
        else:
            self._driver.execute(statement.postgresql, values)

    def execute(self, statement: Statement) -> None:
        """Execute a statement now; not the first of a transaction."""
        self._driver.execute(statement.postgresql)

    def copy(self, table: str, columns: Sequence[str], text: bytes) -> None:
        """Put rows into a table; not the first thing of a transaction."""
        with (
            self._driver.cursor() as cursor,
            cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy,
        ):
            copy.write(text)

    def begin(self) -> None:
        """Begin with the first statement."""
        self._has_to_begin = True

    def commit(self) -> None:
        """Execute what waits, and end for good."""
        self.is_committing = True
        with self._driver.pipeline():
            for text, values in self._waiting:
                self._driver.execute(text, values)
            self._driver.execute("COMMIT")


def direct_of(connection: Connection) -> Direct:
    """The same for a transaction that SQLAlchemy has begun, and ends."""
    driver = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return SqliteDirect(driver)
    return PostgresqlDirect(driver, can_wait=False)
