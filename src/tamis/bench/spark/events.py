"""Events of a workload as files and DataFrames."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.bench.workloads import Workload

TIME = pa.timestamp("us", "UTC")


def events_table(
    workload: Workload, first: int, n_events: int, with_time: bool = False
) -> pa.Table:
    """Events from a number on, those of the workload over and over; ``id`` is their number."""
    numbers = np.arange(first, first + n_events)
    values = workload.values[numbers % len(workload.values)]
    columns: dict[str, Any] = {"id": [f"e{number}" for number in numbers]}
    if with_time:
        columns["time"] = pa.array([datetime.now(UTC)] * n_events, TIME)
    for a, name in enumerate(workload.attributes):
        columns[name] = pa.array(values[:, a], from_pandas=True)
    return pa.table(columns)


def write_events(table: pa.Table, folder: Path, n_files: int) -> None:
    """Write events as files of equal size, so that each task of a job has one."""
    folder.mkdir(parents=True)
    size = -(-table.num_rows // n_files)
    for number in range(n_files):
        pq.write_table(table.slice(number * size, size), folder / f"{number:04}.parquet")


def put(table: pa.Table, folder: Path, name: str) -> None:
    """Put a file of events into a folder that is being watched: whole, or not at all."""
    aside = folder / f".{name}"
    pq.write_table(table, aside)
    aside.rename(folder / name)
