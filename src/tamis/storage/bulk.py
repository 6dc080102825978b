"""Many rows of subscriptions in few statements, as each database takes them best."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tamis.storage.direct import Direct, PostgresqlDirect, Statement, insert_rows, statement
from tamis.storage.saved import SubscriptionRow

Row = tuple[Any, ...]
"""A row of the table, its columns in their order."""

COLUMNS = SubscriptionRow._fields
ID, OWNER = COLUMNS.index("id"), COLUMNS.index("owner")

_KEPT = ("id", "owner", "version", "created_at")  # when a subscription is replaced
_ASKED_AT_ONCE = 500
_NULL = "\0"
_LIST = ", ".join(COLUMNS)
_REPLACE = (
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in _KEPT)
    + ", version = subscriptions.version + 1"
)
# It stays with the connection, empty after each transaction: to make it takes longer than a copy.
_HAS_STAGE = statement("", postgresql="SELECT to_regclass('pg_temp.staged') IS NOT NULL")
_STAGE = statement(
    "", postgresql="CREATE TEMP TABLE staged (LIKE subscriptions) ON COMMIT DELETE ROWS"
)
_UNSTAGE = statement(
    "",
    postgresql=f"WITH saved AS (INSERT INTO subscriptions ({_LIST}) "
    f"SELECT {_LIST} FROM staged ORDER BY id {_REPLACE} "
    "WHERE subscriptions.owner = excluded.owner RETURNING id, version) "
    "SELECT count(*), array_agg(id) FILTER (WHERE version > 1) FROM saved",
)
_LEAVE_OUT = statement(
    "", postgresql="DELETE FROM staged WHERE id = ANY(CAST(:ids AS text[])) RETURNING id"
)
_OF_OTHERS = statement(
    "",
    postgresql="SELECT staged.id FROM staged JOIN subscriptions ON subscriptions.id = staged.id "
    "WHERE subscriptions.owner <> staged.owner",
)
_OWNERS_OF = statement(
    "", postgresql="SELECT id, owner FROM subscriptions WHERE id = ANY(CAST(:ids AS text[]))"
)


class Written(NamedTuple):
    """Which ids were there before, and which are somebody else's and were left as they are."""

    replaced: Collection[str]
    of_others: Collection[str]


def copy_text(rows: Iterable[Row]) -> bytes:
    """Rows as PostgreSQL copies them; texts have no control characters but what JSON escapes."""
    lines = [
        "\t".join([_NULL if x is None else x if type(x) is str else str(x) for x in row])
        for row in rows
    ]
    text = "\n".join([*lines, ""])
    return text.replace("\\", "\\\\").replace(_NULL, "\\N").encode()


def owners_of(direct: Direct, ids: Sequence[str]) -> dict[str, str]:
    """The owners of those subscriptions that are there."""
    if not direct.is_sqlite:
        return dict(direct.all(_OWNERS_OF, {"ids": list(ids)}))
    return {
        id: owner
        for start in range(0, len(ids), _ASKED_AT_ONCE)
        for id, owner in _ask(direct, ids[start : start + _ASKED_AT_ONCE])
    }


def write_rows(direct: Direct, rows: Sequence[Row], refused: Collection[str]) -> Written:
    """Save rows in SQLite, but for those refused.

    Nobody else writes meanwhile, so what is there can be asked first.
    """
    known = owners_of(direct, [row[ID] for row in rows])
    of_others = {row[ID] for row in rows if known.get(row[ID], row[OWNER]) != row[OWNER]}
    own = rows
    if of_others or refused:
        own = [row for row in rows if row[ID] not in of_others and row[ID] not in refused]
    insert_rows(direct, f"subscriptions ({_LIST})", own, _REPLACE)
    return Written(known.keys() - of_others, of_others)


def write_copy(direct: Direct, text: bytes, n_rows: int, refused: Collection[str]) -> Written:
    """Save rows that are spelt for a copy, in PostgreSQL, but for those refused.

    Copied to a table aside, and from there in the order of ids: no two imports can deadlock.
    """
    assert isinstance(direct, PostgresqlDirect)
    ((has_stage,),) = direct.all(_HAS_STAGE, {})
    if not has_stage:
        direct.execute(_STAGE)
    direct.copy("staged", COLUMNS, text)
    if refused:
        direct.all(_LEAVE_OUT, {"ids": list(refused)})
    ((n_saved, replaced),) = direct.all(_UNSTAGE, {})
    of_others: list[str] = []
    if n_saved < n_rows - len(refused):
        of_others = [id for (id,) in direct.all(_OF_OTHERS, {})]
    return Written(set(replaced or ()), of_others)


def _ask(direct: Direct, ids: Sequence[str]) -> list[Row]:
    return direct.all(_asking(len(ids)), ids)


@lru_cache(maxsize=64)
def _asking(n_ids: int) -> Statement:
    marks = ", ".join(["?"] * n_ids)
    return Statement(f"SELECT id, owner FROM subscriptions WHERE id IN ({marks})", "")
