"""Texts and their numbers: the ids of rows, and the codes of text values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.kernels.texts import enter_texts, fill_table, find_text, join_digits, join_texts

Numbers = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[np.generic]]

_FEW = 8  # texts that are made one by one more quickly than together
_MOST_LETTERS = 2**31 - 1  # of an Arrow array of texts


def letters_of(text: str) -> npt.NDArray[np.uint8]:
    """A text as it is looked for; lone surrogates pass, to be found nowhere."""
    return np.frombuffer(text.encode(errors="surrogatepass"), np.uint8)


class Counted:
    """Numbers without texts of their own: 7 is "7"."""

    def __init__(self, n: int) -> None:
        self.n = n

    def number_of(self, text: str) -> int:
        """The number of a text, or -1."""
        if len(text) > 10 or not (text.isascii() and text.isdigit()) or str(int(text)) != text:
            return -1
        return int(text) if int(text) < self.n else -1

    @cached_property
    def array(self) -> pa.Array:
        """All texts."""
        return pa.array(np.arange(self.n, dtype=np.int32)).cast(pa.string())

    def texts_of(self, numbers: Numbers) -> list[str]:
        """The texts of numbers."""
        if len(numbers) <= _FEW:
            return list(map(str, numbers.tolist()))
        return _split(join_digits(np.ascontiguousarray(numbers, np.int32)))

    def arrays(self) -> Arrays:
        """What a file must hold."""
        return {}


class Stored:
    """Texts in Arrow's layout with a hash table over them; may be memory-mapped."""

    def __init__(
        self,
        letters: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int32],
        table: npt.NDArray[np.int32],
    ) -> None:
        self.letters, self.offsets, self.table = letters, offsets, table
        self.n = len(offsets) - 1
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
        self.array = pa.Array.from_buffers(pa.string(), self.n, buffers)

    @classmethod
    def of(cls, texts: Sequence[str] | pa.Array) -> Stored:
        """Store texts; a ValueError names one that is there twice."""
        array = pa.array(texts, pa.string())
        if array.null_count:
            raise ValueError("null")
        _, offset_buffer, letter_buffer = array.buffers()
        offsets = np.zeros(1, np.int32)
        if len(array):
            stop = array.offset + len(array) + 1
            offsets = np.frombuffer(offset_buffer, np.int32)[array.offset : stop].copy()
        letters = np.frombuffer(letter_buffer or b"", np.uint8)[: offsets[-1]]
        table = np.zeros(2 ** max(3, (2 * len(array)).bit_length()), np.int32)
        twice = fill_table(letters, offsets, table)
        if twice >= 0:
            raise ValueError(array[twice].as_py())
        return cls(letters, offsets, table)

    def number_of(self, text: str) -> int:
        """The number of a text, or -1."""
        return self.number_of_letters(letters_of(text))

    def number_of_letters(self, letters: npt.NDArray[np.uint8]) -> int:
        """The number of a text given as ``letters_of`` it, or -1."""
        return int(find_text(self.letters, self.offsets, self.table, letters))

    def texts_of(self, numbers: Numbers) -> list[str]:
        """The texts of numbers."""
        if len(numbers) <= _FEW:
            view, starts = self.letters.data, self.offsets.data
            return [str(view[starts[n] : starts[n + 1]], "utf-8") for n in numbers.tolist()]
        wanted = np.ascontiguousarray(numbers, np.int32)
        texts = _split(join_texts(self.letters, self.offsets, wanted))
        if len(texts) > len(numbers):  # a text has a zero in it
            texts = self.array.take(pa.array(numbers)).to_pylist()
        return texts

    def arrays(self) -> Arrays:
        """What a file must hold."""
        return {"letters": self.letters, "offsets": self.offsets, "table": self.table}


def _split(joined: npt.NDArray[np.uint8]) -> list[str]:
    """Texts that have a zero behind each; Python splits more quickly than it takes slices."""
    texts = joined.tobytes().decode().split("\0")
    texts.pop()
    return texts


class _Growing:
    """Texts in arrays with room at their ends, of which ``stored`` shows those there are."""

    def __init__(self, base: Stored) -> None:
        self._letters, self._offsets, self._table = base.letters, base.offsets, base.table.copy()
        self.stored = base

    def extend(self, texts: Sequence[str]) -> bool:
        """Add texts, each found instead of an older one like it; False if there is no room."""
        more = pa.array(texts, pa.string())
        _, offset_buffer, letter_buffer = more.buffers()
        ends = np.frombuffer(offset_buffer, np.int32)[1 : len(more) + 1].astype(np.int64)
        n_old, n_new = self.stored.n, self.stored.n + len(more)
        first = int(self.stored.offsets[n_old])
        last = first + int(ends[-1])
        if last > _MOST_LETTERS:
            return False
        self._letters = _longer(self._letters, first, last)
        self._offsets = _longer(self._offsets, n_old + 1, n_new + 1)
        self._letters[first:last] = np.frombuffer(letter_buffer, np.uint8)[: last - first]
        self._offsets[n_old + 1 : n_new + 1] = ends + first
        letters, offsets = self._letters[:last], self._offsets[: n_new + 1]
        letters.flags.writeable = False
        n_places = 2 ** max(3, (2 * n_new).bit_length())
        if n_places > len(self._table):
            self._table, n_old = np.zeros(n_places, np.int32), 0
        enter_texts(letters, offsets, n_old, self._table)
        self.stored = Stored(letters, offsets, self._table)
        return True


