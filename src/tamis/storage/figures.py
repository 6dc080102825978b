"""Figures of deliveries: what to watch, read without looking at what was sent long ago.

Attempts are counted in the transaction that logs them, one row of ``counters`` for each transport
and outcome. What waits and what is dead is counted by an index, as far as there is any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from tamis.storage.database import Database
from tamis.storage.statements import upsert
from tamis.storage.tables import circuits, counters, deliveries, moment

_PREFIX = "attempts/"
_PRIORITIES = range(10)
_MOST_DESTINATIONS = 20


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination that failed of late; it rests while it ``is_open``."""

    destination: str
    is_open: bool
    failures: int


@dataclass(frozen=True, slots=True)
class Figures:
    """How deliveries stand.

    ``waiting`` are those that are not over, with those under way; ``oldest_waiting_s`` is how long
    the longest overdue of them is overdue. ``attempts`` counts all attempts there ever were, by
    transport and outcome.
    """

    waiting: int
    dead: int
    oldest_waiting_s: float
    attempts: Mapping[tuple[str, str], int]
    destinations: list[Destination]

    def count(self, *outcomes: str) -> int:
        """How many attempts had one of these outcomes."""
        return sum(n for (_, outcome), n in self.attempts.items() if outcome in outcomes)

    @property
    def sent(self) -> int:
        """How many attempts were taken."""
        return self.count("sent")

    @property
    def failed(self) -> int:
        """How many were not, or nobody knows whether they were."""
        return self.count("failed", "refused", "lost")


def read_figures(database: Database, now: datetime) -> Figures:
    """The figures of a moment."""
    with database.reading() as connection:
        states = _count_states(connection)
        return Figures(
            states.get("waiting", 0) + states.get("sending", 0),
            states.get("dead", 0),
            _oldest_waiting_s(connection, now),
            _read_attempts(connection),
            _read_destinations(connection, now),
        )


def count_attempts(connection: Connection, made: Iterable[tuple[str, str]]) -> None:
    """Count attempts by transport and outcome; the last thing a transaction does.

    Whoever counts the same waits for the end of this transaction, so it should be near.
    """
    counted: dict[str, int] = {}
    for transport, outcome in made:
        name = f"{_PREFIX}{transport}/{outcome}"
        counted[name] = counted.get(name, 0) + 1
    # Always in the same order, so that two senders never wait for each other.
    for name in sorted(counted):
        new = upsert(connection, counters).values(name=name, last=counted[name])
        more = {"last": counters.c.last + counted[name]}
        connection.execute(new.on_conflict_do_update(index_elements=["name"], set_=more))


def _count_states(connection: Connection) -> dict[str, int]:
    state = deliveries.c.state
    query = select(state, func.count()).where(state.in_(("waiting", "sending", "dead")))
    return {row[0]: row[1] for row in connection.execute(query.group_by(state))}


def _oldest_waiting_s(connection: Connection, now: datetime) -> float:
    """One look into the index for each priority."""
    held = deliveries.c
    firsts = [
        connection.execute(
            select(func.min(held.next_at)).where(held.state == "waiting", held.priority == priority)
        ).scalar_one()
        for priority in _PRIORITIES
    ]
    since = min((first for first in firsts if first is not None), default=None)
    if since is None:
        return 0.0
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())


def _read_attempts(connection: Connection) -> dict[tuple[str, str], int]:
    query = select(counters).where(counters.c.name.startswith(_PREFIX))
    found = {}
    for name, count in connection.execute(query):
        transport, _, outcome = name.removeprefix(_PREFIX).partition("/")
        found[transport, outcome] = count
    return found


def _read_destinations(connection: Connection, now: datetime) -> list[Destination]:
    """Those that failed most often in a row."""
    query = select(circuits).order_by(circuits.c.failures.desc(), circuits.c.destination)
    at = moment(now)
    return [
        Destination(row.destination, (row.open_until or "") > at, row.failures)
        for row in connection.execute(query.limit(_MOST_DESTINATIONS))
    ]
