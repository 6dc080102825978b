"""Archive: the subscriptions themselves, for those who ask what was saved."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tamis.index.outlines import Outline
from tamis.kernels.scan import Boxes, Constraints
from tamis.language.tree import InRange, all_of
from tamis.model import Subscription
from tamis.slots.texts import Arrays
from tamis.values import Range

Numbers = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Held = Subscription | Outline
Told = tuple[str, dict[str, Any]]  # the owner and the delivery settings


class Base(Protocol):
    """Subscriptions in a compact form, numbered from 0."""

    n: int
    kind: str

    def held(self, number: int, id: str, priority: int) -> Held:
        """One of them."""

    def delivery(self, number: int) -> Told:
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

    def held(self, number: int, id: str, priority: int) -> Subscription:
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

    def delivery(self, number: int) -> Told:
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

    def __init__(self, letters: Bytes, offsets: Offsets) -> None:
        self.letters, self.offsets = letters, offsets
        self.n = len(offsets) - 1

    @classmethod
    def of(cls, subscriptions: Sequence[Subscription]) -> TextBase:
        """Write subscriptions as text."""
        return cls(*_spelt([one.to_json() for one in subscriptions]))

    def held(self, number: int, id: str, priority: int) -> Subscription:
        """One of them."""
        return Subscription.from_json(_text(self.letters, self.offsets, number))

    def delivery(self, number: int) -> Told:
        """The owner and the delivery settings of one of them."""
        held = json.loads(_text(self.letters, self.offsets, number))
        return held.get("owner", ""), held.get("delivery", {})

    def arrays(self) -> Arrays:
        """What a file must hold."""
        return {"letters": self.letters, "offsets": self.offsets}


class OutlineBase:
    """Subscriptions with a place, the outline of each by its number: i4[N].

    Outlines are JSON texts, and so is what is told of each; nothing (one offset) if that is so of
    all. Their numbers and places are kept by ``Moving``.
    """

    kind = "outlines"
    PARTS = ("numbers", "letters", "offsets", "told_letters", "told_offsets")

    def __init__(
        self,
        numbers: Numbers,
        letters: Bytes,
        offsets: Offsets,
        told_letters: Bytes,
        told_offsets: Offsets,
    ) -> None:
        self.numbers, self.letters, self.offsets = numbers, letters, offsets
        self.told_letters, self.told_offsets = told_letters, told_offsets
        self.n = len(numbers)
        self._outline = lru_cache(maxsize=4096)(self._read)

    @classmethod
    def of(cls, outlines: Sequence[Outline], told: Sequence[Told | None]) -> OutlineBase:
        """Write outlines, and what is told of those that have something told."""
        number_of = {one: number for number, one in enumerate(dict.fromkeys(outlines))}
        numbers = np.array([number_of[one] for one in outlines], np.int32)
        written = _spelt([] if not any(told) else [one or () for one in told])
        return cls(numbers, *_spelt([*number_of]), *written)

    def held(self, number: int, id: str, priority: int) -> Outline:
        """The outline of one of them."""
        return self._outline(int(self.numbers[number]))

    def delivery(self, number: int) -> Told:
        """The owner and the delivery settings of one of them."""
        if len(self.told_offsets) == 1:
            return "", {}
        held = json.loads(_text(self.told_letters, self.told_offsets, number))
        owner, delivery = held or ("", {})
        return owner, delivery

    def _read(self, number: int) -> Outline:
        names, ends, spelt = json.loads(_text(self.letters, self.offsets, number))
        return Outline(tuple(names), tuple(ends), spelt)

    def arrays(self) -> Arrays:
        """What a file must hold."""
        return {part: getattr(self, part) for part in self.PARTS}


def _spelt(objects: Sequence[Any]) -> tuple[Bytes, Offsets]:
    """JSON texts one after the other, and where each begins."""
    texts = [json.dumps(one, ensure_ascii=False).encode() for one in objects]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return np.frombuffer(b"".join(texts), np.uint8), offsets


def _text(letters: Bytes, offsets: Offsets, number: int) -> bytes:
    return letters[offsets[number] : offsets[number + 1]].tobytes()


class Archive:
    """The subscription of every row, or its outline: those of bases, and those added since."""

    def __init__(self, bases: list[Base] | None = None, places: Numbers | None = None) -> None:
        self.bases = bases or []
        n_in_bases = sum(base.n for base in self.bases)
        # Where a row's subscription stands, counted through all bases; None: at its own number.
        self.places = places
        self.n_base = n_in_bases if places is None else len(places)
        self.recent: list[Held] = []
        self._outlines: dict[Outline, Outline] = {}
        self._told: dict[int, Told] = {}  # of recent outlines that have something told
        self._n_outlined = 0  # of the recent ones

    def __len__(self) -> int:
        return self.n_base + len(self.recent)

    def append(self, subscription: Subscription) -> None:
        """The subscription of the next row."""
        self.recent.append(subscription)

    def append_outline(self, outline: Outline, owner: str, delivery: Mapping[str, Any]) -> None:
        """The outline of the next row, and what is to be told of it."""
        known = self._outlines.get(outline)
        if known is None:
            # New objects: old ones between others that go would keep the memory of those.
            known = Outline((*outline.names,), (*outline.ends,), outline.spelt)
            self._outlines[known] = known
        if owner or delivery:
            self._told[len(self)] = owner, dict(delivery)
        self.recent.append(known)
        self._n_outlined += 1

    def recent_at(self, row: int) -> Held | None:
        """What was added as a row, None if it stands in a base."""
        return self.recent[row - self.n_base] if row >= self.n_base else None

    def held(self, row: int, id: str, priority: int) -> Held:
        """The subscription of a row, whose id and priority the caller knows, or its outline."""
        if row >= self.n_base:
            return self.recent[row - self.n_base]
        base, number = self._place(row)
        return base.held(number, id, priority)

    def delivery(self, row: int) -> Told:
        """The owner and the delivery settings of a row, without reading its filter."""
        if row < self.n_base:
            base, number = self._place(row)
            return base.delivery(number)
        recent = self.recent[row - self.n_base]
        owner, delivery = (
            self._told.get(row, ("", {}))
            if isinstance(recent, Outline)
            else (recent.owner, recent.delivery)
        )
        return owner, dict(delivery)

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
        bases = [*self.bases, *self._recent_bases()]
        older = np.arange(self.n_base, dtype=np.int32) if self.places is None else self.places
        # In their bases the outlines come after the subscriptions.
        is_outlined = np.array([isinstance(one, Outline) for one in self.recent], np.bool_)
        recent = np.empty(len(self.recent), np.int32)
        recent[np.argsort(is_outlined, kind="stable")] = np.arange(len(recent))
        n_in_bases = sum(base.n for base in self.bases)
        chosen = np.concatenate([older, (n_in_bases + recent).astype(np.int32)])[rows]
        n_all = sum(base.n for base in bases)
        is_all = len(chosen) == n_all and bool((chosen == np.arange(n_all)).all())
        return Archive(bases, None if is_all else chosen)

    def _recent_bases(self) -> list[Base]:
        whole = [one for one in self.recent if not isinstance(one, Outline)]
        outlined = [
            (one, self._told.get(self.n_base + at))
            for at, one in enumerate(self.recent)
            if isinstance(one, Outline)
        ]
        bases: list[Base] = [TextBase.of(whole)] if whole else []
        return [*bases, OutlineBase.of(*zip(*outlined, strict=True))] if outlined else bases

    def memory_bytes(self) -> int:
        """Bytes of the bases' arrays; about 1,500 for each subscription added since.

        Of those with an outline 8, some 400 for each different one and for what is told.
        """
        in_bases = sum(a.nbytes for base in self.bases for a in base.arrays().values())
        n_apart = len(self._outlines) + len(self._told)
        n_whole = len(self.recent) - self._n_outlined
        return in_bases + 8 * len(self.recent) + 1500 * n_whole + 400 * n_apart
