"""Many events at once, in whatever form a user has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import InvalidEvent, TamisError, quoted
from tamis.model.event_arrow import EventColumns, events_from_arrow, rows_of, values_of
from tamis.values import Attributes, attributes_of


def attributes_of_batch(events: Any) -> list[Attributes]:
    """The attributes of each event in an Arrow table, a pandas frame, a dict of arrays or a list.

    >>> attributes_of_batch({"price": [1, None], "tag": ["a", "b"]})
    [{'price': (1,), 'tag': ('a',)}, {'tag': ('b',)}]
    """
    rows: Iterable[Any]
    if isinstance(events, pa.Table | pa.RecordBatch):
        rows = _rows_of_table(events)
    elif hasattr(events, "iloc") and hasattr(events, "columns"):  # a pandas frame
        rows = _rows_of_table(table_of_frame(events))
    elif isinstance(events, Mapping):
        rows = _rows_of_arrays(events)
    elif isinstance(events, Iterable) and not isinstance(events, str | bytes):
        rows = events
    else:
        raise InvalidEvent(
            f"{type(events).__name__} is not a batch of events; expected an Arrow table, a pandas "
            "frame, a dict of arrays, or a list of dicts or Events"
        )
    batch = []
    for position, row in enumerate(rows):
        try:
            batch.append(attributes_of(row))
        except TamisError as error:
            raise InvalidEvent(f"event {position} of the batch: {error}") from None
        except AttributeError:
            raise InvalidEvent(
                f"event {position} of the batch is {type(row).__name__}; expected a dict or Event"
            ) from None
    return batch


def _rows_of_table(table: pa.Table | pa.RecordBatch) -> Iterable[Any]:
    """Rows of attributes, or whole events where the table has their columns."""
    if EventColumns().id in table.schema.names:
        return events_from_arrow(table)
    return rows_of(table)


def table_of_frame(frame: Any) -> pa.Table:
    """A pandas frame as an Arrow table."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidEvent(f"the frame cannot be read: {error}; a column holds one kind") from None


def _rows_of_arrays(arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, array in arrays.items():
        is_flat = getattr(array, "ndim", 1) == 0
        if isinstance(array, _NO_ARRAYS) or is_flat or not hasattr(array, "__len__"):
            raise InvalidEvent(
                f"{quoted(name)} is {type(array).__name__}, not an array with a value an event; "
                "put a single event into a list"
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidEvent(f"a dict of arrays needs arrays of one length; given {lengths}")
    columns = [_plain(name, array) for name, array in arrays.items()]
    return [dict(zip(arrays, row, strict=True)) for row in zip(*columns, strict=True)]


# These have a length, but it does not count events.
_NO_ARRAYS = (str, bytes, Mapping, Set)


def _plain(name: str, array: Any) -> Any:
    if isinstance(array, np.ma.MaskedArray):
        return array.tolist()  # what is masked becomes None
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        return array
    try:
        return values_of(array)
    except TamisError as error:
        raise InvalidEvent(f"the array {quoted(name)} cannot be read: {error}") from None
