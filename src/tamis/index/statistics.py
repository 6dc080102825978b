"""Statistics: what an index holds, what it costs, and which subscriptions stand out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.index.archive import Archive
from tamis.index.blocks import Array, Block
from tamis.index.engine import Engine
from tamis.index.revision import Place
from tamis.index.state import State
from tamis.kernels.scan import Boxes
from tamis.slots.columns import Columns
from tamis.slots.encoding import Encoded, Vector
from tamis.slots.texts import Texts

N_SHOWN = 10
N_SAMPLED = 256
SAMPLE_EVERY = 16

_SLOT_BYTES, _CONSTRAINT_BYTES = 16, 20  # of the head: start, tests and row; column and bounds


class Observer:
    """Remembers a few of the events that passed, and how often filters had to be asked."""

    def __init__(self) -> None:
        self.n_asked: Counter[int] = Counter()
        self._is_next_kept = cycle([True] + [False] * (SAMPLE_EVERY - 1)).__next__
        self._sample: deque[Vector] = deque(maxlen=N_SAMPLED)

    def notice(self, vector: Vector) -> None:
        """An event passed."""
        if self._is_next_kept():
            self._sample.append(vector)

    def notice_batch(self, vectors: Array | Sequence[Vector]) -> None:
        """Many events passed."""
        some = vectors[:: max(1, len(vectors) // SAMPLE_EVERY)]
        self._sample.extend(vector.copy() for vector in some)

    def sample(self, n_columns: int) -> list[Vector]:
        """Events that passed, as wide as the columns there are now."""
        padded = []
        for vector in list(self._sample):
            wide = np.full(n_columns, np.nan)
            wide[: len(vector)] = vector
            padded.append(wide)
        return padded


def describe(
    engine: Engine,
    columns: Columns,
    ids: Texts,
    archive: Archive,
    observer: Observer,
    n_living: int,
) -> dict[str, Any]:
    """What ``Index.stats`` tells."""
    state = engine.state
    n_events, rows = broadest(engine, state, columns, observer)
    asked = observer.n_asked.most_common(N_SHOWN)
    memory = {
        "blocks": sum(block.memory_bytes() for block in state.blocks),
        "head": sum(array.nbytes for array in state.head.bounds),
        "express": engine.search.expresses.memory_bytes(),
        "moving": 0 if engine.moving is None else engine.moving.memory_bytes(),
        "rows": engine.rows.memory_bytes(),
        "ids": ids.memory_bytes(),
        "subscriptions": archive.memory_bytes(),
        "texts": sum(texts.memory_bytes() for *_, texts in columns.dictionaries()),
    }
    return {
        "n_subscriptions": n_living,
        "n_dead": state.n_rows - n_living,
        "n_shared": engine.rows.n_followers,
        "shared_bytes": count_shared_bytes(engine, state),
        "n_moving": 0 if engine.moving is None else engine.moving.n_movers,
        "n_slots": state.n_slots,
        "n_unbounded": count_unbounded(state),
        "n_head_slots": state.head.n_slots,
        "n_columns": len(columns),
        "version": state.version,
        "blocks": blocks_of(state),
        "memory": {**memory, "total": sum(memory.values())},
        "n_events_sampled": n_events,
        "broadest": [{"id": ids.text_of(row), "n_matched": n} for row, n in rows],
        "costliest": [{"id": ids.text_of(row), "n_asked": n} for row, n in asked],
    }


def count_shared_bytes(engine: Engine, state: State) -> int:
    """What the slots of all followers would take, at what a slot takes where their leader is."""
    if not engine.rows.n_followers:
        return 0
    n_others = np.maximum(engine.rows.n_others(np.arange(state.n_rows, dtype=np.int32)), 0)
    n_bytes = 0.0
    for block in state.blocks:
        rows = block.row_of_slot if len(block.row_of_slot) else slice(block.n_slots)
        n_bytes += float(n_others[rows].sum()) * block.memory_bytes() / block.n_slots
    in_head = n_others[state.head.row_of_slot[: state.head.n_slots]]
    n_constraints = np.diff(state.head.starts)
    return round(n_bytes) + int((in_head * (_SLOT_BYTES + _CONSTRAINT_BYTES * n_constraints)).sum())


def blocks_of(state: State) -> list[dict[str, Any]]:
    """Each block: what it is and how large."""
    return [
        {
            "kind": block.kind,
            "n_slots": block.n_slots,
            "n_columns": len(_columns_of(block)),
            "memory_bytes": block.memory_bytes(),
        }
        for block in state.blocks
    ]


def count_unbounded(state: State) -> int:
    """How many slots have no constraint, so that every event must be checked against them."""
    n_unbounded = 0
    for block in state.blocks:
        if not isinstance(block.bounds, Boxes):
            n_unbounded += int((np.diff(block.bounds.start) == 0).sum())
    return n_unbounded + int((np.diff(state.head.starts) == 0).sum())


def broadest(
    engine: Engine, state: State, columns: Columns, observer: Observer
) -> tuple[int, list[tuple[int, int]]]:
    """How many recent events were looked at, and the rows that most of them match, with counts.

    Rows whose filter has to be asked are not counted here.
    """
    events = observer.sample(len(columns))
    counts = np.zeros(state.n_rows, np.int64)
    for vector in events:
        rows = engine.search.match(state, Encoded(vector), _nobody)
        counts += np.bincount(rows, minlength=state.n_rows)
    top: npt.NDArray[np.int64] = np.argsort(-counts, kind="stable")[:N_SHOWN]
    return len(events), [(int(row), int(counts[row])) for row in top if counts[row]]


def _nobody(leader: int, there: Place | None = None) -> bool:
    """No filter is asked."""
    return False


def _columns_of(block: Block) -> Array:
    bounds = block.bounds
    return bounds.columns if isinstance(bounds, Boxes) else np.unique(bounds.column)
