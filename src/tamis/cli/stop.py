"""Stop: that a program is to end, as a signal says it."""

from __future__ import annotations

import queue

__all__ = ["Stop"]


class Stop:
    """Whether to stop; any thread may say so, and a signal handler, but one thread waits.

    A ``threading.Event`` would not do: a handler runs in the thread that waits, perhaps while that
    holds the event's lock, and would then wait for itself.

    >>> stop = Stop()
    >>> stop.wait(0)
    False
    >>> stop.say()
    >>> stop.wait(0), stop.wait(0)
    (True, True)
    """

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_said = False

    def say(self) -> None:
        """Let who waits know, now or when it waits next."""
        self._said.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait for so long at most; whether it was said."""
        if not self._is_said:
            try:
                self._said.get(timeout=seconds)
                self._is_said = True
            except queue.Empty:
                pass
        return self._is_said
