"""Deliveries: who may make which now, and what came of it.

A delivery is *waiting*, or *sending* while a sender has a lease on it, and in the end *sent*,
*dead* or *skipped*. Only the sender that has the lease may change it; a lease that ran out is
anybody's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, exists, insert, select, update

from tamis.storage.circuits import Verdict, judge_circuits, probed, take_probe
from tamis.storage.database import Database
from tamis.storage.figures import count_attempts
from tamis.storage.tables import (
    attempts,
    circuits,
    deliveries,
    moment,
    notifications,
    owners,
    subscriptions,
)

_ROUNDS = 4  # of looking for deliveries to other destinations


class Claim(NamedTuple):
    """A delivery that a sender has the lease of.

    ``row`` is the notification with the delivery's ``address`` and ``attempts``, and with what its
    subscription is now (``current_owner``, ``is_paused``, ``settings``, ``spelling``: None where it
    is gone) and the ``webhook_secret`` of its owner.
    """

    number: int
    transport: str
    destination: str
    is_probe: bool
    row: Row[Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a claim: the state the delivery has now, and the attempt for the log, if any."""

    claim: Claim
    state: str
    next_at: datetime
    problem: str | None = None
    outcome: str | None = None
    status: int | None = None
    at: datetime | None = None
    took_ms: int = 0
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Appetite:
    """How much a sender can take: so many in all, and so many for one destination at a time."""

    most: int
    most_each: int
    under_way: Mapping[str, int]


class Leases:
    """The deliveries as one sender sees them; ``sender`` is a name nobody else has."""

    def __init__(self, database: Database, sender: str) -> None:
        self.database = database
        self.sender = sender

    def claim(self, appetite: Appetite, now: datetime, until: datetime) -> list[Claim]:
        """Take deliveries that are due, the highest priority first, until a moment."""
        chosen: dict[int, str] = {}
        with self.database.reading() as connection:
            if connection.execute(_due(now).limit(1)).first() is None:
                return []
            if self.database.is_sqlite:  # looking takes long where one destination has a backlog
                chosen = _choose(connection, appetite, now)
        with self.database.writing() as connection:
            if self.database.is_sqlite:
                chosen = _still_waiting(connection, chosen)
            else:
                chosen = _choose(connection, appetite, now, lock=True)
            probes = probed(connection, now) & set(chosen.values())
            lost = {one for one in probes if not take_probe(connection, one, now, until)}
            taken = [number for number, destination in chosen.items() if destination not in lost]
            self._lease(connection, taken, now, until)
        with self.database.reading() as connection:
            return _read(connection, taken, probes)

    def _lease(
        self, connection: Connection, numbers: Sequence[int], now: datetime, until: datetime
    ) -> None:
        leased = {
            "state": "sending",
            "attempts": deliveries.c.attempts + 1,
            "lease_by": self.sender,
            "lease_until": moment(until),
            "updated_at": moment(now),
        }
        if numbers:
            connection.execute(
                update(deliveries).where(deliveries.c.number.in_(numbers)).values(leased)
            )

    def renew(self, numbers: Iterable[int], until: datetime) -> set[int]:
        """Have leases longer; those that still are this sender's are returned."""
        with self.database.writing() as connection:
            found = connection.execute(
                update(deliveries)
                .where(deliveries.c.number.in_(list(numbers)), *self._mine())
                .values(lease_until=moment(until))
                .returning(deliveries.c.number)
            )
            return set(found.scalars())

    def give_back(self, numbers: Iterable[int], now: datetime) -> None:
        """Let others have deliveries that this sender will not make; no attempt is counted."""
        returned = {
            "state": "waiting",
            "attempts": deliveries.c.attempts - 1,
            "next_at": moment(now),
            "lease_by": None,
            "lease_until": None,
        }
        with self.database.writing() as connection:
            connection.execute(
                update(deliveries)
                .where(deliveries.c.number.in_(list(numbers)), *self._mine())
                .values(returned)
            )

    def finish(self, results: Sequence[Result], now: datetime) -> None:
        """Write down what came of claims; a delivery whose lease was lost keeps its state."""
        changed = (
            update(deliveries)
            .where(deliveries.c.number == bindparam("of"), *self._mine())
            .values(
                state=bindparam("to"), next_at=bindparam("then"), problem=bindparam("why"),
                lease_by=None, lease_until=None, updated_at=moment(now),
            )
        )  # fmt: skip
        with self.database.writing() as connection:
            connection.execute(
                changed,
                [
                    {
                        "of": one.claim.number,
                        "to": one.state,
                        "then": moment(one.next_at),
                        "why": one.problem,
                    }
                    for one in sorted(results, key=lambda one: one.claim.number)
                ],
            )
            logged = [_attempt(one) for one in results if one.outcome is not None]
            if logged:
                connection.execute(insert(attempts), logged)
            judge_circuits(
                connection,
                [
                    (one.claim.destination, one.claim.is_probe, one.verdict)
                    for one in results
                    if one.verdict is not None
                ],
                now,
            )
            count_attempts(connection, ((one["transport"], one["outcome"]) for one in logged))

    def _mine(self) -> tuple[Any, Any]:
        return deliveries.c.lease_by == self.sender, deliveries.c.state == "sending"


