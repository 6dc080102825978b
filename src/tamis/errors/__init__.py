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
    ├── UnfinishedChange        an index of which a change was broken off
    ├── PipelineError           a pipeline that cannot start or go on
    ├── InvalidSettings         settings of a sender that cannot be used (ValueError)
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
so that a message stays short whatever it was. A docstring says when an error is raised and what to
do; docs/errors.md is made of them by scripts/error_page.py.
"""

from __future__ import annotations

from tamis.errors.filters import FilterError, FilterSyntaxError, FilterTooComplex
from tamis.errors.ids import (
    DuplicateEvent,
    DuplicateSubscription,
    UnknownEvent,
    UnknownKey,
    UnknownNotification,
    UnknownSubscription,
)
from tamis.errors.invalid import (
    InvalidDelivery,
    InvalidEvent,
    InvalidSchema,
    InvalidSettings,
    InvalidSubscription,
    InvalidValue,
    SchemaViolation,
)
from tamis.errors.quoting import quoted as quoted
from tamis.errors.quoting import shortened as shortened
from tamis.errors.requests import LimitReached, NotAllowed, TokenReused, VersionConflict
from tamis.errors.root import TamisError
from tamis.errors.surroundings import (
    MissingExtra,
    NotSupported,
    PipelineError,
    SnapshotError,
    StorageError,
    StorageUnavailable,
    UnfinishedChange,
)

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
    "UnfinishedChange",
    "UnknownEvent",
    "UnknownKey",
    "UnknownNotification",
    "UnknownSubscription",
    "VersionConflict",
]

# Where they stand is ours alone: tracebacks, pickles and users know them as tamis.errors.X.
for _name in __all__:
    globals()[_name].__module__ = __name__