def _longer(array: npt.NDArray[Any], n: int, wanted: int) -> npt.NDArray[Any]:
    """An array with room for as many, which begins with the first n of another."""
    if wanted <= len(array) and array.flags.writeable:
        return array
    made = np.empty(max(wanted, 2 * n), array.dtype)
    made[:n] = array[:n]
    return made


class _Held(NamedTuple):
    """The texts at a moment; the two of those added since are appended to."""

    base: Counted | Stored
    recent: list[str]
    number_of_recent: dict[str, int]


class Texts:
    """Texts numbered from 0: those of the base, which stay, and those added since.

    With ``n_recent`` no more than so many are kept as Python has them, which takes some 150 bytes
    each: then they go into the base, where they take 20, and a microsecond to be found. Readers
    need no lock.
    """

    def __init__(self, base: Counted | Stored | None = None, n_recent: int | None = None) -> None:
        self._held = _Held(base or Counted(0), [], {})
        self._n_recent = n_recent
        self._growing: _Growing | None = None

    def __len__(self) -> int:
        return self._held.base.n + len(self._held.recent)

    def append(self, text: str) -> int:
        """A new number for a text; an older one of the same text is no longer found by it."""
        base, recent, number_of_recent = self._held
        number = base.n + len(recent)
        recent.append(text)
        number_of_recent[text] = number
        if len(recent) == self._n_recent:
            self._fold()
        return number

    def _fold(self) -> None:
        """Let the base have what was added."""
        base, recent, _ = self._held
        if isinstance(base, Counted) and base.n:
            return
        if self._growing is None:
            self._growing = _Growing(base if isinstance(base, Stored) else Stored.of(()))
        # Whoever looks for a text meanwhile finds it among the recent ones before the table.
        if self._growing.extend(recent):
            self._held = _Held(self._growing.stored, [], {})

    def number_of(self, text: str) -> int:
        """The newest number of a text, or -1."""
        while True:
            held = self._held
            base, _, number_of_recent = held
            number = number_of_recent.get(text, -1)
            if number < 0 and base.n:
                number = base.number_of(text)
            # It may have been added, and gone into the table under its new number, meanwhile.
            if number >= 0 or (held is self._held and text not in number_of_recent):
                return number

    def texts_of(self, numbers: Numbers) -> list[str]:
        """The texts of numbers."""
        base, recent, _ = self._held
        n_base = base.n
        if not recent:
            return base.texts_of(numbers)
        if n_base == 0:
            return [recent[number] for number in numbers.tolist()]
        if not len(numbers) or max(numbers.tolist()) < n_base:
            return base.texts_of(numbers)
        is_base = numbers < n_base
        texts = np.empty(len(numbers), dtype=object)
        texts[is_base] = base.texts_of(numbers[is_base])
        texts[~is_base] = [recent[n - n_base] for n in numbers[~is_base].tolist()]
        made: list[str] = texts.tolist()
        return made

    def array(self) -> pa.Array:
        """All texts, in the order of their numbers; those of the base are not copied."""
        base, recent, _ = self._held
        if not recent:
            return base.array
        return pa.concat_arrays([base.array, pa.array(list(recent), pa.string())])

    def array_of(self, numbers: Numbers) -> pa.Array:
        """The texts of numbers, without a Python object for each."""
        base, recent, _ = self._held
        if not recent:
            return base.array.take(pa.array(numbers))
        return pa.array(self.texts_of(numbers), pa.string())

    def text_of(self, number: int) -> str:
        """The text of a number."""
        (text,) = self.texts_of(np.array([number], np.int32))
        return text

    def stored(self) -> Counted | Stored:
        """All texts as a base."""
        base, recent, _ = self._held
        if not recent:
            return base
        if base.n == 0:
            return Stored.of(recent)
        return Stored.of(self.texts_of(np.arange(len(self), dtype=np.int32)))

    def memory_bytes(self) -> int:
        """Bytes of the base's arrays; about 150 for each text added since."""
        base, recent, _ = self._held
        return sum(a.nbytes for a in base.arrays().values()) + 150 * len(recent)
