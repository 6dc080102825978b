"""Files of positions in dictionaries: what is written is what every reader reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.kernels.packing import MAX_PACKED, MIN_RUN, pack, room_for
from tamis.spark import coded_parquet, thrift
from tamis.spark.coded_parquet import CodedWriter, Column, Runs

SCHEMA = pa.schema(
    [
        pa.field("text", pa.string(), nullable=False),
        pa.field("bytes", pa.binary()),
        pa.field("small", pa.int8(), nullable=False),
        pa.field("large", pa.int64(), nullable=False),
        pa.field("moment", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
TEXTS = ["", "a", "é", "日本", "\0", "a" * 300]
NUMBERS = [0, -1, 2**53 + 1, -(2**63), 2**63 - 1]


def column_of(field: pa.Field, values: list[Any]) -> Column:
    held = pa.array(values, field.type).dictionary_encode()
    return Column(held.dictionary, held.indices.fill_null(-1).to_numpy().astype(np.int32))


def write(path: Path, groups: list[pa.Table], uncompressed: frozenset[str]) -> None:
    writer = CodedWriter(path, SCHEMA, uncompressed)
    for group in groups:
        columns = [column_of(field, group[field.name].to_pylist()) for field in SCHEMA]
        writer.write(columns, len(group))
    writer.close()


def tables(n_rows: int, draw: np.random.Generator) -> pa.Table:
    """Rows with runs and without, of every type."""
    lengths = draw.integers(1, 40, n_rows)
    runs = np.repeat(draw.integers(0, len(TEXTS), n_rows), lengths)[:n_rows]
    mixed = draw.integers(0, len(NUMBERS), n_rows)
    return pa.table(
        {
            "text": [TEXTS[i] for i in runs],
            "bytes": [None if i % 3 == 0 else bytes([i % 256]) * (i % 5) for i in mixed + runs],
            "small": [int(i) - 128 for i in draw.integers(0, 256, n_rows)],
            "large": [NUMBERS[i] for i in mixed],
            "moment": [1_000_000 * int(i) for i in mixed],
        },
        schema=SCHEMA,
    )


@pytest.mark.parametrize("uncompressed", [frozenset[str](), frozenset({"text", "bytes", "large"})])
@pytest.mark.parametrize("page", [1 << 18, 64, 7])
def test_every_reader_reads_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uncompressed: frozenset[str], page: int
) -> None:
    monkeypatch.setattr(coded_parquet, "_PAGE", page)
    draw = np.random.default_rng(page)
    groups = [tables(n_rows, draw) for n_rows in (1, 7, 8, 9, 64, 1000)]
    path = tmp_path / "coded.parquet"
    write(path, groups, uncompressed)
    wanted = pa.concat_tables(groups)
    read = pq.read_table(path)
    assert read.schema.equals(SCHEMA)
    assert read.equals(wanted)
    said = pq.ParquetFile(path).metadata
    assert said.num_row_groups == len(groups)
    for number in range(len(groups)):
        group = said.row_group(number)
        columns = [group.column(i) for i in range(group.num_columns)]
        assert group.total_byte_size == sum(one.total_uncompressed_size for one in columns)
    assert pl.read_parquet(path).to_arrow().cast(SCHEMA).equals(wanted)
    assert duckdb.read_parquet(str(path)).to_arrow_table().cast(SCHEMA).equals(wanted)


def test_nothing_but_nulls_and_nothing_at_all(tmp_path: Path) -> None:
    empty, nulls = tmp_path / "empty.parquet", tmp_path / "nulls.parquet"
    write(empty, [], frozenset())
    assert pq.read_table(empty).equals(SCHEMA.empty_table())
    assert duckdb.read_parquet(str(empty)).fetchall() == []
    table = tables(20, np.random.default_rng(0))
    table = table.set_column(1, SCHEMA.field("bytes"), pa.nulls(20, pa.binary()))
    write(nulls, [table], frozenset())
    assert pq.read_table(nulls).equals(table)
    assert pl.read_parquet(nulls)["bytes"].null_count() == 20
    assert len(duckdb.read_parquet(str(nulls)).fetchall()) == 20


def test_one_code_for_all_rows_and_a_slice_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coded_parquet, "_PAGE", 10)
    writer = CodedWriter(tmp_path / "x.parquet", pa.schema([SCHEMA.field("text")]), frozenset())
    some = pa.array(["no", "yes", "or", "not"])[1:3]
    writer.write([Column(some, Runs(np.array([1], np.int32), np.array([25])))], 25)
    writer.write([Column(some, Runs(np.array([0], np.int32), np.array([20])))], 20)
    writer.close()
    assert pq.read_table(tmp_path / "x.parquet")["text"].to_pylist() == ["or"] * 25 + ["yes"] * 20


@pytest.mark.parametrize("page", [1 << 18, 64, 7])
@pytest.mark.parametrize("lengths", [(0, 1, 2), (0, 1, 400), (15, 16, 17), (300, 700)])
def test_runs_are_what_their_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: tuple[int, ...], page: int
) -> None:
    monkeypatch.setattr(coded_parquet, "_PAGE", page)
    draw = np.random.default_rng(page)
    ends = np.cumsum(draw.choice(lengths, 40))
    n_rows = int(ends[-1])
    codes = draw.integers(0, len(TEXTS), 40).astype(np.int32)
    nulls = np.where(codes == 3, np.int32(-1), codes)
    schema = pa.schema([SCHEMA.field("text"), SCHEMA.field("bytes")])
    columns = [
        Column(pa.array(TEXTS), Runs(codes, ends)),
        Column(pa.array([text.encode() for text in TEXTS]), Runs(nulls, ends)),
    ]
    path = tmp_path / "x.parquet"
    writer = CodedWriter(path, schema, frozenset())
    writer.write(columns, n_rows)
    writer.close()
    of_rows = np.repeat(codes, np.diff(ends, prepend=0))
    wanted = [[TEXTS[code], None if code == 3 else TEXTS[code].encode()] for code in of_rows]
    for table in (
        pq.read_table(path),
        pl.read_parquet(path).to_arrow(),
        duckdb.read_parquet(str(path)).to_arrow_table(),
    ):
        assert [list(row.values()) for row in table.to_pylist()] == wanted


def unpacked(packed: bytes, width: int) -> list[int]:
    """The numbers of a hybrid, read as the format describes it."""
    numbers: list[int] = []
    at = 0
    while at < len(packed):
        head = shift = 0
        while True:
            head |= (packed[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if packed[at - 1] < 128:
                break
        if head & 1:
            n_bytes = (head >> 1) * width
            bits = int.from_bytes(packed[at : at + n_bytes], "little")
            many = range(0, 8 * n_bytes, width)
            numbers += [bits >> first & (1 << width) - 1 for first in many]
        else:
            n_bytes = -(-width // 8)
            numbers += [int.from_bytes(packed[at : at + n_bytes], "little")] * (head >> 1)
        at += n_bytes
    return numbers


RUNS = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.sampled_from([1, 1, 2, 7, 8, 9, MIN_RUN, 200])),
    max_size=60,
)


@given(width=st.integers(1, 31), runs=RUNS, first=st.integers(0, 5))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_numbers_come_back(width: int, runs: list[tuple[int, int]], first: int) -> None:
    held = [number % (1 << width) for number, length in runs for _ in range(length)]
    codes, last = np.array(held, np.int32), max(first, len(held) - first)
    last = min(last, len(held))
    first = min(first, last)
    out = np.full(room_for(last - first, width) + 8, 255, np.uint8)
    n_bytes = pack(codes, first, last, width, np.empty(MAX_PACKED // 2, np.uint64), out)
    assert n_bytes <= room_for(last - first, width)
    assert (out[n_bytes + 1 :][-8:] == 255).all()
    assert unpacked(out[:n_bytes].tobytes(), width)[: last - first] == held[first:last]


@pytest.mark.parametrize("n", [MAX_PACKED - 1, MAX_PACKED, MAX_PACKED + 1, 3 * MAX_PACKED + 5])
def test_more_numbers_than_one_header_holds(n: int) -> None:
    codes = np.random.default_rng(n).integers(0, 1 << 20, n).astype(np.int32)
    out = np.empty(room_for(n, 20), np.uint8)
    n_bytes = pack(codes, 0, n, 20, np.empty(MAX_PACKED // 2, np.uint64), out)
    assert unpacked(out[:n_bytes].tobytes(), 20)[:n] == codes.tolist()


def test_long_lists_and_negative_numbers() -> None:
    assert thrift.items([thrift.i32(0)] * 14).encoded == bytes([14 << 4 | 5]) + bytes(14)
    assert thrift.items([thrift.i32(0)] * 15).encoded == bytes([15 << 4 | 5, 15]) + bytes(15)
    assert [thrift.i64(n).encoded for n in (0, -1, 1, 63, -64, 64)] == [
        b"\0", b"\1", b"\2", b"\x7e", b"\x7f", b"\x80\1",
    ]  # fmt: skip
