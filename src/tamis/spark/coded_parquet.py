"""Coded Parquet: files whose columns are all positions in dictionaries, written as they are.

Arrow's writer takes such columns too, but learns every dictionary anew for every row group and
packs positions at 10 ns each; see docs/decisions/0018-coded-parquet.md. What is written here are
plain Parquet files of the first version of pages, which every reader knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.kernels.packing import MAX_PACKED, MIN_RUN, pack, pack_runs, put_lengths, room_for
from tamis.spark.thrift import Value, i32, i64, items, struct, text

_MAGIC = b"PAR1"
_PAGE = 1 << 18  # rows

# As parquet.thrift numbers them.
_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_UTF8, _TIMESTAMP_MICROS, _INT_8 = 0, 10, 15
_REQUIRED, _OPTIONAL = 0, 1
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_UNCOMPRESSED, _LZ4_RAW = 0, 7

Codes = npt.NDArray[np.int32]
Page = bytes | memoryview


class Runs(NamedTuple):
    """A code for several rows: those of run i end before row ``ends[i]``; a run may be empty."""

    codes: Codes
    ends: npt.NDArray[np.int64]

    def part(self, first: int, last: int) -> Runs:
        """The runs of rows first to last."""
        left = np.searchsorted(self.ends, first, "right")
        right = np.searchsorted(self.ends, last, "left")
        ends = np.minimum(self.ends[left : right + 1], last) - first
        return Runs(self.codes[left : right + 1], ends)

    def of_rows(self) -> Codes:
        """The code of each row."""
        return np.repeat(self.codes, np.diff(self.ends, prepend=0))


class Column(NamedTuple):
    """Values by their positions in a dictionary."""

    values: pa.Array  # without nulls, no value twice
    codes: Codes | Runs  # of each row, -1 for a null


class Kind(NamedTuple):
    """How values of an Arrow type are written."""

    physical: int
    converted: int | None  # what they mean, if the physical type does not say it


_KINDS = {
    pa.string(): Kind(_BYTE_ARRAY, _UTF8),
    pa.binary(): Kind(_BYTE_ARRAY, None),
    pa.int8(): Kind(_INT32, _INT_8),
    pa.int64(): Kind(_INT64, None),
    pa.timestamp("us", "UTC"): Kind(_INT64, _TIMESTAMP_MICROS),
}


class CodedWriter:
    """A file that row groups are appended to; it is whole once it is closed.

    ``schema``: fields of the types in ``_KINDS``. ``uncompressed``: columns whose pages stay as
    they are.
    """

    def __init__(self, path: Path, schema: pa.Schema, uncompressed: frozenset[str]) -> None:
        self._file = path.open("wb")
        self._schema, self._uncompressed = schema, uncompressed
        self._lz4 = pa.Codec("lz4_raw")
        self._words = np.empty(MAX_PACKED // 2, np.uint64)
        self._packed = np.empty(1 + room_for(_PAGE, 32), np.uint8)
        self._row_groups: list[Value] = []
        self._n_rows = 0
        self._file.write(_MAGIC)

    def write(self, columns: list[Column], n_rows: int) -> None:
        """Append a row group of one row at least, with the columns of the schema."""
        start, chunks, n_bytes = self._file.tell(), [], 0
        for field, column in zip(self._schema, columns, strict=True):
            chunk, n_own = self._write_column(field, column, n_rows)
            chunks.append(chunk)
            n_bytes += n_own
        size = self._file.tell() - start
        fields = {1: items(chunks), 2: i64(n_bytes), 3: i64(n_rows), 6: i64(size)}
        self._row_groups.append(struct(fields))
        self._n_rows += n_rows

    def close(self) -> None:
        """Write what the file says of itself."""
        fields = {
            1: i32(1),
            2: items([_root(self._schema), *map(_element, self._schema)]),
            3: i64(self._n_rows),
            4: items(self._row_groups),
            6: text("tamis"),
        }
        footer = struct(fields).encoded
        self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        self._file.close()

    def _write_column(self, field: pa.Field, column: Column, n_rows: int) -> tuple[Value, int]:
        """Write the pages of a column; what is said of them, and their bytes uncompressed."""
        codec = _UNCOMPRESSED if field.name in self._uncompressed else _LZ4_RAW
        start, n_values = self._file.tell(), len(column.values)
        said = struct({1: i32(n_values), 2: i32(_PLAIN)})
        plain = _plain(column.values)
        n_bytes = self._write_page(_DICTIONARY_PAGE, {7: said}, plain, codec)
        first_page = self._file.tell()
        for n, page in self._pages(field, column, n_rows):
            said = struct({1: i32(n), 2: i32(_RLE_DICTIONARY), 3: i32(_RLE), 4: i32(_RLE)})
            n_bytes += self._write_page(_DATA_PAGE, {5: said}, page, codec)
        fields = {
            1: i32(_KINDS[field.type].physical),
            2: items([i32(_PLAIN), i32(_RLE), i32(_RLE_DICTIONARY)]),
            3: items([text(field.name)]),
            4: i32(codec),
            5: i64(n_rows),
            6: i64(n_bytes),
            7: i64(self._file.tell() - start),
            9: i64(first_page),
            11: i64(start),
        }
        return struct({2: i64(start), 3: struct(fields)}), n_bytes

    def _pages(self, field: pa.Field, column: Column, n_rows: int) -> Iterator[tuple[int, Page]]:
        """The rows of a column, some at a time: how many, and their page until the next."""
        width, codes = max(1, (len(column.values) - 1).bit_length()), column.codes
        for first in range(0, n_rows, _PAGE):
            last = min(first + _PAGE, n_rows)
            if isinstance(codes, Runs):
                part = codes.part(first, last)
                is_long = not field.nullable and len(part.codes) * MIN_RUN <= last - first
                some = part if is_long else part.of_rows()
            else:
                some = codes[first:last]
            yield last - first, self._page(field, some, width)

    def _page(self, field: pa.Field, codes: Codes | Runs, width: int) -> Page:
        """Which rows are there, if nulls may be, and the codes of those."""
        if isinstance(codes, Runs) or not field.nullable:
            return self._pack(codes, width)
        is_there = codes >= 0
        levels = self._pack(is_there.astype(np.int32), 1)[1:].tobytes()
        return b"".join(
            (len(levels).to_bytes(4, "little"), levels, self._pack(codes[is_there], width))
        )

    def _pack(self, codes: Codes | Runs, width: int) -> memoryview:
        """The width, and the codes in so many bits."""
        self._packed[0], out = width, self._packed[1:]
        if isinstance(codes, Runs):
            n_bytes = pack_runs(codes.codes, codes.ends, width, out)
        else:
            n_bytes = pack(codes, 0, len(codes), width, self._words, out)
        return self._packed[: 1 + n_bytes].data

    def _write_page(self, kind: int, said: dict[int, Value], page: Page, codec: int) -> int:
        """Write a page with its header; how many bytes they are before they are compressed."""
        held = self._lz4.compress(page, asbytes=True) if codec == _LZ4_RAW else page
        fields = {1: i32(kind), 2: i32(len(page)), 3: i32(len(held)), **said}
        header = struct(fields).encoded
        self._file.write(header)
        self._file.write(held)
        return len(header) + len(page)


def _root(schema: pa.Schema) -> Value:
    return struct({4: text("schema"), 5: i32(len(schema))})


def _element(field: pa.Field) -> Value:
    kind = _KINDS[field.type]
    fields = {
        1: i32(kind.physical),
        3: i32(_OPTIONAL if field.nullable else _REQUIRED),
        4: text(field.name),
    }
    if kind.converted is not None:
        fields[6] = i32(kind.converted)
    return struct(fields)


def _plain(values: pa.Array) -> bytes:
    """The values one after the other."""
    kind = _KINDS[values.type]
    if kind.physical == _BYTE_ARRAY:
        _, offsets, letters = values.buffers()
        starts = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
        held = np.frombuffer(letters, np.uint8) if letters else np.zeros(0, np.uint8)
        out = np.empty(4 * len(values) + int(starts[-1] - starts[0]), np.uint8)
        put_lengths(starts, held, out)
        return out.tobytes()
    numbers: npt.NDArray[np.int64] = values.cast(pa.int64()).to_numpy()
    return numbers.astype("<i8" if kind.physical == _INT64 else "<i4").tobytes()
