"""The subscriptions in a database: saved, changed and taken away, each change in the change log."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, func, or_, select

from tamis.errors import (
    DuplicateSubscription,
    UnknownSubscription,
    VersionConflict,
    quoted,
)
from tamis.storage.changes import log_change
from tamis.storage.database import Database
from tamis.storage.direct import Direct, statement
from tamis.storage.owners import count_in, count_off
from tamis.storage.saved import Saved, SubscriptionRow, as_text, row_of, saved_of
from tamis.storage.tables import counters, moment, owners, subscriptions

ANY = "*"  # the ETag of whatever is there

_PAGE = 1_000
_NAMES = SubscriptionRow._fields
_COLUMNS = ", ".join(_NAMES)
_READ = f"SELECT {_COLUMNS} FROM subscriptions WHERE id = :id"
_READ_ONE = statement(_READ)
_LOCK = statement(_READ, postgresql=f"{_READ} FOR UPDATE")  # in SQLite the whole database is ours
_INSERT = statement(
    f"INSERT INTO subscriptions ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in _NAMES)}) "
    "ON CONFLICT (id) DO NOTHING RETURNING id"
)
_UPDATE = statement(
    f"UPDATE subscriptions SET {', '.join(f'{name} = :{name}' for name in _NAMES[1:])} "
    "WHERE id = :id"
)
# Only those of an owner and only with that ETag, if they are said.
_CHOSEN = (
    "WHERE id = :id AND owner = COALESCE(:owner, owner) "
    f"AND COALESCE(:etag, '{ANY}') IN ('{ANY}', version || '-' || created_at)"
)
_SET = statement(
    "UPDATE subscriptions SET priority = COALESCE(:priority, priority), "
    "is_paused = COALESCE(:is_paused, is_paused), version = version + 1, updated_at = :updated_at "
    f"{_CHOSEN} RETURNING {_COLUMNS}"
)
_DELETE = statement(f"DELETE FROM subscriptions {_CHOSEN} RETURNING owner")
_PAGES = {
    has_owner: statement(
        f"SELECT {_COLUMNS} FROM subscriptions WHERE id > :after "
        f"{'AND owner = :owner ' if has_owner else ''}ORDER BY id LIMIT :most"
    )
    for has_owner in (True, False)
}


Edit = Callable[[Saved], Saved]


class SubscriptionStore:
    """The subscriptions in a database.

    Where an ``owner`` is given, the subscriptions of others are as if they were not there. With
    ``if_etag`` a change is made only to what still has that ETag, with `ANY` only to what is there.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, saved: Saved, *, most: int | None = None) -> Saved:
        """Save a new subscription; its owner may have ``most`` of them."""
        return self.database.change(lambda direct: add(direct, saved, most))

    def get(self, id: str, owner: str | None = None) -> Saved:
        """The subscription with an id."""
        return saved_of(self.read(id, owner))

    def read(self, id: str, owner: str | None = None) -> SubscriptionRow:
        """The row of the subscription with an id; its filter is not read."""
        rows = self.database.ask(_READ_ONE, {"id": id})
        if not rows or owner not in (None, rows[0][1]):
            raise _unknown(id)
        return SubscriptionRow._make(rows[0])

    def change(
        self, id: str, edit: Edit, *, owner: str | None = None, if_etag: str | None = None
    ) -> Saved:
        """Save what ``edit`` makes of a subscription; it may not change the id or the owner."""

        def work(direct: Direct) -> Saved:
            before = _lock(direct, id)
            if before is None or owner not in (None, before.owner):
                raise _unknown(id)
            _check_etag(before, if_etag)
            made = replace(edit(before), version=before.version + 1, updated_at=moment())
            if (made.id, made.owner) != (before.id, before.owner):
                raise ValueError(f"an edit of {id!r} changed its id or owner")
            _store(direct, made)
            return made

        return self.database.change(work)

    def adjust(
        self,
        id: str,
        *,
        priority: int | None = None,
        is_paused: bool | None = None,
        owner: str | None = None,
        if_etag: str | None = None,
    ) -> SubscriptionRow:
        """Change what says nothing of what a subscription matches; its filter is not read."""
        values = {
            "id": id, "owner": owner, "etag": if_etag, "priority": priority,
            "is_paused": is_paused, "updated_at": moment(),
        }  # fmt: skip

        def work(direct: Direct) -> SubscriptionRow:
            rows = direct.all(_SET, values)
            if not rows:
                raise _why_not(direct, id, owner, if_etag)
            log_change(direct, id)
            return SubscriptionRow._make(rows[0])

        return self.database.change(work)

    def put(
        self,
        id: str,
        make: Callable[[Saved | None], Saved],
        *,
        owner: str | None = None,
        if_etag: str | None = None,
        if_absent: bool = False,
        most: int | None = None,
    ) -> tuple[Saved, bool]:
        """Save what ``make`` makes of the subscription that is there, or of None.

        With ``if_absent`` only if it is not there. Returns what was saved, and whether it is new.
        """

        def work(direct: Direct) -> tuple[Saved, bool]:
            before = _lock(direct, id)
            if before is not None and owner not in (None, before.owner):
                raise _taken(id)
            if before is None:
                if if_etag is not None:
                    raise VersionConflict(f"there is no subscription {quoted(id)} to replace")
                return add(direct, make(None), most), True
            if if_absent:
                raise VersionConflict(f"there is a subscription {quoted(id)} already")
            _check_etag(before, if_etag)
            made = replace(
                make(before), version=before.version + 1, created_at=before.created_at,
                updated_at=moment(),
            )  # fmt: skip
            if (made.id, made.owner) != (before.id, before.owner):
                raise _taken(id)
            _store(direct, made)
            return made, False

        return self.database.change(work)

    def delete(self, id: str, *, owner: str | None = None, if_etag: str | None = None) -> None:
        """Take a subscription away; its filter is not read."""

        def work(direct: Direct) -> None:
            rows = direct.all(_DELETE, {"id": id, "owner": owner, "etag": if_etag})
            if not rows:
                raise _why_not(direct, id, owner, if_etag)
            count_off(direct, rows[0][0])
            log_change(direct, id)

        self.database.change(work)

    def page(
        self, owner: str | None = None, *, after: str = "", most: int = 100, search: str = ""
    ) -> list[SubscriptionRow]:
        """The subscriptions in the order of their ids, those after an id.

        ``search`` is looked for in ids and in filters as they were written, in any case.
        """
        if not search:
            values = {"after": after, "owner": owner, "most": most}
            return [
                *map(SubscriptionRow._make, self.database.ask(_PAGES[owner is not None], values))
            ]
        held, wanted, lower = subscriptions.c, search.lower(), func.lower
        if self.database.is_sqlite and not search.isascii():
            # SQLite itself knows cases of ASCII only.
            wanted, lower = search.casefold(), func.casefold
        query = select(subscriptions).where(
            held.id > after,
            or_(
                lower(held.id).contains(wanted, autoescape=True),
                # As it is in a text of JSON, and as JSON itself.
                lower(held.spelling).contains(as_text(wanted)[1:-1], autoescape=True),
                lower(held.spelling).contains(wanted, autoescape=True),
            ),
        )
        if owner is not None:
            query = query.where(held.owner == owner)
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(held.id).limit(most)).all()
        return [SubscriptionRow._make(row) for row in rows]

    def count(self, owner: str | None = None) -> int:
        """How many subscriptions there are."""
        query = select(func.coalesce(func.sum(owners.c.n_subscriptions), 0))
        if owner is not None:
            query = query.where(owners.c.owner == owner)
        with self.database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def snapshot(self) -> tuple[int, Generator[Row[Any]]]:
        """The sequence of the last change, and the rows of all that are not paused, as of it.

        The transaction ends with the generator.
        """
        return next(reader := self._read_all()), reader

    def _read_all(self) -> Generator[Any]:
        query = select(subscriptions).where(~subscriptions.c.is_paused)
        with self.database.reading() as connection:
            last = select(counters.c.last).where(counters.c.name == "changes")
            yield connection.execute(last).scalar_one()
            streamed = connection.execution_options(yield_per=_PAGE)
            yield from streamed.execute(query)


