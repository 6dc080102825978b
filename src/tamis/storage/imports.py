"""Many subscriptions at once: lines read by several processes, saved a few thousand at a time."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, text

from tamis.errors import (
    DuplicateSubscription,
    InvalidSubscription,
    LimitReached,
    TamisError,
    quoted,
)
from tamis.storage.changes import log_changes
from tamis.storage.database import Database
from tamis.storage.direct import direct_of
from tamis.storage.drafts import Rules, plain_row, read_draft
from tamis.storage.owners import count_in, count_in_many
from tamis.storage.subscriptions import row_of
from tamis.storage.tables import moment, owners, subscriptions
from tamis.values import load_json

LINES_AT_ONCE = 2_000
FEW_LINES = 8_000  # read before other processes would have started

_COLUMNS = tuple(column.name for column in subscriptions.columns)
_ID, _OWNER = _COLUMNS.index("id"), _COLUMNS.index("owner")
_KEPT = ("id", "owner", "version", "created_at")  # when a subscription is replaced


class Result(NamedTuple):
    """What became of a line: ``created``, ``replaced`` or ``error``; lines count from 1."""

    line: int
    id: str | None
    result: str
    error: TamisError | None = None


Row = tuple[Any, ...]
"""A row of the table, its columns in their order."""


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reads lines of JSON; may be handed to another process."""

    rules: Rules
    most_bytes: int = 1_048_576

    def read(self, first: int, lines: Sequence[bytes]) -> list[tuple[int, Row | TamisError]]:
        """The row of each line, or what is wrong with it; empty lines are passed over."""
        found: list[tuple[int, Row | TamisError]] = []
        now = moment()
        for number, line in enumerate(lines, first):
            if not line.strip():
                continue
            try:
                found.append((number, self._row(line, now)))
            except TamisError as error:
                found.append((number, error))
        return found

    def _row(self, line: bytes, now: str) -> Row:
        if len(line) > self.most_bytes:
            raise InvalidSubscription(
                f"the line has more than the {self.most_bytes:,} bytes allowed"
            )
        try:
            held = load_json(line)
        except (ValueError, RecursionError) as error:
            raise InvalidSubscription(f"the line is not JSON: {error}") from None
        if not isinstance(held, Mapping):
            raise InvalidSubscription("the line is no JSON object")
        row = plain_row(held, self.rules, now)
        if row is not None:
            return row
        return row_of(replace(read_draft(held, self.rules), created_at=now, updated_at=now))


class Importer:
    """Saves rows of subscriptions; those whose id is there are replaced."""

    def __init__(self, database: Database, most: int | None = None) -> None:
        self.database, self.most = database, most

    def save(self, read: Sequence[tuple[int, Row | TamisError]]) -> list[Result]:
        """Save what was read in one transaction, and tell what became of each line."""
        rows = {row[_ID]: row for _, row in read if isinstance(row, tuple)}
        outcome: dict[str, str | TamisError] = {}
        if rows:
            with self.database.writing() as connection:
                outcome = self._save(connection, rows)
        return list(_results(read, outcome))

    def _save(self, connection: Connection, rows: dict[str, Row]) -> dict[str, str | TamisError]:
        refused = self._refuse_too_many(connection, rows)
        write = _write_sqlite if self.database.is_sqlite else _write_postgresql
        versions = write(connection, [row for id, row in rows.items() if id not in refused])
        created: Counter[str] = Counter()
        outcome: dict[str, str | TamisError] = dict(refused)
        for id, row in rows.items():
            if id in versions:
                outcome[id] = "created" if versions[id] == 1 else "replaced"
                created[row[_OWNER]] += versions[id] == 1
            elif id not in refused:
                outcome[id] = DuplicateSubscription(
                    f"there is a subscription {quoted(id)} already, which is somebody else's; "
                    "choose another id"
                )
        if self.most is None:
            count_in_many(connection, created)
        else:
            for owner, count in sorted(created.items()):
                if count:  # beyond the limit only if another import was at work at the same time
                    count_in(direct_of(connection), owner, count, self.most)
        log_changes(connection, list(versions))
        return outcome

    def _refuse_too_many(
        self, connection: Connection, rows: dict[str, Row]
    ) -> dict[str, TamisError]:
        """The new ones beyond what an owner may have."""
        if self.most is None:
            return {}
        refused: dict[str, TamisError] = {}
        for owner, count in Counter(row[_OWNER] for row in rows.values()).items():
            held = connection.execute(
                select(owners.c.n_subscriptions).where(owners.c.owner == owner)
            ).scalar()
            room = self.most - (held or 0)
            if count <= room:
                continue
            ids = [id for id, row in rows.items() if row[_OWNER] == owner]
            known = set(_present(connection, ids))
            for id in [id for id in ids if id not in known][max(room, 0) :]:
                refused[id] = LimitReached(
                    f"the owner {quoted(owner)} may have {self.most:,} subscriptions and has them"
                )
        return refused