def take_back(database: Database, now: datetime, max_attempts: int, most: int = 1_000) -> int:
    """Let deliveries wait again whose sender let the lease run out; how many there were."""
    lost = (
        select(deliveries)
        .where(deliveries.c.state == "sending", deliveries.c.lease_until <= moment(now))
        .limit(most)
    )
    with database.reading() as connection:
        if connection.execute(lost.limit(1)).first() is None:
            return 0
    with database.writing() as connection:
        rows = connection.execute(lost.with_for_update(skip_locked=True)).all()
        for row in rows:
            _take_back(connection, row, now, max_attempts)
        count_attempts(connection, ((row.transport, "lost") for row in rows))
    return len(rows)


def _take_back(connection: Connection, row: Row[Any], now: datetime, max_attempts: int) -> None:
    # It may have been sent: the sender did not live to say so.
    problem = "the sender did not say what came of it"
    connection.execute(
        update(deliveries)
        .where(deliveries.c.number == row.number)
        .values(
            state="waiting" if row.attempts < max_attempts else "dead",
            next_at=moment(now), problem=problem, lease_by=None, lease_until=None,
            updated_at=moment(now),
        )
    )  # fmt: skip
    logged = {
        "delivery": row.number, "notification_id": row.notification_id,
        "transport": row.transport, "attempt": row.attempts, "at": row.updated_at, "took_ms": 0,
        "outcome": "lost", "problem": problem,
    }  # fmt: skip
    connection.execute(insert(attempts), logged)


def _choose(
    connection: Connection, appetite: Appetite, now: datetime, *, lock: bool = False
) -> dict[int, str]:
    """The deliveries that a sender should make next, each with its destination.

    With ``lock`` those that another sender is just choosing are passed over.
    """
    load = Counter(appetite.under_way)
    most_of = defaultdict(lambda: appetite.most_each, dict.fromkeys(probed(connection, now), 1))
    chosen: dict[int, str] = {}
    for _ in range(_ROUNDS):
        full = [one for one, n in load.items() if n >= most_of[one]]
        query = _due(now, full, list(chosen)).limit(appetite.most - len(chosen))
        if lock:
            query = query.with_for_update(of=deliveries, skip_locked=True)
        found = connection.execute(query).all()
        n_before = len(chosen)
        for number, destination in found:
            if load[destination] < most_of[destination]:
                load[destination] += 1
                chosen[number] = destination
        if len(chosen) - n_before == len(found):
            break  # there is no more, or no room for more
    return chosen


def _still_waiting(connection: Connection, chosen: Mapping[int, str]) -> dict[int, str]:
    """Those of some deliveries that nobody took meanwhile, in the same order."""
    waiting = select(deliveries.c.number).where(
        deliveries.c.number.in_(list(chosen)), deliveries.c.state == "waiting"
    )
    left = set(connection.execute(waiting).scalars())
    return {number: destination for number, destination in chosen.items() if number in left}


def _due(now: datetime, full: Sequence[str] = (), chosen: Sequence[int] = ()) -> Any:
    """Deliveries whose time has come, but not to full destinations or to such that rest."""
    at = moment(now)
    rests = exists().where(
        circuits.c.destination == deliveries.c.destination, circuits.c.open_until > at
    )
    return (
        select(deliveries.c.number, deliveries.c.destination)
        .where(
            deliveries.c.state == "waiting",
            deliveries.c.next_at <= at,
            deliveries.c.destination.not_in(full),
            deliveries.c.number.not_in(chosen),
            ~rests,
        )
        .order_by(deliveries.c.priority, deliveries.c.next_at, deliveries.c.number)
    )


def _read(connection: Connection, numbers: Sequence[int], probes: set[str]) -> list[Claim]:
    one, told, current = deliveries.c, notifications.c, subscriptions.c
    query = (
        select(
            one.number.label("delivery"), one.transport, one.address, one.destination,
            one.attempts, one.expires_at, notifications,
            current.owner.label("current_owner"), current.is_paused,
            current.delivery.label("settings"), current.spelling, owners.c.webhook_secret,
        )
        .select_from(
            deliveries.join(notifications, one.notification_id == told.id)
            .outerjoin(subscriptions, told.subscription_id == current.id)
            .outerjoin(owners, owners.c.owner == told.owner)
        )
        .where(one.number.in_(numbers))
        .order_by(one.priority, one.next_at, one.number)
    )  # fmt: skip
    rows = connection.execute(query).all() if numbers else []
    return [
        Claim(row.delivery, row.transport, row.destination, row.destination in probes, row)
        for row in rows
    ]


def _attempt(result: Result) -> dict[str, Any]:
    claim = result.claim
    return {
        "delivery": claim.number,
        "notification_id": claim.row.id,
        "transport": claim.transport,
        "attempt": claim.row.attempts,
        "at": moment(result.at),
        "took_ms": result.took_ms,
        "outcome": result.outcome,
        "status": result.status,
        "problem": result.problem,
    }
