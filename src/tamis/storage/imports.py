"""Many subscriptions at once: lines read by several processes, saved a few thousand at a time."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from typing import NamedTuple

from tamis.errors import (
    DuplicateSubscription,
    InvalidSubscription,
    LimitReached,
    TamisError,
    quoted,
)
from tamis.storage.bulk import ID, OWNER, Row, copy_text, owners_of, write_copy, write_rows
from tamis.storage.changes import log_changes
from tamis.storage.database import Database
from tamis.storage.direct import Direct, statement
from tamis.storage.drafts import Rules, plain_row, plain_row_of, read_draft
from tamis.storage.owners import count_in, count_in_many
from tamis.storage.saved import row_of
from tamis.storage.tables import moment
from tamis.values import read_json

LINES_AT_ONCE = 2_000
FEW_LINES = 8_000  # read before other processes would have started

_N_HELD = statement("SELECT n_subscriptions FROM owners WHERE owner = :owner")


class Result(NamedTuple):
    """What became of a line: ``created``, ``replaced`` or ``error``; lines count from 1."""

    line: int
    id: str | None
    result: str
    error: TamisError | None = None


class Batch(NamedTuple):
    """Lines that were read, and what of them is to be saved in one transaction."""

    lines: list[tuple[int, str | TamisError]]  # the id of each, or what is wrong with it
    owner_of: dict[str, str]  # of every id
    rows: list[Row] | bytes  # one for every id; the bytes are for a copy to PostgreSQL


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reads lines of JSON; may be handed to another process. `Importer.reader` makes one."""

    rules: Rules
    most_bytes: int = 1_048_576
    spells_copies: bool = False  # the rows as PostgreSQL copies them

    def read(self, first: int, lines: Sequence[bytes]) -> Batch:
        """The rows of lines, and what is wrong with the others; empty lines are passed over.

        Of an id that is there twice the last line counts.
        """
        found: list[tuple[int, str | TamisError]] = []
        rows: dict[str, Row] = {}
        now = moment()
        for number, line in enumerate(lines, first):
            if not line.strip():
                continue
            try:
                row = self._row(line, now)
            except TamisError as error:
                found.append((number, error))
            else:
                rows[row[ID]] = row
                found.append((number, row[ID]))
        owner_of = {id: row[OWNER] for id, row in rows.items()}
        held = rows.values()
        return Batch(found, owner_of, copy_text(held) if self.spells_copies else [*held])

    def _row(self, line: bytes, now: str) -> Row:
        if len(line) > self.most_bytes:
            raise InvalidSubscription(
                f"the line has more than the {self.most_bytes:,} bytes allowed"
            )
        row = plain_row_of(line, self.rules, now)
        if row is not None:
            return row
        held = read_json(line, "the line", InvalidSubscription)
        if not isinstance(held, Mapping):
            raise InvalidSubscription("the line is no JSON object")
        row = plain_row(held, self.rules, now)
        if row is not None:
            return row
        return row_of(replace(read_draft(held, self.rules), created_at=now, updated_at=now))


class Importer:
    """Saves subscriptions that were read; those whose id is there are replaced."""

    def __init__(self, database: Database, most: int | None = None) -> None:
        self.database, self.most = database, most

    def reader(self, rules: Rules, most_bytes: int = 1_048_576) -> LineReader:
        """What reads lines for this importer."""
        return LineReader(rules, most_bytes, not self.database.is_sqlite)

    def save(self, batch: Batch) -> list[Result]:
        """Save what was read in one transaction, and tell what became of each line."""
        outcome: dict[str, str | TamisError] = {}
        if batch.owner_of:
            outcome = self.database.change(lambda direct: self._save(direct, batch))
        return list(_results(batch.lines, outcome))

    def _save(self, direct: Direct, batch: Batch) -> dict[str, str | TamisError]:
        """What became of the ids that were not created."""
        owner_of, rows = batch.owner_of, batch.rows
        outcome: dict[str, str | TamisError] = dict(self._refuse_too_many(direct, owner_of))
        if isinstance(rows, bytes):
            written = write_copy(direct, rows, len(owner_of), outcome.keys())
        else:
            written = write_rows(direct, rows, outcome.keys())
        outcome |= dict.fromkeys(written.replaced, "replaced")
        for id in written.of_others:
            outcome[id] = DuplicateSubscription(
                f"there is a subscription {quoted(id)} already, which is somebody else's; "
                "choose another id"
            )
        created = Counter([owner for id, owner in owner_of.items() if id not in outcome])
        if self.most is None:
            count_in_many(direct, created)
        else:
            for owner, count in sorted(created.items()):
                # Beyond the limit only if another import was at work at the same time.
                count_in(direct, owner, count, self.most)
        log_changes(direct, [id for id in owner_of if type(outcome.get(id, "")) is str])
        return outcome

    def _refuse_too_many(
        self, direct: Direct, owner_of: Mapping[str, str]
    ) -> dict[str, LimitReached]:
        """The new ones beyond what an owner may have."""
        if self.most is None:
            return {}
        refused: dict[str, LimitReached] = {}
        for owner, count in Counter(owner_of.values()).items():
            held = direct.all(_N_HELD, {"owner": owner})
            room = self.most - (held[0][0] if held else 0)
            if count <= room:
                continue
            ids = [id for id in owner_of if owner_of[id] == owner]
            known = owners_of(direct, ids)
            for id in [id for id in ids if id not in known][max(room, 0) :]:
                refused[id] = LimitReached(
                    f"the owner {quoted(owner)} may have {self.most:,} subscriptions and has them"
                )
        return refused


def read_many(reader: LineReader, lines: Iterable[bytes]) -> Iterator[Batch]:
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
        waiting: deque[Future[Batch]] = deque()
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
    lines: Sequence[tuple[int, str | TamisError]], outcome: Mapping[str, str | TamisError]
) -> Iterator[Result]:
    """What became of lines; ``outcome`` says it of the ids that were not created."""
    seen: set[str] = set()
    for number, id in lines:
        if not isinstance(id, str):
            yield Result(number, None, "error", id)
            continue
        told = outcome.get(id, "created")
        if not isinstance(told, str):
            yield Result(number, id, "error", told)
        else:
            # An id that is in one batch twice: the last line counts.
            yield Result(number, id, "replaced" if id in seen else told)
        seen.add(id)
