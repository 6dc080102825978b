"""Many events at once, in whatever form a user has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tamis.errors import InvalidEvent, TamisError
from tamis.language.evaluate import attributes_of
from tamis.model.event_arrow import rows_of
from tamis.values import Attributes


def attributes_of_batch(events: Any) -> list[Attributes]:
    """The attributes of each event in an Arrow table, a pandas frame, a dict of arrays or a list.

    >>> attributes_of_batch({"price": [1, None], "tag": ["a", "b"]})
    [{'price': (1,), 'tag': ('a',)}, {'tag': ('b',)}]
    """
    rows: Iterable[Any]
    if isinstance(events, pa.Table | pa.RecordBatch):
        rows = rows_of(events)
    elif hasattr(events, "iloc") and hasattr(events, "columns"):  # a pandas frame
        rows = rows_of(pa.Table.from_pandas(events, preserve_index=False))
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


def _rows_of_arrays(arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    lengths = {name: len(array) for name, array in arrays.items() if hasattr(array, "__len__")}
    if len(lengths) < len(arrays) or len(set(lengths.values())) > 1:
        raise InvalidEvent(f"a dict of arrays needs arrays of one length; given {lengths}")
    names = list(arrays)
    return [dict(zip(names, row, strict=True)) for row in zip(*arrays.values(), strict=True)]
