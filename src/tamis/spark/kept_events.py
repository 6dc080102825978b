"""Events that stay valid, as the tasks of a stream keep them: Parquet, an event a row as JSON.

Of events that are not kept the id is there, as they replace what was kept under it before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.model import Event
from tamis.model.event_arrow import values_of
from tamis.spark.events import TIMESTAMP, Events

__all__ = [
    "lasting_events",
    "passing_ids",
    "read_kept",
    "read_untils",
    "valid_events",
    "write_kept",
]


def valid_events(events: Events, now: np.datetime64) -> Events:
    """The events whose validity has not ended."""
    is_over = pc.fill_null(pc.less_equal(events.untils, _moment(now)), False)
    if not pc.any(is_over).as_py():
        return events
    return events.take(np.flatnonzero(~is_over.to_numpy(zero_copy_only=False)))


def lasting_events(events: Events) -> Iterator[Event]:
    """The events that have a validity."""
    has_end = events.untils.is_valid().to_numpy(zero_copy_only=False)
    if not has_end.any():
        return
    lasting = events.take(np.flatnonzero(has_end))
    columns = (lasting.ids, lasting.times, lasting.untils, lasting.payloads)
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    for (id, time, until, payload), attributes in zip(rows, _attributes(lasting), strict=True):
        yield Event(id, attributes, payload or b"", time, until)


def passing_ids(events: Events, now: np.datetime64) -> pa.Array:
    """The ids of the events that are not kept: they have no validity, or it has ended."""
    is_kept = pc.fill_null(pc.greater(events.untils, _moment(now)), False)
    return events.ids.filter(pc.invert(is_kept))


def write_kept(
    path: Path, events: list[Event], passing: list[pa.Array], now: np.datetime64
) -> None:
    """Write events to a file, and the ids of others, which end as they come."""
    texts = [json.dumps(event.to_json(), ensure_ascii=False) for event in events]
    n_passing = sum(map(len, passing))
    columns = {
        "id": [pa.array([event.id for event in events], pa.string()), *passing],
        "until": [
            pa.array([event.until for event in events], TIMESTAMP),
            pa.repeat(_moment(now), n_passing),
        ],
        "event": [pa.array(texts, pa.string()), pa.nulls(n_passing, pa.string())],
    }
    pq.write_table(pa.table({n: pa.chunked_array(held) for n, held in columns.items()}), path)


def read_kept(path: Path, now: np.datetime64) -> tuple[list[str], list[Event]]:
    """The ids of all events in a file, and those events that are still valid."""
    table = pq.read_table(path)
    valid = table.filter(pc.greater(table["until"], _moment(now)))
    return _ids_in(table), [Event.from_json(text) for text in valid["event"].to_pylist()]


def read_untils(path: Path) -> dict[str, int]:
    """The ids of all events in a file, and in which microsecond the last one of each expires."""
    has_ids = "id" in pq.read_schema(path).names
    table = pq.read_table(path, columns=["id" if has_ids else "event", "until"])
    untils = table["until"].cast(pa.int64()).to_pylist()
    return dict(sorted(zip(_ids_in(table), untils, strict=True), key=itemgetter(1)))


def _ids_in(table: pa.Table) -> list[str]:
    if "id" not in table.column_names:  # a file of a Tamis that kept nothing but valid events
        return [json.loads(text)["id"] for text in table["event"].to_pylist()]
    ids: list[str] = table["id"].to_pylist()
    return ids


def _attributes(events: Events) -> Iterator[Any]:
    held = events.attributes
    if isinstance(held, list):
        yield from (one.attributes for one in held)
        return
    columns = [values_of(column) for column in held.values()]
    for row in zip(*columns, strict=True):
        yield {name: one for name, one in zip(held, row, strict=True) if one is not None}


def _moment(now: np.datetime64) -> pa.Scalar:
    return pa.scalar(int(now.astype("M8[us]").astype(np.int64)), pa.int64()).cast(TIMESTAMP)
