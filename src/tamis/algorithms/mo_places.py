"""Places for MO-Tree: texts by their first letters, and which attributes are worth indexing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tamis.algorithms.kernels.mo_judge import judge_events, judge_subscriptions
from tamis.kernels.cells import Domains
from tamis.kernels.constraints import Stored
from tamis.kernels.places import Places
from tamis.matching import Attribute, TextCodes
from tamis.matching.store import Slots, grown
from tamis.matching.table import Floats

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_N_BINS = 16  # for judging how evenly intervals lie


def place_of_text(text: str, n_letters: int) -> float:
    """Where a text lies in [0, 1) by its first letters; case does not matter.

    What is neither a digit nor one of a to z lies where its code point says, so that other
    alphabets spread as well.

    >>> [round(place_of_text(text, 2), 3) for text in ("", "Ford", "ford", "zebra")]
    [0.0, 0.435, 0.435, 0.983]
    """
    place, weight = 0.0, 1.0
    for letter in text[:n_letters].lower():
        weight /= len(_LETTERS)
        number = _LETTERS.find(letter)
        place += weight * (number if number >= 0 else ord(letter) % len(_LETTERS))
    return place


class TextPlaces:
    """The places of all texts, kept up as texts come."""

    def __init__(
        self,
        attributes: Sequence[Attribute],
        domains: Domains,
        texts: Mapping[str, TextCodes],
        n_letters: int,
    ) -> None:
        named = [one.name for one in attributes]
        self._texts = [texts[name] for name in texts]
        self._n_known = [0] * len(self._texts)
        self._n_letters = n_letters
        rows = np.full(len(named), -1, np.int64)
        for row, name in enumerate(texts):
            rows[named.index(name)] = row
        self.arrays = Places(*domains, rows, np.zeros((len(self._texts), 0)))

    def keep_up(self) -> None:
        """Give a place to each text that has come since."""
        for row, texts in enumerate(self._texts):
            first = self._n_known[row]
            if len(texts) > first:
                table = grown(self.arrays.text_place.T, len(texts)).T
                for number in range(first, len(texts)):
                    table[row, number] = place_of_text(texts.nth(number), self._n_letters)
                self.arrays = self.arrays._replace(text_place=np.ascontiguousarray(table))
                self._n_known[row] = len(texts)


def judge_by_subscriptions(stored: Stored, slots: Slots, places: Places) -> Floats:
    """How good each attribute is to index: popularity x selectivity x uniformity (section 4.2).

    The share of subscriptions that bound it; the share of the domain that an interval leaves
    out; how evenly their middles lie (their entropy, as a share of the largest).
    """
    n_attributes = len(places.low)
    n_asked, width = np.zeros(n_attributes, np.int64), np.zeros(n_attributes)
    middles = np.zeros((n_attributes, _N_BINS), np.int64)
    judge_subscriptions(stored, slots, places, n_asked, width, middles)
    selectivity = 1 - width / np.maximum(n_asked, 1)
    return n_asked / max(1, len(slots)) * selectivity * _evenness(middles)


def judge_by_events(events: Floats, slots: Slots, places: Places) -> Floats:
    """The same by events alone, of which only popularity and uniformity can be told."""
    n_attributes = len(places.low)
    n_present = np.zeros(n_attributes, np.int64)
    middles = np.zeros((n_attributes, _N_BINS), np.int64)
    judge_events(events, slots, places, n_present, middles)
    return n_present / max(1, len(slots)) * _evenness(middles)


def _evenness(counts: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Floats:
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy: Floats = -(share * logs).sum(axis=1) / np.log(counts.shape[1])
    return entropy
