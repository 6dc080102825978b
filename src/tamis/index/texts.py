"""Texts and their numbers: the ids of rows, and the codes of text values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.kernels.texts import fill_table, find_text

Numbers = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[np.generic]]

_FEW = 16  # texts that are made one by one more quickly than by Arrow


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
        return list(map(str, numbers.tolist()))

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
            view, offsets = self.letters.data, self.offsets
            ends = zip(offsets[numbers].tolist(), offsets[numbers + 1].tolist(), strict=True)
            return [str(view[first:last], "utf-8") for first, last in ends]
        texts: list[str] = self.array.take(pa.array(numbers)).to_pylist()
        return texts

    def arrays(self) -> Arrays:
        """What a file must hold."""
        return {"letters": self.letters, "offsets": self.offsets, "table": self.table}


class Texts:
    """Texts numbered from 0: those of the base, which stay, and those added since."""

    def __init__(self, base: Counted | Stored | None = None) -> None:
        self.base = base or Counted(0)
        self.recent: list[str] = []
        self._number_of_recent: dict[str, int] = {}

    def __len__(self) -> int:
        return self.base.n + len(self.recent)

    def append(self, text: str) -> int:
        """A new number for a text; an older one of the same text is no longer found by it."""
        number = len(self)
        self.recent.append(text)
        self._number_of_recent[text] = number
        return number

    def number_of(self, text: str) -> int:
        """The newest number of a text, or -1."""
        number = self._number_of_recent.get(text, -1)
        return number if number >= 0 or not self.base.n else self.base.number_of(text)

    def texts_of(self, numbers: Numbers) -> list[str]:
        """The texts of numbers."""
        n_base = self.base.n
        if not self.recent:
            return self.base.texts_of(numbers)
        if n_base == 0:
            recent = self.recent
            return [recent[number] for number in numbers.tolist()]
        is_base = numbers < n_base
        texts = np.empty(len(numbers), dtype=object)
        texts[is_base] = self.base.texts_of(numbers[is_base])
        texts[~is_base] = [self.recent[n - n_base] for n in numbers[~is_base].tolist()]
        made: list[str] = texts.tolist()
        return made

    def array(self) -> pa.Array:
        """All texts, in the order of their numbers; those of the base are not copied."""
        if not self.recent:
            return self.base.array
        return pa.concat_arrays([self.base.array, pa.array(list(self.recent), pa.string())])

    def array_of(self, numbers: Numbers) -> pa.Array:
        """The texts of numbers, without a Python object for each."""
        if not self.recent:
            return self.base.array.take(pa.array(numbers))
        return pa.array(self.texts_of(numbers), pa.string())

    def text_of(self, number: int) -> str:
        """The text of a number."""
        (text,) = self.texts_of(np.array([number], np.int32))
        return text

    def stored(self) -> Counted | Stored:
        """All texts as a base."""
        if not self.recent:
            return self.base
        if self.base.n == 0:
            return Stored.of(self.recent)
        return Stored.of(self.texts_of(np.arange(len(self), dtype=np.int32)))

    def memory_bytes(self) -> int:
        """Bytes of the base's arrays; about 150 for each text added since."""
        return sum(a.nbytes for a in self.base.arrays().values()) + 150 * len(self.recent)
