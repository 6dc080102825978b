"""How MO-Tree matches one event: the cells of each layer that are visited, and who is left."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """One level of overlapping cells: where each begins and ends, in values of the attribute.

    ``n_entries`` counts the subscriptions of each cell, ``visited`` are the numbers of the cells
    that the event visits.
    """

    cells: tuple[tuple[float, float], ...]
    n_entries: tuple[int, ...]
    visited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One indexed attribute: its levels, the narrowest cells first.

    ``value`` is NaN if the event has none. ``n_left`` counts the subscriptions in visited cells
    of this and all layers above.
    """

    attribute: str
    value: float
    levels: tuple[Level, ...]
    n_left: int

    @property
    def n_visited(self) -> int:
        """How many cells are visited, of all levels."""
        return sum(len(level.visited) for level in self.levels)


@dataclass(frozen=True, slots=True)
class TreeTrace:
    """How one event is matched: down the layers, then candidates are verified."""

    n_subscriptions: int
    n_buckets: int
    layers: tuple[Layer, ...]
    survivors: tuple[int, ...]

    @property
    def n_visited(self) -> int:
        """How many buckets are visited."""
        n_visited = 1
        for layer in self.layers:
            n_visited *= layer.n_visited
        return n_visited

    @property
    def n_candidates(self) -> int:
        """How many subscriptions are in the visited buckets, and so are verified."""
        return self.layers[-1].n_left
