"""The change log: which subscriptions changed, in the order the changes were committed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Row, func, select

from tamis.storage.database import Database
from tamis.storage.direct import Direct, insert_rows, statement
from tamis.storage.tables import changes, moment, subscriptions

if TYPE_CHECKING:
    import psycopg

_CHANNEL = "tamis_changes"
_POLL_S = 0.05
_LONGEST_WAIT_S = 1.0  # between looks at the table, also where the database tells us
_LAST = statement("SELECT last FROM counters WHERE name = 'changes'")
_AT = statement("SELECT id, at FROM changes WHERE sequence = :sequence")
_RAISE_BY_ONE = statement("UPDATE counters SET last = last + 1 WHERE name = 'changes'")
_LOG_ONE = statement(
    "INSERT INTO changes (sequence, id, at) "
    "SELECT last, :id, :at FROM counters WHERE name = 'changes'",
    postgresql="WITH raised AS (UPDATE counters SET last = last + 1 WHERE name = 'changes' "
    "RETURNING last), logged AS (INSERT INTO changes (sequence, id, at) "
    "SELECT last, :id, :at FROM raised) "
    "SELECT pg_notify(:channel, CAST(last AS text)) FROM raised",
)
_RAISE = statement("UPDATE counters SET last = last + :n WHERE name = 'changes' RETURNING last")
# One statement however many there are: every other is a way to the server and back.
_LOG_MANY = statement(
    "",
    postgresql="WITH raised AS (UPDATE counters SET last = last + :n WHERE name = 'changes' "
    "RETURNING last), logged AS (INSERT INTO changes (sequence, id, at) "
    "SELECT raised.last - :n + place, id, :at FROM raised, "
    "unnest(CAST(:ids AS text[])) WITH ORDINALITY AS given (id, place)) "
    "SELECT pg_notify(:channel, CAST(last AS text)) FROM raised",
)


def log_change(direct: Direct, id: str) -> None:
    """Write one change down with the commit, to be called last in the transaction that makes it.

    The counter's row stays locked until the commit, so sequences are committed in their order
    and none is left out.
    """
    if direct.is_sqlite:
        direct.later(_RAISE_BY_ONE, {})
    direct.later(_LOG_ONE, {"id": id, "at": moment(), "channel": _CHANNEL})


def log_changes(direct: Direct, ids: Sequence[str]) -> None:
    """``log_change`` for many subscriptions, each of which is there once."""
    if not ids:
        return
    at, n = moment(), len(ids)
    if direct.is_sqlite:
        ((last,),) = direct.all(_RAISE, {"n": n})
        rows = [(number, id, at) for number, id in enumerate(ids, last - n + 1)]
        insert_rows(direct, "changes (sequence, id, at)", rows)
    else:
        direct.later(_LOG_MANY, {"n": n, "ids": list(ids), "at": at, "channel": _CHANNEL})


class LoggedChange(NamedTuple):
    """A subscription that changed, and how it is now: its row, or None if it must not match."""

    sequence: int
    id: str
    row: Row[Any] | None


class ChangeLog:
    """The changes in a database, for those who follow them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def last(self) -> int:
        """The sequence of the last change; 0 if there is none."""
        ((found,),) = self.database.ask(_LAST, {})
        return int(found)

    def at(self, sequence: int) -> tuple[str, str] | None:
        """Whose change a sequence is, and its moment; None if there is no such change."""
        rows = self.database.ask(_AT, {"sequence": sequence})
        return (rows[0][0], rows[0][1]) if rows else None

    def after(self, sequence: int, most: int | None = None) -> list[LoggedChange]:
        """The subscriptions that changed after a sequence, each with its last change, in order.

        All of it is of one state of the database: every change up to the last sequence that is
        returned is in it, and none later. With ``most`` only so many changes are looked at, and
        what changed once more after them is there as it is now.
        """
        chosen = changes.c.sequence > sequence
        if most is not None:
            chosen &= changes.c.sequence <= sequence + most
        latest = (
            select(changes.c.id, func.max(changes.c.sequence).label("sequence"))
            .where(chosen)
            .group_by(changes.c.id)
            .subquery()
        )
        present = subscriptions.c.id == latest.c.id
        query = (
            select(latest.c.sequence, latest.c.id.label("changed"), subscriptions)
            .select_from(latest.outerjoin(subscriptions, present))
            .order_by(latest.c.sequence)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            LoggedChange(row.sequence, row.changed, None if row.is_paused in (None, True) else row)
            for row in rows
        ]

    @contextmanager
    def watching(self) -> Iterator[Watch]:
        """Something that waits for changes."""
        watch = Watch(self)
        try:
            yield watch
        finally:
            watch.close()


class Watch:
    """Waits for changes: told by PostgreSQL, by looking again and again in SQLite."""

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        self._listener: psycopg.Connection | None = None

    def wait(self, sequence: int, timeout_s: float) -> int:
        """The last sequence, as soon as it is above ``sequence`` or the time is over."""
        until = time.monotonic() + timeout_s
        while (last := self._log.last()) <= sequence and (left := until - time.monotonic()) > 0:
            self._pause(min(left, _LONGEST_WAIT_S))
        return last

    def close(self) -> None:
        """End the connection that listens."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _pause(self, longest_s: float) -> None:
        if self._log.database.is_sqlite:
            time.sleep(min(longest_s, _POLL_S))
            return
        import psycopg

        try:
            if self._listener is None:
                # A change between the last look and this line is found by the next look.
                longest_s = 0
                self._listener = _listen(self._log.database)
            for _ in self._listener.notifies(timeout=longest_s, stop_after=1):
                pass
        except psycopg.OperationalError:  # the database is away: looking will tell
            self.close()
            time.sleep(min(longest_s, _POLL_S))


def _listen(database: Database) -> psycopg.Connection:
    import psycopg

    address = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection = psycopg.connect(address, autocommit=True, connect_timeout=5)
    connection.execute(f"LISTEN {_CHANNEL}")
    return connection
