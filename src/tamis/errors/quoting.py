"""Quoting: what was given, as it stands in a message."""

from __future__ import annotations

import reprlib


class _Repr(reprlib.Repr):
    """``repr``, but of a bounded length and depth, and of every object."""

    def __init__(self) -> None:
        super().__init__()
        self.fillvalue = "…"
        self.maxstring, self.maxother, self.maxlevel = 60, 160, 3

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write integers of thousands of digits.
        return repr(x) if x.bit_length() < 200 else f"an integer of {x.bit_length()} bits"


def quoted(given: object) -> str:
    """What was given as it stands in a message: its repr, cut where that is long or deep.

    >>> quoted("FORD"), quoted([1, [2, [3, [4]]]])
    ("'FORD'", '[1, [2, [3, […]]]]')
    >>> len(quoted("x" * 1_000_000)) <= 60
    True
    """
    return _REPR.repr(given)


def shortened(text: str, width: int = 160) -> str:
    """A text as it stands in a message without quotes."""
    return text if len(text) <= width else text[: width - 1] + "…"


_REPR = _Repr()
