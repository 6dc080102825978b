"""Limits of a key: how often, how much, how complex, how many."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tamis.errors import InvalidValue, LimitReached, quoted

__all__ = ["Limits", "RateReached", "TokenBuckets"]


class RateReached(LimitReached):
    """More requests than a key may make; ``retry_after_s`` is when the next may be made."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Limits:
    """What a key may do.

    ``requests_per_s`` over time and ``burst`` at once; ``body_bytes`` of a request, or of a line
    of an import; ``conjunctions`` in the normal form of a filter; ``subscriptions`` its owner has.
    """

    requests_per_s: float = 100
    burst: int = 200
    body_bytes: int = 4 * 1_048_576
    conjunctions: int = 256
    subscriptions: int = 100_000

    def changed(self, changes: Mapping[str, Any]) -> Limits:
        """The same with what a key has of its own.

        >>> Limits().changed({"burst": 5}).burst
        5
        """
        names = [one.name for one in fields(self)]
        for name, value in changes.items():
            if name not in names:
                raise InvalidValue(
                    f"there is no limit {quoted(name)}; expected one of {', '.join(names)}"
                )
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            is_whole = isinstance(value, int) or name == "requests_per_s"
            if not is_number or not is_whole or not 1 <= value <= _LARGEST:
                raise InvalidValue(
                    f"the limit {name} {quoted(value)} is not a number from 1 to {_LARGEST:,}"
                )
        return replace(self, **changes)


_LARGEST = 1_000_000_000
_LONGEST_WAIT_S = 86_400.0


class TokenBuckets:
    """How many requests each key has left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._level: dict[str, tuple[float, float]] = {}  # requests left, as of when

    def take(self, prefix: str, limits: Limits, now: float | None = None) -> None:
        """Count a request, or raise RateReached."""
        now = time.monotonic() if now is None else now
        with self._lock:
            left, since = self._level.get(prefix, (float(limits.burst), now))
            left = min(limits.burst, left + (now - since) * limits.requests_per_s)
            if left >= 1:
                self._level[prefix] = left - 1, now
                return
            self._level[prefix] = left, now
        wait_s = min((1 - left) / limits.requests_per_s, _LONGEST_WAIT_S)
        raise RateReached(
            f"this key may make {limits.requests_per_s:g} requests a second, {limits.burst} at "
            f"once; wait {wait_s:.1f} s",
            wait_s,
        )