def add(direct: Direct, saved: Saved, most: int | None = None) -> Saved:
    """Save a new subscription in a transaction of the caller's; see `SubscriptionStore.create`."""
    now = moment()
    made = replace(saved, version=1, created_at=now, updated_at=now)
    # The subscription before its owner, as where one is deleted: else two could wait for each
    # other.
    if not direct.all(_INSERT, row_of(made)._asdict()):
        raise _taken(made.id)
    count_in(direct, made.owner, 1, most)
    log_change(direct, made.id)
    return made


def _lock(direct: Direct, id: str) -> Saved | None:
    rows = direct.all(_LOCK, {"id": id})
    return saved_of(SubscriptionRow._make(rows[0])) if rows else None


def _store(direct: Direct, made: Saved) -> None:
    direct.later(_UPDATE, row_of(made)._asdict())
    log_change(direct, made.id)


def _why_not(direct: Direct, id: str, owner: str | None, etag: str | None) -> Exception:
    """Why a statement with ``_CHOSEN`` found no row."""
    rows = direct.all(_READ_ONE, {"id": id})
    if rows and owner in (None, rows[0][1]):
        found = SubscriptionRow._make(rows[0])
        if etag not in (None, ANY, found.etag):
            return _conflict(found, etag)
    return _unknown(id)


def _unknown(id: str) -> UnknownSubscription:
    return UnknownSubscription(f"there is no subscription {quoted(id)}")


def _taken(id: str) -> DuplicateSubscription:
    return DuplicateSubscription(
        f"there is a subscription {quoted(id)} already; replace it, or choose another id"
    )


def _check_etag(found: Saved, wanted: str | None) -> None:
    if wanted not in (None, ANY, found.etag):
        raise _conflict(found, wanted)


def _conflict(found: Saved | SubscriptionRow, wanted: str | None) -> VersionConflict:
    return VersionConflict(
        f"subscription {quoted(found.id)} has the ETag {quoted(found.etag)}, not "
        f"{quoted(wanted)}; read it again and repeat the change"
    )