def read_many(
    reader: LineReader, lines: Iterable[bytes]
) -> Iterator[list[tuple[int, Row | TamisError]]]:
    """Read lines a few thousand at a time, by several processes where there are many.

    What is yielded is in the order of the lines.
    """
    source, number = iter(lines), 1
    n_processes = min(os.cpu_count() or 1, 4)
    while chunk := list(islice(source, LINES_AT_ONCE)):
        yield reader.read(number, chunk)
        number += len(chunk)
        if number > FEW_LINES and n_processes > 1:
            break
    chunk = list(islice(source, LINES_AT_ONCE))
    if not chunk:
        return
    with reading_pool(n_processes) as pool:
        waiting: deque[Future[list[tuple[int, Row | TamisError]]]] = deque()
        while chunk:
            waiting.append(pool.submit(reader.read, number, chunk))
            number += len(chunk)
            chunk = list(islice(source, LINES_AT_ONCE))
            if len(waiting) > 2 * n_processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def reading_pool(n_processes: int) -> ProcessPoolExecutor:
    """Processes that read lines; started anew, for a fork would inherit our threads' locks."""
    return ProcessPoolExecutor(n_processes, mp_context=get_context("spawn"))


def _results(
    read: Sequence[tuple[int, Row | TamisError]], outcome: Mapping[str, str | TamisError]
) -> Iterator[Result]:
    seen: set[str] = set()
    for number, row in read:
        if isinstance(row, TamisError):
            yield Result(number, None, "error", row)
            continue
        told = outcome[row[_ID]]
        if isinstance(told, TamisError):
            yield Result(number, row[_ID], "error", told)
        else:
            # An id that is in one chunk twice: the last line counts.
            yield Result(number, row[_ID], "replaced" if row[_ID] in seen else told)
        seen.add(row[_ID])


def _present(connection: Connection, ids: Sequence[str]) -> Iterator[str]:
    at_once = 10_000
    for start in range(0, len(ids), at_once):
        chosen = subscriptions.c.id.in_(ids[start : start + at_once])
        yield from connection.execute(select(subscriptions.c.id).where(chosen)).scalars()


def _write_sqlite(connection: Connection, rows: list[Row]) -> dict[str, int]:
    """Nobody else writes meanwhile, so what is there can be asked first."""
    known: dict[str, tuple[str, int]] = {}
    at_once = 10_000
    for start in range(0, len(rows), at_once):
        ids = [row[_ID] for row in rows[start : start + at_once]]
        query = select(subscriptions.c.id, subscriptions.c.owner, subscriptions.c.version)
        for id, owner, version in connection.execute(query.where(subscriptions.c.id.in_(ids))):
            known[id] = owner, version
    own = [row for row in rows if known.get(row[_ID], (row[_OWNER],))[0] == row[_OWNER]]
    versions = {row[_ID]: known.get(row[_ID], ("", 0))[1] + 1 for row in own}
    if own:
        connection.exec_driver_sql(_UPSERT.format(source=f"VALUES ({_MARKS})"), own)
    return versions


# As text: what SQLAlchemy does for each row takes longer than saving it.
_MARKS = ", ".join("?" for _ in _COLUMNS)
_UPSERT = (
    f"INSERT INTO subscriptions ({', '.join(_COLUMNS)}) {{source}} ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEPT)
    + ", version = subscriptions.version + 1"
)
# It stays with the connection, empty after each transaction: to make it takes longer than a copy.
_STAGE = text("CREATE TEMP TABLE IF NOT EXISTS staged (LIKE subscriptions) ON COMMIT DELETE ROWS")
_UNSTAGE = text(
    _UPSERT.format(source=f"SELECT {', '.join(_COLUMNS)} FROM staged ORDER BY id")
    + " WHERE subscriptions.owner = excluded.owner RETURNING id, version"
)


def _write_postgresql(connection: Connection, rows: list[Row]) -> dict[str, int]:
    """Copied to a table aside, and from there in the order of ids: no two imports can deadlock."""
    connection.execute(_STAGE)
    driver: Any = connection.connection.driver_connection
    with (
        driver.cursor() as cursor,
        cursor.copy(f"COPY staged ({', '.join(_COLUMNS)}) FROM STDIN") as copy,
    ):
        copy.write("".join(map(_copy_line, rows)).encode())
    return {row.id: row.version for row in connection.execute(_UNSTAGE)}


def _copy_line(row: Row) -> str:
    """A row as PostgreSQL copies it; texts have no control characters but what JSON escapes."""
    return "\t".join([_copy_field(held) for held in row]) + "\n"


def _copy_field(held: Any) -> str:
    if type(held) is str:
        return held.replace("\\", "\\\\") if "\\" in held else held
    return "\\N" if held is None else str(held)
