"""Turns: things that are done now and then, the more rarely the longer they take."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Turn"]

_REST = 100  # so many times as long as something took it is not done again,
_LONGEST_REST_S = 300.0  # but no longer than this


class Turn:
    """Something that is done now and then: not too soon, and the more rarely the longer it takes.

    How long it takes is the shorter of the last two times: once may have been a bad moment, of
    the machine or of a database just opened. What failed is tried again the next time.
    """

    def __init__(self, every_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._next = self._took = 0.0

    def take(self, do: Callable[[], None]) -> None:
        """Do it, if it is time."""
        since = self._clock()
        if since < self._next:
            return
        do()
        now = self._clock()
        before, self._took = self._took, now - since
        rest = min(_REST * min(before, self._took), _LONGEST_REST_S)
        self._next = now + max(self._every_s, rest)
