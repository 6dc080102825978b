"""Archive: the subscriptions themselves, for those who ask what was saved."""

from __future__ import annotations

import json
import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tamis.index.texts import Arrays
from tamis.kernels.scan import Boxes, Constraints
from tamis.language.tree import InRange, all_of
from tamis.model import Subscription
from tamis.values import Range

Numbers = npt.NDArray[np.int32]


class Base(Protocol):
    """Subscriptions in a compact form, numbered from 0."""

    n: int
    kind: str

    def subscription(self, number: int, id: str, priority: int) -> Subscription:
        """One of them."""

    def delivery(self, number: int) -> tuple[str, dict[str, Any]]:
        """The owner and the delivery settings of one of them."""

    def arrays(self) -> Arrays:
        """What a file must hold."""


class BoxBase:
    """Boxes: their closed bounds, shared with the block that serves them, and which were open.

    ``attributes``: the attribute of each column. ``opened``: u1, two bits a constraint in the
    order of the constraints, packed; empty if none is open.
    """

    kind = "boxes"

    def __init__(
        self,
        attributes: tuple[str, ...],
        bounds: Constraints | Boxes,
        opened: npt.NDArray[np.uint8],
    ) -> None:
        self.attributes, self.bounds, self.opened = attributes, bounds, opened
        self.n = len(bounds.bounds) if isinstance(bounds, Boxes) else len(bounds.start) - 1

    def subscription(self, number: int, id: str, priority: int) -> Subscription:
        """One of them."""
        bounds = self.bounds
        if isinstance(bounds, Boxes):
            first, columns = number * len(bounds.columns), bounds.columns
            lows, highs = bounds.bounds[number, :, 0], bounds.bounds[number, :, 1]
        else:
            first, last = bounds.start[number], bounds.start[number + 1]
            columns, lows, highs = (array[first:last] for array in bounds[1:])
        parts = [
            InRange(self.attributes[column], self._range(float(low), float(high), 2 * (first + k)))
            for k, (column, low, high) in enumerate(zip(columns, lows, highs, strict=True))
        ]
        return Subscription(id, all_of(parts), priority)

    def delivery(self, number: int) -> tuple[str, dict[str, Any]]:
        """The owner and the delivery settings of one of them: none."""
        return "", {}

    def _range(self, low: float, high: float, first_bit: int) -> Range:
        low_open, high_open = self._is_opened(first_bit), self._is_opened(first_bit + 1)
        if low_open:
            low = math.nextafter(low, -math.inf)
        if high_open:
            high = math.nextafter(high, math.inf)
        ends = ("(" if low_open else "[") + (")" if high_open else "]")
        if low == -np.inf and high == np.inf:
            return Range(low, high, ends)
        return Range(
            None if low == -np.inf and not low_open else low,
            None if high == np.inf and not high_open else high,
            ends,
        )

    def _is_opened(self, bit: int) -> bool:
        return bool(len(self.opened) and self.opened[bit >> 3] >> (7 - (bit & 7)) & 1)

    def arrays(self) -> Arrays:
        """What a file must hold beside the bounds."""
        return {"opened": self.opened}


class TextBase:
    """Subscriptions as JSON text: u1 letters and i8 offsets."""

    kind = "texts"

    def __init__(self, letters: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self.letters, self.offsets = letters, offsets
        self.n = len(offsets) - 1

    @classmethod
    def of(cls, subscriptions: list[Subscription]) -> TextBase:
        """Write subscriptions as text."""
        texts = [json.dumps(one.to_json(), ensure_ascii=False).encode() for one in subscriptions]
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return cls(np.frombuffer(b"".join(texts), np.uint8), offsets)

    def subscription(self, number: int, id: str, priority: int) -> Subscription:
        """One of them."""
        first, last = self.offsets[number], self.offsets[number + 1]
        return Subscription.from_json(self.letters[first:last].tobytes())

    def delivery(self, number: int) -> tuple[str, dict[str, Any]]:
        """The owner and the delivery settings of one of them."""
        first, last = self.offsets[number], self.offsets[number + 1]
        held = json.loads(self.letters[first:last].tobytes())
        return held.get("owner", ""), held.get("delivery", {})

    def arrays(self) -> Arrays:
        """What a file must hold."""
        return {"letters": self.letters, "offsets": self.offsets}


class Archive:
    """The subscription of every row: those of bases, and those added since."""

    def __init__(self, bases: list[Base] | None = None, places: Numbers | None = None) -> None:
        self.bases = bases or []
        n_in_bases = sum(base.n for base in self.bases)
        # Where a row's subscription stands, counted through all bases; None: at its own number.
        self.places = places
        self.n_base = n_in_bases if places is None else len(places)
        self.recent: list[Subscription] = []

    def __len__(self) -> int:
        return self.n_base + len(self.recent)

    def append(self, subscription: Subscription) -> None:
        """The subscription of the next row."""
        self.recent.append(subscription)

    def subscription(self, row: int, id: str, priority: int) -> Subscription:
        """The subscription of a row, whose id and priority the caller knows."""
        if row >= self.n_base:
            return self.recent[row - self.n_base]
        base, number = self._place(row)
        return base.subscription(number, id, priority)

    def delivery(self, row: int) -> tuple[str, dict[str, Any]]:
        """The owner and the delivery settings of a row, without reading its filter."""
        if row >= self.n_base:
            recent = self.recent[row - self.n_base]
            return recent.owner, dict(recent.delivery)
        base, number = self._place(row)
        return base.delivery(number)

    def _place(self, row: int) -> tuple[Base, int]:
        """The base of a row, and its number there."""
        number = row if self.places is None else int(self.places[row])
        for base in self.bases:
            if number < base.n:
                return base, number
            number -= base.n
        raise IndexError(row)

    def stored(self, rows: Numbers) -> Archive:
        """An archive of these rows, in their order, with nothing recent."""
        bases = list(self.bases)
        if self.recent:
            bases.append(TextBase.of(self.recent))
        places = np.arange(len(self), dtype=np.int32)
        if self.places is not None:
            n_in_bases = sum(base.n for base in self.bases)
            recent = n_in_bases + np.arange(len(self.recent), dtype=np.int32)
            places = np.concatenate([self.places, recent])
        chosen = places[rows]
        n_all = sum(base.n for base in bases)
        is_all = len(chosen) == n_all and bool((chosen == np.arange(n_all)).all())
        return Archive(bases, None if is_all else chosen)

    def memory_bytes(self) -> int:
        """Bytes of the bases' arrays; about 1,500 for each subscription added since."""
        in_bases = sum(a.nbytes for base in self.bases for a in base.arrays().values())
        return in_bases + 1500 * len(self.recent)
