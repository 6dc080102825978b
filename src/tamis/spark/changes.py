"""Changes of subscriptions, from wherever they are written down.

A change has a *sequence*, a whole number above 0 that grows from change to change; ``op`` is
``upsert`` (save a subscription, new or not) or ``delete``; the other fields are those of a
subscription. A source is asked for the changes after a sequence, again and again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import InvalidSubscription, PipelineError, TamisError
from tamis.model import Subscription
from tamis.spark.subscriptions import FIELDS, subscription_of
from tamis.spark.table_rows import dicts_of
from tamis.values import load_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_logger = logging.getLogger(__name__)

_OPS = ("upsert", "delete")
_LAST_SEQUENCE = 2**63 - 1


class Change(NamedTuple):
    """A change, or what stands in the place of one and cannot be read.

    ``subscription`` is None for a deletion. ``problem`` says why a change is rejected;
    ``place`` and ``text`` where it was found and what it says.
    """

    sequence: int
    id: str
    subscription: Subscription | None
    problem: str = ""
    place: str = ""
    text: str = ""


class ChangeSource(Protocol):
    """Where changes come from."""

    def after(self, sequence: int) -> list[Change]:
        """The changes that are committed and lie after a sequence, in order.

        What cannot be read may be given again: it has no sequence to go by.
        """


class ChangeTable:
    """Changes in a table of a database or a catalogue: sequence, op and what subscriptions have.

    ``read`` makes a DataFrame of the whole table; only rows after the sequence are fetched,
    by the database where it can filter. A transaction must not commit a sequence below one
    that is committed already.
    """

    def __init__(self, read: Callable[[], DataFrame]) -> None:
        self._read = read

    @classmethod
    def jdbc(cls, spark: SparkSession, url: str, table: str, **options: str) -> ChangeTable:
        """Changes in a table behind a JDBC address; options as for ``spark.read.jdbc``."""
        return cls(lambda: spark.read.jdbc(url, table, properties=options))

    def after(self, sequence: int) -> list[Change]:
        """The changes after a sequence."""
        from pyspark.sql import functions as f

        frame = self._read()
        # Databases differ in the case they give names back in.
        frame = frame.toDF(*(name.lower() for name in frame.columns))
        check_columns(frame.columns)
        names = [name for name in ("sequence", "op", *FIELDS) if name in frame.columns]
        number = f.col("sequence")
        # What is no sequence is fetched too, for it to be told.
        is_wanted = (number > sequence) | (number <= 0) | number.isNull()
        rows = frame.select(*names).where(is_wanted).orderBy("sequence").toArrow()
        return [change_of(held, f"sequence {held['sequence']}") for held in dicts_of(rows)]


@dataclass
class _Known:
    """What is known of a file: how much of it was read, and the last sequence in that."""

    signature: tuple[int, int]
    read_bytes: int = 0
    last: int = 0


class ChangeDirectory:
    """Changes in a directory of JSONL and Parquet files.

    Files are read in the order of their names, and sequences grow from file to file. A file of
    JSON lines may still be written to: a line counts when its end is there. A Parquet file
    counts when it is whole. While a file is not, or cannot be read, later ones wait, so that
    nothing is passed over.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise PipelineError(f"there is no directory {path} of changes; make it first")
        self._known: dict[str, _Known] = {}
        self.waiting_for = ""
        """The file that is waited for, and why; empty if all is read."""

    def after(self, sequence: int) -> list[Change]:
        """The changes after a sequence."""
        changes: list[Change] = []
        was_waiting, self.waiting_for = self.waiting_for, ""
        files = self.files()
        for position, file in enumerate(files):
            try:
                found, rest = self._read(file, sequence)
            except (OSError, pa.ArrowException) as error:
                self.waiting_for = f"{file} {_trouble(error)}"
                break
            changes += (one for one in found if one.problem or one.sequence > sequence)
            if rest and position < len(files) - 1:  # lines may still be added to the last
                self.waiting_for = f"{file} is not whole: {rest}"
                break
        if self.waiting_for and self.waiting_for != was_waiting:
            _logger.warning("changes of subscriptions wait: %s", self.waiting_for)
        return sorted(changes, key=lambda change: change.sequence)

    def files(self) -> list[Path]:
        """The files there are, in their order."""
        return sorted(
            file for file in self.path.iterdir()
            if file.suffix in (".jsonl", ".parquet") and not file.name.startswith((".", "_"))
        )  # fmt: skip

    def _read(self, file: Path, sequence: int) -> tuple[list[Change], str]:
        """The new changes of a file, and what is not whole in it."""
        status = file.stat()
        known = self._known.get(file.name)
        if known is None or known.last > sequence:
            known = _Known((-1, -1))
        signature = (status.st_size, status.st_mtime_ns)
        is_jsonl = file.suffix == ".jsonl"
        if known.signature == signature:
            return [], "" if not is_jsonl or known.read_bytes == status.st_size else _HALF_A_LINE
        if is_jsonl:
            changes, read_bytes = _read_lines(file, known.read_bytes, sequence)
        else:
            changes, read_bytes = list(_read_table(file, sequence)), status.st_size
        last = max([known.last, sequence, *(change.sequence for change in changes)])
        self._known[file.name] = _Known(signature, read_bytes, last)
        return changes, "" if read_bytes >= status.st_size else _HALF_A_LINE


