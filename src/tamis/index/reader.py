"""Reader: events on their way to the rows of the subscriptions they satisfy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.index.asking import Asker, Asking
from tamis.index.batch import Vectors, match_vectors, plain_vectors
from tamis.index.matches import MatchSet
from tamis.index.matrix import Matrix, is_in_domains, matrix_of
from tamis.index.revision import Ask
from tamis.index.saved import Saved
from tamis.index.state import State
from tamis.index.statistics import Observer
from tamis.model import Schema, attributes_of_batch
from tamis.slots.encoding import Encoded, Vector
from tamis.values import Attributes, HasAttributes, attributes_of

MIN_BATCH = 8  # fewer events are matched one by one

_NOBODY: npt.NDArray[np.int32] = np.zeros(0, np.int32)


class Reader:
    """Who matches; each match works on one state, whatever a writer does meanwhile."""

    def __init__(
        self, schema: Schema | None, saved: Saved, asking: Asking, observer: Observer
    ) -> None:
        self._schema, self._saved, self._asking, self._observer = schema, saved, asking, observer
        self._engine, self._columns, self._ids = saved.engine, saved.columns, saved.ids

    def match(
        self, state: State, event: HasAttributes | Mapping[str, Any]
    ) -> npt.NDArray[np.int32]:
        """The rows of an event; a view that this thread's next match overwrites."""
        search = self._engine.search
        if type(event) is not dict or (vector := self._encode_quickly(event)) is None:
            return search.match(state, *self._encode(event))
        if (only := state.only) is not None:
            return search.match_only(state, only, vector)
        return search.match_plain(state, vector, self._asker(event))

    def match_by_level(
        self, event: HasAttributes | Mapping[str, Any]
    ) -> Iterator[npt.NDArray[np.int32]]:
        """The rows of an event, the highest priorities first, each as soon as it is determined."""
        state, search = self._engine.state, self._engine.search
        if type(event) is not dict or (vector := self._encode_quickly(event)) is None:
            return search.match_by_level(state, *self._encode(event))
        return search.match_by_level(state, Encoded(vector), self._asker(event))

    def match_batch(self, events: Any) -> MatchSet:
        """The rows of many events, however they are given."""
        state = self._engine.state
        if type(events) is list and len(events) == 1:
            rows = self.match(state, events[0]).copy()
            return MatchSet(None, rows, state.rows.priority, self._ids)
        matrix = None if isinstance(events, list) else self._matrix(events)
        if matrix is None:
            return self._match_rows(state, events)
        self._observer.notice_batch(matrix)
        batch = cache(lambda: attributes_of_batch(events))

        def match_one(e: int) -> npt.NDArray[np.int32]:
            asker = Asker(self._asking, self._saved, lambda: batch()[e])
            return self._engine.search.match(state, Encoded(matrix[e]), asker)

        if len(matrix) < MIN_BATCH:
            return self._gathered(state, [match_one(e).copy() for e in range(len(matrix))])
        return self._match_set(state, *match_vectors(state, plain_vectors(matrix), match_one))

    def _encode_quickly(self, event: dict[str, Any]) -> Vector | None:
        """An event as numbers, if it has no others and there is no schema to check it."""
        if self._schema is not None or (vector := self._columns.encode_quickly(event)) is None:
            return None
        self._observer.notice(vector)
        return vector

    def _asker(self, event: Mapping[str, Any]) -> Asker:
        """Who answers for a leader whether its filter accepts an event that is not read yet."""
        return Asker(self._asking, self._saved, lambda: attributes_of(event))

    def _encode(self, event: HasAttributes | Mapping[str, Any]) -> tuple[Encoded, Ask]:
        """An event as numbers, and who answers for a leader whether its filter accepts it."""
        if type(event) is dict and self._schema is None:
            simple = self._columns.encode_simply(event)
            if simple is not None:
                self._observer.notice(simple.vector)
                return simple, self._asker(event)
        attributes = attributes_of(event)
        if self._schema is not None:
            self._schema.check_event(attributes)
        encoded = self._columns.encode(attributes)
        self._observer.notice(encoded.vector)
        return encoded, Asker(self._asking, self._saved, lambda: attributes)

    def _match_rows(self, state: State, events: Any) -> MatchSet:
        """A batch whose events are perhaps not all plain; those that need it one by one."""
        encoded, attributes_at = self._encode_batch(events)

        def match_one(e: int) -> npt.NDArray[np.int32]:
            asker = Asker(self._asking, self._saved, lambda: attributes_at(e))
            return self._engine.search.match(state, encoded[e], asker)

        if len(encoded) < MIN_BATCH:
            for one in encoded:
                self._observer.notice(one.vector)
            return self._gathered(state, [match_one(e).copy() for e in range(len(encoded))])
        may_choose = state.moving is None
        is_rough = [not one.is_plain and not (one.choices and may_choose) for one in encoded]
        vectors = _vectors_of(encoded, is_rough)
        self._observer.notice_batch([one.vector for one in encoded])
        found = match_vectors(state, vectors, match_one, np.array(is_rough, np.uint8))
        return self._match_set(state, *found)

    def _encode_batch(self, events: Any) -> tuple[list[Encoded], Callable[[int], Attributes]]:
        """The events of a batch as numbers, and how to get the attributes of one."""
        batch = cache(lambda: attributes_of_batch(events))
        columns = self._columns
        if self._schema is not None or not isinstance(events, list):
            if self._schema is not None:
                for attributes in batch():
                    self._schema.check_event(attributes)
            return [columns.encode(attributes) for attributes in batch()], lambda e: batch()[e]
        encoded = []
        for position, event in enumerate(events):
            simple = columns.encode_simply(event) if type(event) is dict else None
            encoded.append(columns.encode(batch()[position]) if simple is None else simple)
        return encoded, lambda e: attributes_of(events[e])

    def _matrix(self, events: Any) -> Matrix | None:
        """A batch as numbers, if all its events are plain."""
        matrix = matrix_of(events, self._columns)
        if matrix is None or self._schema is None:
            return matrix
        # Otherwise event by event, which says what is wrong.
        return matrix if is_in_domains(matrix, self._columns, self._schema) else None

    def _gathered(self, state: State, found: list[npt.NDArray[np.int32]]) -> MatchSet:
        offsets = np.zeros(len(found) + 1, dtype=np.int64)
        np.cumsum([len(rows) for rows in found], out=offsets[1:])
        return self._match_set(state, offsets, np.concatenate([*found, _NOBODY]))

    def _match_set(
        self, state: State, offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int32]
    ) -> MatchSet:
        return MatchSet(offsets, rows, state.rows.priority, self._ids)


def _vectors_of(encoded: list[Encoded], is_rough: list[bool]) -> Vectors:
    """Events that are plain or have choices; those that are rough have nothing to find."""
    held = [
        one.choices if one.choices and not rough else (one.vector,)
        for one, rough in zip(encoded, is_rough, strict=True)
    ]
    # A column that was added meanwhile is none that the state of this batch asks for.
    n_columns = min(len(vectors[0]) for vectors in held)
    matrix = np.stack([vector[:n_columns] for vectors in held for vector in vectors])
    begins = np.zeros(len(held) + 1, np.int64)
    np.cumsum([len(vectors) for vectors in held], out=begins[1:])
    matrix[begins[:-1][is_rough]] = np.nan
    decides = np.array([one.decides for one in encoded], np.uint8)
    return Vectors(matrix, begins, decides, frozenset(c for one in encoded for c in one.chosen))
