"""Circuits: a destination that fails again and again rests, and is then tried with one delivery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select, update

from tamis.storage.statements import upsert
from tamis.storage.tables import circuits, moment


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt says of its destination.

    It answered, or it failed: after ``threshold`` failures in a row it rests for ``rest``, and for
    twice as long after every probe that fails, up to ``longest``. ``until`` is when it asked to be
    left alone.
    """

    is_well: bool
    threshold: int = 1
    rest: timedelta = timedelta()
    longest: timedelta = timedelta()
    until: datetime | None = None


def probed(connection: Connection, now: datetime) -> set[str]:
    """The destinations that have rested, and are to be tried with one delivery."""
    rested = select(circuits.c.destination).where(circuits.c.open_until <= moment(now))
    return set(connection.execute(rested).scalars())


def take_probe(connection: Connection, destination: str, now: datetime, until: datetime) -> bool:
    """Be the one who tries a destination; for all others it rests until a moment."""
    taken = connection.execute(
        update(circuits)
        .where(circuits.c.destination == destination, circuits.c.open_until <= moment(now))
        .values(open_until=moment(until), updated_at=moment(now))
        .returning(circuits.c.destination)
    )
    return taken.first() is not None


def judge_circuits(
    connection: Connection, verdicts: Iterable[tuple[str, bool, Verdict]], now: datetime
) -> None:
    """Take in what attempts say of their destinations: (destination, was it a probe, verdict)."""
    given: dict[str, list[tuple[bool, Verdict]]] = {}
    for destination, is_probe, verdict in verdicts:
        given.setdefault(destination, []).append((is_probe, verdict))
    # Always in the same order, so that two senders never wait for each other.
    for destination in sorted(given):
        said = given[destination]
        if any(verdict.is_well for _, verdict in said):
            connection.execute(delete(circuits).where(circuits.c.destination == destination))
        else:
            _count_failures(connection, destination, said, now)


def _count_failures(
    connection: Connection, destination: str, said: list[tuple[bool, Verdict]], now: datetime
) -> None:
    at = moment(now)
    new = upsert(connection, circuits).values(destination=destination, failures=0, updated_at=at)
    connection.execute(new.on_conflict_do_nothing(index_elements=["destination"]))
    is_this = circuits.c.destination == destination
    row = connection.execute(select(circuits).where(is_this).with_for_update()).one()
    is_probe = any(was_probe for was_probe, _ in said)
    if row.open_until is not None and row.open_until > at and not is_probe:
        return  # these were under way when it began to rest
    verdict = said[-1][1]
    failures = row.failures + 1 if is_probe else min(row.failures + len(said), verdict.threshold)
    until = _rest_until(failures, [one for _, one in said], now)
    changed: dict[str, Any] = {"failures": failures, "open_until": until, "updated_at": at}
    connection.execute(update(circuits).where(is_this).values(changed))


def _rest_until(failures: int, verdicts: list[Verdict], now: datetime) -> str | None:
    verdict = verdicts[-1]
    ends = [one.until for one in verdicts if one.until is not None]
    if failures >= verdict.threshold:
        doubled = verdict.rest * 2 ** min(failures - verdict.threshold, 30)
        ends.append(now + min(doubled, verdict.longest))
    return moment(max(ends)) if ends else None
