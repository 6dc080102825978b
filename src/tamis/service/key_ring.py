"""The key ring: keys as requests bring them, looked up seldom and noted in few writes."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from tamis.errors import NotAllowed, UnknownKey
from tamis.service.limits import Limits
from tamis.service.problems import NoKey
from tamis.storage.keys import Key, KeyStore, check_secret, parse_key
from tamis.storage.tables import moment

__all__ = ["Caller", "KeyRing"]

_KNOWN_FOR_S = 5.0  # how long another process's revocation may go unnoticed
_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request."""

    key: Key
    limits: Limits

    @property
    def owner(self) -> str | None:
        """Whose things they see and touch; None is everybody's."""
        return None if self.key.is_admin else self.key.owner

    @property
    def most_subscriptions(self) -> int | None:
        """How many subscriptions they may have; None is any number."""
        return None if self.key.is_admin else self.limits.subscriptions

    def require(self, scope: str) -> None:
        """Raise NotAllowed unless the key has a scope; an admin's has all."""
        if scope not in self.key.scopes and not self.key.is_admin:
            raise NotAllowed(
                f"this key is for {', '.join(sorted(self.key.scopes))}; the scope {scope} is needed"
            )


class KeyRing:
    """Finds the caller of a request."""

    def __init__(self, store: KeyStore, limits: Limits) -> None:
        self._store, self._limits = store, limits
        self._known: dict[str, tuple[float, Caller | None]] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def recall(self, text: str) -> Caller | None:
        """The caller with a key that was looked up a moment ago; None if it was not."""
        prefix, secret = parse_key(text)
        until, caller = self._known.get(prefix, (0.0, None))
        return self._check(caller, secret) if time.monotonic() < until else None

    def find(self, text: str) -> Caller:
        """The caller with a key; NoKey if it is unknown or revoked."""
        prefix, secret = parse_key(text)
        return self._check(self._look_up(prefix), secret)

    def counts(self, prefix: str) -> bool:
        """Whether a key that was let in before is still one; as of five seconds ago at most."""
        until, caller = self._known.get(prefix, (0.0, None))
        if time.monotonic() >= until:
            caller = self._look_up(prefix)
        return caller is not None and caller.key.revoked_at is None

    def forget(self, prefix: str) -> None:
        """Look a key up again."""
        with self._lock:
            self._known.pop(prefix, None)

    def write_uses(self) -> None:
        """Write down when keys were last used."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            moments = {
                prefix: moment(datetime.fromtimestamp(at, UTC)) for prefix, at in used.items()
            }
            self._store.note_use(moments)

    def _look_up(self, prefix: str) -> Caller | None:
        try:
            key = self._store.get(prefix)
            # Keys were once made with limits below 1, which count as 1.
            limits = {name: max(1, value) for name, value in key.limits.items()}
            caller: Caller | None = Caller(key, self._limits.changed(limits))
        except UnknownKey:
            caller = None
        with self._lock:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[prefix] = time.monotonic() + _KNOWN_FOR_S, caller
        return caller

    def _check(self, caller: Caller | None, secret: str) -> Caller:
        is_right = check_secret(None if caller is None else caller.key, secret)
        if not is_right or caller is None or caller.key.revoked_at is not None:
            raise NoKey("the key is unknown or was revoked; ask for a new one")
        with self._lock:
            self._used[caller.key.prefix] = time.time()
        return caller
