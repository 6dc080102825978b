"""Versions: the layers that hold all subscriptions at one time, opened in a task's process.

This module is imported by the workers, which Spark uses again for the next batch: what it has
opened stays open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.model.event_arrow import flat_columns
from tamis.spark.layers import Layer, Rows, open_layer
from tamis.values import attributes_of

Array = npt.NDArray[Any]


class TokenPlace(NamedTuple):
    """Where a token's layers are; the delta lies over the base."""

    base: str | None
    delta: str | None = None

    @property
    def layers(self) -> list[str]:
        """The layers there are."""
        return [layer for layer in self if layer is not None]


@dataclass(frozen=True)
class Version:
    """A version of the subscriptions: its number, and where each token is."""

    number: int
    tokens: tuple[TokenPlace, ...]
    n_bytes: int = 0
    sequence: int = 0

    def part(self, tokens: range) -> Version:
        """The version with some of its tokens only."""
        return Version(self.number, tuple(self.tokens[token] for token in tokens))


class Found(NamedTuple):
    """Matches in the order of the events: those of event i end before ``ends[i]``."""

    ends: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]  # of the subscriptions

    @property
    def events(self) -> npt.NDArray[np.int32]:
        """The event of each match, by its position in the batch."""
        counts = np.diff(self.ends, prepend=0)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    def part(self, first: int, last: int) -> Found:
        """The matches first to last."""
        last = min(last, len(self.rows))
        return Found(np.clip(self.ends, first, last) - first, self.rows[first:last])

    def without(self, is_removed: npt.NDArray[np.bool_]) -> Found:
        """The matches of rows that are not removed."""
        is_kept = ~is_removed[self.rows]
        n_kept = np.concatenate([[0], np.cumsum(is_kept)])
        return Found(n_kept[self.ends], self.rows[is_kept])


class OpenVersion:
    """The layers of a version with their rows counted through."""

    def __init__(self, layers: list[tuple[Layer, Array | None]]) -> None:
        self._layers = layers
        self._starts = np.cumsum([0, *(len(layer) for layer, _ in layers)])

    @property
    def n_rows(self) -> int:
        """How many rows there are, with those that a delta replaced."""
        return int(self._starts[-1])

    @property
    def has_removed(self) -> bool:
        """Whether some rows never match; their ids may be there twice."""
        return any(is_removed is not None for _, is_removed in self._layers)

    @property
    def schema(self) -> Any:
        """What is known of attributes beforehand, if anything."""
        return self._layers[0][0].index.schema if self._layers else None

    @cached_property
    def ids(self) -> pa.Array:
        """The id of every row."""
        return _joined([layer.ids for layer, _ in self._layers], pa.string())

    @cached_property
    def priorities(self) -> npt.NDArray[np.int8]:
        """The priority of every row."""
        held = [
            layer.index.match_batch([]).priority_of_row[: len(layer)] for layer, _ in self._layers
        ]
        return np.concatenate([np.zeros(0, np.uint8), *held]).view(np.int8)

    @cached_property
    def owners(self) -> pa.DictionaryArray:
        """The owner of every row."""
        return _unified([layer.owners for layer, _ in self._layers])

    @cached_property
    def schedules(self) -> pa.DictionaryArray:
        """The delivery settings of every row."""
        return _unified([layer.schedules for layer, _ in self._layers])

    def match(self, attributes: Any) -> Iterator[Found]:
        """The matches of a batch of events, a layer at a time.

        Events one by one become columns first, where they can: each layer takes those at once.
        """
        if isinstance(attributes, list) and len(self._layers) > 1:
            attributes = flat_columns([attributes_of(one) for one in attributes]) or attributes
        for (layer, is_removed), start in zip(self._layers, self._starts, strict=False):
            if not len(layer):
                continue
            matches = layer.index.match_batch(attributes)
            found = Found(matches.offsets[1:], matches.rows)
            if is_removed is not None:
                found = found.without(is_removed)
            yield found._replace(rows=found.rows + np.int32(start)) if start else found


_layers: dict[str, Layer] = {}
_versions: dict[tuple[TokenPlace, ...], OpenVersion] = {}
_KEPT_VERSIONS = 2


def open_version(version: Version) -> OpenVersion:
    """Open a version, or return it if this process has it open; older ones are let go."""
    key = version.tokens
    if key not in _versions:
        _versions[key] = OpenVersion([pair for token in key for pair in _token(token)])
    _versions[key] = _versions.pop(key)  # the newest comes last
    for old in list(_versions)[:-_KEPT_VERSIONS]:
        del _versions[old]
    used = {layer for held in _versions for token in held for layer in token.layers}
    for path in [path for path in _layers if path not in used]:
        del _layers[path]
    return _versions[key]


def _token(place: TokenPlace) -> Iterator[tuple[Layer, Array | None]]:
    delta = _layer(place.delta) if place.delta else None
    if place.base:
        base = _layer(place.base)
        yield base, None if delta is None else _mask(delta.removed, len(base))
    if delta is not None:
        yield delta, None


def _layer(path: str) -> Layer:
    if path not in _layers:
        _layers[path] = open_layer(Path(path))
    return _layers[path]


def _mask(removed: Rows, n: int) -> Array | None:
    if not len(removed):
        return None
    mask = np.zeros(n, np.bool_)
    mask[removed] = True
    return mask


def _joined(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    return pa.concat_arrays(arrays) if arrays else pa.array([], kind)


def _unified(arrays: list[pa.DictionaryArray]) -> pa.DictionaryArray:
    if len(arrays) == 1:
        return arrays[0]
    kind = pa.dictionary(pa.int32(), pa.string())
    chunked = pa.chunked_array(arrays, kind).unify_dictionaries()
    return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], kind)
