"""The subscriptions in a database: saved, changed and taken away, each change in the change log."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tamis.errors import (
    DuplicateSubscription,
    LimitReached,
    UnknownSubscription,
    VersionConflict,
    quoted,
)
from tamis.language import to_json
from tamis.model import Subscription
from tamis.model.subscription import CIRCLE
from tamis.storage.changes import log_changes
from tamis.storage.database import Database
from tamis.storage.tables import counters, moment, owners, subscriptions

_PAGE = 1_000
# Made once: to make a statement of so many columns takes longer than to execute it.
_ID = subscriptions.c.id == bindparam("wanted")
_READ = select(subscriptions).where(_ID)
_LOCK = _READ.with_for_update()  # nothing in SQLite, where the whole database is ours
_UPDATE = update(subscriptions).where(_ID)
_INSERTS = {
    name: dialect.insert(subscriptions)
    .on_conflict_do_nothing(index_elements=["id"])
    .returning(subscriptions.c.id)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_DIALECTS = (("sqlite", sqlite), ("postgresql", postgresql))
_ADD_OWNER: dict[str, Any] = {name: dialect.insert(owners) for name, dialect in _DIALECTS}
_COUNT = {
    name: made.on_conflict_do_update(
        index_elements=["owner"],
        set_={"n_subscriptions": owners.c.n_subscriptions + made.excluded.n_subscriptions},
    )
    for name, made in _ADD_OWNER.items()
}
_COUNT_BACK = {name: made.returning(owners.c.n_subscriptions) for name, made in _COUNT.items()}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Saved:
    """A subscription as it is saved.

    ``spelling`` is the filter as its owner wrote it, ``{"query": text}`` for query notation;
    ``version`` counts its changes from 1.
    """

    subscription: Subscription
    spelling: Any
    is_paused: bool = False
    version: int = 1
    created_at: str = ""
    updated_at: str = ""

    @property
    def id(self) -> str:
        """The id of the subscription."""
        return self.subscription.id

    @property
    def owner(self) -> str:
        """The owner of the subscription."""
        return self.subscription.owner


Edit = Callable[[Saved], Saved]


class SubscriptionStore:
    """The subscriptions in a database.

    Where an ``owner`` is given, the subscriptions of others are as if they were not there.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, saved: Saved, *, most: int | None = None) -> Saved:
        """Save a new subscription; its owner may have ``most`` of them."""
        with self.database.writing() as connection:
            return add(connection, saved, most)

    def get(self, id: str, owner: str | None = None) -> Saved:
        """The subscription with an id."""
        with self.database.reading() as connection:
            return _find(connection, id, owner)

    def change(
        self, id: str, edit: Edit, *, owner: str | None = None, if_version: int | None = None
    ) -> Saved:
        """Save what ``edit`` makes of a subscription; it may not change the id or the owner.

        With ``if_version`` only if it still has that version.
        """
        with self.database.writing() as connection:
            before = _find(connection, id, owner, lock=True)
            _check_version(before, if_version)
            made = replace(edit(before), version=before.version + 1, updated_at=moment())
            if (made.id, made.owner) != (before.id, before.owner):
                raise ValueError(f"an edit of {id!r} changed its id or owner")
            _store(connection, made)
        return made

    def put(
        self,
        id: str,
        make: Callable[[Saved | None], Saved],
        *,
        owner: str | None = None,
        if_version: int | None = None,
        if_absent: bool = False,
        most: int | None = None,
    ) -> tuple[Saved, bool]:
        """Save what ``make`` makes of the subscription that is there, or of None.

        With ``if_version`` only if it is there and has that version, with ``if_absent`` only if
        it is not there. Returns what was saved, and whether it is new.
        """
        with self.database.writing() as connection:
            before = _look(connection, id, lock=True)
            if before is not None and owner not in (None, before.owner):
                raise _taken(id)
            if before is None:
                if if_version is not None:
                    raise VersionConflict(f"there is no subscription {quoted(id)} to replace")
                return add(connection, make(None), most), True
            if if_absent:
                raise VersionConflict(f"there is a subscription {quoted(id)} already")
            _check_version(before, if_version)
            made = make(before)
            made = replace(
                made, version=before.version + 1, created_at=before.created_at, updated_at=moment()
            )
            if (made.id, made.owner) != (before.id, before.owner):
                raise _taken(id)
            _store(connection, made)
        return made, False

    def delete(self, id: str, *, owner: str | None = None, if_version: int | None = None) -> None:
        """Take a subscription away."""
        with self.database.writing() as connection:
            before = _find(connection, id, owner, lock=True)
            _check_version(before, if_version)
            connection.execute(delete(subscriptions).where(subscriptions.c.id == id))
            count_in(connection, before.owner, -1)
            log_changes(connection, [id])

    def page(
        self, owner: str | None = None, *, after: str = "", most: int = 100, search: str = ""
    ) -> list[Saved]:
        """The subscriptions in the order of their ids, those after an id.

        ``search`` is looked for in ids and in filters as they were written, in any case.
        """
        query = select(subscriptions).where(subscriptions.c.id > after)
        if owner is not None:
            query = query.where(subscriptions.c.owner == owner)
        if search:
            query = query.where(
                or_(
                    subscriptions.c.id.icontains(search, autoescape=True),
                    subscriptions.c.spelling.icontains(search, autoescape=True),
                )
            )
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(subscriptions.c.id).limit(most)).all()
        return [saved_of(row) for row in rows]

    def count(self, owner: str | None = None) -> int:
        """How many subscriptions there are."""
        query = select(func.coalesce(func.sum(owners.c.n_subscriptions), 0))
        if owner is not None:
            query = query.where(owners.c.owner == owner)
        with self.database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def snapshot(self) -> tuple[int, Iterator[Subscription]]:
        """The sequence of the last change, and all subscriptions that are not paused, as of it.

        The transaction ends with the iterator.
        """
        return next(reader := self._read_all()), reader

    def _read_all(self) -> Iterator[Any]:
        query = select(subscriptions).where(~subscriptions.c.is_paused)
        with self.database.reading() as connection:
            last = select(counters.c.last).where(counters.c.name == "changes")
            yield connection.execute(last).scalar_one()
            streamed = connection.execution_options(yield_per=_PAGE)
            for row in streamed.execute(query):
                yield subscription_of(row)