def _trouble(error: Exception) -> str:
    """Why a file is waited for; what the system says has a number, what Arrow says has none."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read ({error}); let your user read it"
    return f"is not whole: {str(error).strip()}"


_HALF_A_LINE = "its last line does not end"
_BLOCK = 1 << 16


def change_of(held: Any, place: str) -> Change:
    """The change that a row or a JSON object stands for."""
    raw = dict(held) if isinstance(held, dict) else {}
    sequence = raw.pop("sequence", None)
    id = raw.get("id")
    number = _whole(sequence)
    text = json.dumps(held, default=str, ensure_ascii=False)
    name = id if isinstance(id, str) else ""
    try:
        if not 0 < number <= _LAST_SEQUENCE:
            number = 0
            raise InvalidSubscription(
                f"sequence {sequence!r} is not a whole number from 1 to 2^63-1"
            )
        op = raw.pop("op", None) or "upsert"
        if op not in _OPS:
            raise InvalidSubscription(f"op {op!r} is not one of {', '.join(_OPS)}")
        if op == "delete":
            if not name:
                raise InvalidSubscription(f"subscription id {id!r} is not a non-empty text")
            name.encode()  # raises for half a surrogate pair, which JSON can spell
            return Change(number, name, None, "", place, text)
        return Change(number, name, subscription_of(raw), "", place, text)
    except (TamisError, TypeError, ValueError) as error:
        return Change(number, name, None, str(error) or repr(error), place, text)


def _whole(sequence: Any) -> int:
    """A whole number, also one that a database holds as a decimal; 0 for what is none."""
    if isinstance(sequence, Decimal) and sequence == sequence.to_integral_value():
        return int(sequence)
    return sequence if isinstance(sequence, int) and not isinstance(sequence, bool) else 0


def change_in(line: bytes, place: str) -> Change:
    """The change that a line of a file stands for."""
    try:
        return change_of(load_json(line), place)
    except (ValueError, RecursionError) as error:
        text = line.decode(errors="replace")
        return Change(0, "", None, f"the line is not JSON: {error}", place, text)


def lines_of(file: Path, first: int, last: int) -> Iterator[tuple[bytes, str]]:
    """The lines of a part of a file that begins and ends at a line, and the place of each."""
    with file.open("rb") as opened:
        opened.seek(first)
        content = opened.read(last - first)
    # Not splitlines, which ends a line at a carriage return as well: to JSON that is a space.
    for line in content.split(b"\n"):
        if line.strip():
            yield line, f"{file.name}, byte {first}"
        first += len(line) + 1


def rows_of(table: pa.Table, first: int, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of a table that begins at a row of a file, and the place of each."""
    names = [name for name in ("sequence", "op", *FIELDS) if name in table.column_names]
    for number, row in enumerate(dicts_of(table.select(names)), first):
        yield row, f"{name}, row {number}"


def end_of_lines(file: Path) -> int:
    """How many bytes the whole lines of a file have."""
    with file.open("rb") as opened:
        end = opened.seek(0, 2)
        while end:
            first = max(0, end - _BLOCK)
            opened.seek(first)
            found = opened.read(end - first).rfind(b"\n")
            if found >= 0:
                return first + found + 1
            end = first
    return 0


def _read_lines(file: Path, first: int, sequence: int) -> tuple[list[Change], int]:
    """The changes in the whole lines after some bytes, and how far those lines go."""
    last = end_of_lines(file)
    lines = lines_of(file, first, last)
    changes = [change_in(*one) for one in lines if not _is_known(one[0], sequence)]
    return changes, max(first, last)


def _is_known(line: bytes, sequence: int) -> bool:
    """Whether a line is a change up to a sequence; after a restart most are, and cost little."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(held, dict) and 0 < _whole(held.get("sequence")) <= sequence


def _read_table(file: Path, sequence: int) -> Iterator[Change]:
    table = pq.read_table(file)
    try:
        check_columns(table.column_names)
    except InvalidSubscription as error:
        yield Change(0, "", None, str(error), file.name)
        return
    for row, place in rows_of(table, 0, file.name):
        if not 0 < _whole(row["sequence"]) <= sequence:
            yield change_of(row, place)


def check_columns(names: list[str]) -> None:
    """Raise InvalidSubscription if a table of changes lacks a column that it must have.

    Where there is no ``op`` all of them save a subscription, and so must have a filter.
    """
    needed = ("sequence", "id") if "op" in names else ("sequence", "id", "filter")
    absent = [name for name in needed if name not in names]
    if absent:
        raise InvalidSubscription(
            f"the changes have no column {absent[0]!r}; they have {', '.join(names)}"
        )
