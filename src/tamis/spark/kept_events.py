"""Events that stay valid, as the tasks of a stream keep them: Parquet, an event a row as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.model import Event
from tamis.model.event_arrow import values_of
from tamis.spark.events import TIMESTAMP, Events

__all__ = ["lasting_events", "read_kept", "valid_events", "write_kept"]


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


def write_kept(path: Path, events: list[Event]) -> None:
    """Write events to a file."""
    texts = [json.dumps(event.to_json(), ensure_ascii=False) for event in events]
    untils = pa.array([event.until for event in events], TIMESTAMP)
    pq.write_table(pa.table({"until": untils, "event": pa.array(texts, pa.string())}), path)


def read_kept(path: Path, now: np.datetime64) -> list[Event]:
    """The events in a file that are still valid."""
    table = pq.read_table(path)
    valid = table.filter(pc.greater(table["until"], _moment(now)))
    return [Event.from_json(text) for text in valid["event"].to_pylist()]


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