def add(connection: Connection, saved: Saved, most: int | None = None) -> Saved:
    """Save a new subscription in a transaction of the caller's; see `SubscriptionStore.create`."""
    made = _stamped(saved)
    # The subscription before its owner, as where one is deleted: else two could wait for each
    # other.
    if connection.execute(_INSERTS[connection.dialect.name], row_of(made)).first() is None:
        raise _taken(made.id)
    count_in(connection, made.owner, 1, most)
    log_changes(connection, [made.id])
    return made


def row_of(saved: Saved) -> dict[str, Any]:
    """The row of a subscription."""
    held, spelling = saved.subscription, _as_text(saved.spelling)
    is_json = isinstance(saved.spelling, Mapping) and saved.spelling.keys() != {"query"}
    return {
        "id": held.id,
        "owner": held.owner,
        "filter": spelling if is_json else _as_text(to_json(held.filter)),
        "spelling": spelling,
        "priority": held.priority,
        "delivery": _as_text(held.delivery),
        "lon": held.location and held.location.lon,
        "lat": held.location and held.location.lat,
        "radius_m": held.radius_m,
        "area": held.area if held.location else None,
        "is_paused": saved.is_paused,
        "version": saved.version,
        "created_at": saved.created_at,
        "updated_at": saved.updated_at,
    }


def subscription_of(row: Row[Any]) -> Subscription:
    """The subscription in a row."""
    return Subscription(
        row.id,
        json.loads(row.filter),
        row.priority,
        row.owner,
        json.loads(row.delivery),
        None if row.lon is None else (row.lon, row.lat),
        row.radius_m,
        row.area or CIRCLE,
    )


def saved_of(row: Row[Any]) -> Saved:
    """The subscription in a row, with all that is saved beside it."""
    return Saved(
        subscription_of(row),
        json.loads(row.spelling),
        row.is_paused,
        row.version,
        row.created_at,
        row.updated_at,
    )


def count_in(connection: Connection, owner: str, change: int, most: int | None = None) -> None:
    """Add to the number of an owner's subscriptions; the owner is made if there is none."""
    statement = _COUNT_BACK[connection.dialect.name]
    counted = connection.execute(statement, _counted(owner, change)).scalar_one()
    if most is not None and counted > most:
        raise LimitReached(
            f"this would be subscription {counted:,} of owner {quoted(owner)}, who may have "
            f"{most:,}; delete some first"
        )


def count_in_many(connection: Connection, changes: Mapping[str, int]) -> None:
    """``count_in`` for many owners, who may have as many as they like."""
    # In order, so that two who do this at once cannot wait for each other.
    rows = [_counted(owner, change) for owner, change in sorted(changes.items()) if change]
    if rows:
        connection.execute(_COUNT[connection.dialect.name], rows)


def _counted(owner: str, change: int) -> dict[str, Any]:
    return {
        "owner": owner,
        "webhook_secret": new_webhook_secret(),
        "n_subscriptions": change,
        "created_at": moment(),
    }


def new_webhook_secret() -> str:
    """A secret in the spelling of the Standard Webhooks specification."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _stamped(saved: Saved) -> Saved:
    now = moment()
    return replace(saved, version=1, created_at=now, updated_at=now)


def _find(connection: Connection, id: str, owner: str | None, *, lock: bool = False) -> Saved:
    found = _look(connection, id, lock=lock)
    if found is None or owner not in (None, found.owner):
        raise UnknownSubscription(f"there is no subscription {quoted(id)}")
    return found


def _look(connection: Connection, id: str, *, lock: bool) -> Saved | None:
    row = connection.execute(_LOCK if lock else _READ, {"wanted": id}).first()
    return None if row is None else saved_of(row)


def _store(connection: Connection, made: Saved) -> None:
    connection.execute(_UPDATE, {**row_of(made), "wanted": made.id})
    log_changes(connection, [made.id])


def _taken(id: str) -> DuplicateSubscription:
    return DuplicateSubscription(
        f"there is a subscription {quoted(id)} already; replace it, or choose another id"
    )


def _check_version(saved: Saved, wanted: int | None) -> None:
    if wanted is not None and saved.version != wanted:
        raise VersionConflict(
            f"subscription {quoted(saved.id)} has version {saved.version}, not {wanted}; "
            "read it again and repeat the change"
        )


def _as_text(held: Mapping[str, Any] | Sequence[Any] | str | bool) -> str:
    return _ENCODER.encode(held)
