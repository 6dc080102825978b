"""Every error Tamis raises on purpose.

    TamisError
    ├── InvalidValue            a value no attribute may hold            (ValueError)
    ├── InvalidEvent            an event that cannot be read             (ValueError)
    ├── InvalidSubscription     a subscription that cannot be saved      (ValueError)
    │   └── InvalidDelivery     ... because of its delivery settings
    ├── InvalidSchema           a schema that contradicts itself         (ValueError)
    ├── SchemaViolation         a filter or event the schema rules out   (ValueError)
    ├── FilterError             a filter that cannot be accepted         (ValueError)
    │   ├── FilterSyntaxError   ... because it cannot be read; has line, column, caret
    │   └── FilterTooComplex    ... because it passes a limit; has size and cap
    ├── DuplicateSubscription   an id that is already taken              (ValueError)
    ├── UnknownSubscription     an id nobody saved                       (KeyError)
    ├── DuplicateEvent          an event id that the store holds already (ValueError)
    ├── UnknownEvent            an event id that the store does not hold (KeyError)
    ├── NotSupported            what an algorithm declares it cannot do  (ValueError)
    ├── SnapshotError           index files that cannot be written or opened
    ├── PipelineError           a pipeline that cannot start or go on
    ├── InvalidSettings         settings that cannot be used             (ValueError)
    ├── StorageError            a database that cannot be used
    │   └── StorageUnavailable  … now, and perhaps later
    ├── VersionConflict         a change to what was changed meanwhile
    ├── LimitReached            more of something than an owner may have
    ├── NotAllowed              a key that is none, or may not do what was asked
    ├── TokenReused             an Idempotency-Key of another request    (ValueError)
    ├── UnknownKey              a key nobody made                        (KeyError)
    ├── UnknownNotification     a notification that is not there         (KeyError)
    └── MissingExtra            an optional part that is not installed   (ImportError)

A message says what was given, what was expected and what to do. What was given is ``quoted``,
so that a message stays short whatever it was.
"""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "DuplicateEvent",
    "DuplicateSubscription",
    "FilterError",
    "FilterSyntaxError",
    "FilterTooComplex",
    "InvalidDelivery",
    "InvalidEvent",
    "InvalidSchema",
    "InvalidSettings",
    "InvalidSubscription",
    "InvalidValue",
    "LimitReached",
    "MissingExtra",
    "NotAllowed",
    "NotSupported",
    "PipelineError",
    "SchemaViolation",
    "SnapshotError",
    "StorageError",
    "StorageUnavailable",
    "TamisError",
    "TokenReused",
    "UnknownEvent",
    "UnknownKey",
    "UnknownNotification",
    "UnknownSubscription",
    "VersionConflict",
]


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


class TamisError(Exception):
    """The root of every error Tamis raises on purpose."""


class InvalidValue(TamisError, ValueError):
    """A value that no attribute may hold."""


class InvalidEvent(TamisError, ValueError):
    """An event that cannot be read."""


class InvalidSubscription(TamisError, ValueError):
    """A subscription that cannot be saved."""


class InvalidDelivery(InvalidSubscription):
    """Delivery settings that cannot be read."""


class InvalidSchema(TamisError, ValueError):
    """A schema that contradicts itself."""


class InvalidSettings(TamisError, ValueError):
    """Settings of the service that cannot be used."""


class SchemaViolation(TamisError, ValueError):
    """A filter or an event that the schema rules out."""


class FilterError(TamisError, ValueError):
    """A filter that cannot be accepted."""


class FilterSyntaxError(FilterError):
    """A filter that cannot be read.

    ``line`` and ``column`` count from 1, ``offset`` from 0; ``excerpt`` is the line with a caret
    under the place. For a filter that is not text (a JSON object) they are ``None`` and ``path``
    says where in the object the trouble is.
    """

    def __init__(
        self,
        problem: str,
        *,
        text: str | None = None,
        offset: int | None = None,
        path: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = path
        self.line: int | None = None
        self.column: int | None = None
        self.offset: int | None = None
        self.excerpt: str | None = None
        super().__init__(self._describe(problem, text, offset))

    def _describe(self, problem: str, text: str | None, offset: int | None) -> str:
        if text is None or offset is None:
            return f"{problem} (at {self.path})" if self.path else problem
        before = text[:offset]
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1
        self.offset = offset
        shown, caret = _excerpt(text, offset, self.column)
        self.excerpt = f"{shown}\n{caret}"
        return f"{problem} (line {self.line}, column {self.column})\n  {shown}\n  {caret}"


def _excerpt(text: str, offset: int, column: int, width: int = 72) -> tuple[str, str]:
    """The line around ``offset``, cut to ``width``, and a caret under the place."""
    start = offset - (column - 1)
    end = text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    cut = max(0, column - 1 - width // 2)
    shown = line[cut : cut + width]
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return visible, " " * (column - 1 - cut) + "^"


class FilterTooComplex(FilterError):
    """A filter that passes a limit; ``size`` is what it has, ``cap`` what is allowed."""

    def __init__(self, what: str, size: int, cap: int, advice: str) -> None:
        self.what, self.size, self.cap, self.advice = what, size, cap, advice
        shown = f"{size:,}" if size < 10**30 else f"about 10^{int(size.bit_length() * 0.30103)}"
        super().__init__(f"the filter has {shown} {what}, more than the {cap:,} allowed; {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.what, self.size, self.cap, self.advice)
        return type(self), given, self.__dict__


class DuplicateSubscription(TamisError, ValueError):
    """A subscription id that is already taken."""


class UnknownSubscription(TamisError, KeyError):
    """A subscription id that nobody saved."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class DuplicateEvent(TamisError, ValueError):
    """An event id that the store holds already."""


class UnknownEvent(TamisError, KeyError):
    """An event id that the store does not hold."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotSupported(TamisError, ValueError):
    """What an algorithm declares it cannot do."""


class SnapshotError(TamisError):
    """Index files that cannot be written or opened."""


class PipelineError(TamisError):
    """A pipeline on Spark that cannot start or go on."""


class StorageError(TamisError):
    """A database that cannot be used, or does not hold what it should."""


class StorageUnavailable(StorageError):
    """A database that cannot be used now, and perhaps later."""


class VersionConflict(TamisError):
    """A change to something that was changed meanwhile."""


class LimitReached(TamisError):
    """More of something than an owner may have."""


class NotAllowed(TamisError):
    """A key that is missing, unknown or revoked, or that may not do what was asked."""


class TokenReused(TamisError, ValueError):
    """An Idempotency-Key that came with another request before."""


class UnknownKey(TamisError, KeyError):
    """A key that nobody made."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnknownNotification(TamisError, KeyError):
    """A notification that is not there, or is somebody else's."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingExtra(TamisError, ImportError):
    """An optional part of Tamis that is not installed."""
