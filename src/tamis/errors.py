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
    """The root of every error Tamis raises on purpose.

    Raised only as one of the classes below it.

    What to do: catch it where all of them are answered alike. What is not under it is a fault of
    Tamis or of what it runs on: please report the traceback.
    """


class InvalidValue(TamisError, ValueError):
    """A value that no attribute may hold.

    Raised when a value is of no kind that an attribute may hold, the borders of a range are not
    numbers or timestamps, a polygon has too few corners, or a moment cannot be read. Inside an
    event or a subscription it becomes InvalidEvent or InvalidSubscription, which name it.

    What to do: give a text, a number, a boolean, a timestamp, a Range, a Point, a Polygon, or a
    list of these; docs/filter-language.md says which.
    """


class InvalidEvent(TamisError, ValueError):
    """An event that cannot be read.

    Raised when an event is no JSON object, has no id, has a value that no attribute may hold, or
    has a column of a table that cannot be read. On Spark it becomes a dead letter instead, and the
    others go on.

    What to do: mend what the message names. `tamis match --skip-bad` passes over such events and
    reports them.
    """


class InvalidSubscription(TamisError, ValueError):
    """A subscription that cannot be saved.

    Raised when a field of a subscription is missing, unknown or out of its bounds, as a priority
    that is not from 0 to 9. Its cause (`__cause__`) says more where the filter is to blame.

    What to do: mend the field that the message names. A batch is all or nothing in the library; an
    import of the service tells each line by itself.
    """


class InvalidDelivery(InvalidSubscription):
    """Delivery settings that cannot be read.

    Raised when a schedule, a rate cap or an address cannot be read, a name looks like a misspelling
    of one of these, or a webhook leads where none may.

    What to do: see docs/notifications.md for schedules and caps, docs/delivery.md for addresses.
    """


class InvalidSchema(TamisError, ValueError):
    """A schema that contradicts itself.

    Raised when a schema names a kind that does not exist, bounds in the wrong order, or an
    attribute of a matching algorithm twice; and when a parameter of an algorithm is out of its
    bounds.

    What to do: mend the attribute or the parameter that the message names.
    """


class InvalidSettings(TamisError, ValueError):
    """Settings of a pipeline or of the sender that cannot be used.

    Raised when the file given to `tamis run`, `tamis send --settings`, `tamis serve --pipeline` or
    `tamis serve --sender` cannot be read, is not TOML, or has a setting that is unknown or out of
    its bounds. All mistakes are told at once.

    What to do: mend the lines that are named; docs/pipeline.md and docs/delivery.md have every
    setting.
    """


class SchemaViolation(TamisError, ValueError):
    """A filter or an event that the schema rules out.

    Raised only by an index that was given a schema: when a filter has a predicate that could never
    hold, or an event has a value of another kind, outside its domain, or several where there is to
    be one.

    What to do: mend the filter or the event, or widen the schema.
    """


class FilterError(TamisError, ValueError):
    """A filter that cannot be accepted.

    Raised itself when an expression in Python compares what cannot be compared: an attribute with
    an attribute, a text by its order, anything with None. A filter that is text or JSON raises one
    of its two kinds.

    What to do: compare an attribute with a value; the message names what to use instead. Catch it
    where both kinds are answered alike.
    """


class FilterSyntaxError(FilterError):
    """A filter that cannot be read.

    ``line`` and ``column`` count from 1, ``offset`` from 0; ``excerpt`` is the line with a caret
    under the place. For a filter that is not text (a JSON object) they are ``None`` and ``path``
    says where in the object the trouble is.

    Raised when a filter in one of the spellings is not of the language.

    What to do: look at the caret; docs/filter-language.md has the grammar. `tamis explain FILTER
    --event {}` tries a filter.
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
    """A filter that passes a limit; ``size`` is what it has, ``cap`` what is allowed.

    Raised when a filter has too many characters, levels, or conjunctions in its normal form. The
    number is computed before anything is expanded, so a small text that would explode costs
    nothing.

    What to do: write `x IN (…)` instead of many ORs, or split the filter into several
    subscriptions. For a key of the service, `tamis keys create --limit conjunctions=N` allows more.
    """

    def __init__(self, what: str, size: int, cap: int, advice: str) -> None:
        self.what, self.size, self.cap, self.advice = what, size, cap, advice
        shown = f"{size:,}" if size < 10**30 else f"about 10^{int(size.bit_length() * 0.30103)}"
        super().__init__(f"the filter has {shown} {what}, more than the {cap:,} allowed; {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.what, self.size, self.cap, self.advice)
        return type(self), given, self.__dict__


class DuplicateSubscription(TamisError, ValueError):
    """A subscription id that is already taken.

    Raised when an id is added that is there already. In the service ids are one space for all
    owners, so it may be somebody else's.

    What to do: use `update` (PUT in the service), or choose another id.
    """


class UnknownSubscription(TamisError, KeyError):
    """A subscription id that nobody saved.

    Raised when something is asked of a subscription that is not there. In the service also where it
    is somebody else's.

    What to do: look at the id; `in` tells whether an index has it.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class DuplicateEvent(TamisError, ValueError):
    """An event id that the store holds already.

    Raised by an event store when an event with that id is there and has not expired, or when an id
    is given twice.

    What to do: give every event an id of its own.
    """


class UnknownEvent(TamisError, KeyError):
    """An event id that the store does not hold.

    Raised by an event store for an id that never came, or whose event has expired.

    What to do: look at the id, and at the event's `until`.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotSupported(TamisError, ValueError):
    """What an algorithm declares it cannot do.

    Raised for an algorithm that is not there, and by those of the papers, each of which says in
    `capabilities` what it can do. The Index never raises it.

    What to do: choose another algorithm (docs/algorithms.md has the table), or the Index.
    """


class SnapshotError(TamisError):
    """Index files that cannot be written or opened.

    Raised when an index or an event store is saved where something is already, opened where there
    is none, damaged, or of the format of another version of Tamis; and when the disk fails.

    What to do: give a new path to save to. What is damaged or of another format is saved anew from
    its subscriptions; docs/operations.md says how a pipeline does that.
    """


class PipelineError(TamisError):
    """A pipeline on Spark that cannot start or go on.

    Raised when a folder that its settings name is missing, its state belongs to another pipeline,
    or one of its queries stopped.

    What to do: mend what is named and start it again: it goes on from its checkpoint. `tamis doctor
    --pipeline FILE` looks at the file without starting it.
    """


class StorageError(TamisError):
    """A database that cannot be used, or does not hold what it should.

    Raised for an address that names no database Tamis knows, a folder that is not there, and tables
    that a newer version of Tamis has changed.

    What to do: mend the address (`sqlite:///path`, `postgresql://user@host/name`), or use the newer
    version. `tamis doctor --database URL` looks at it.
    """


class StorageUnavailable(StorageError):
    """A database that cannot be used now, and perhaps later.

    Raised when a database does not answer, a disk is full, or a service still loads its
    subscriptions. Senders try again by themselves; a pipeline stops, and goes on where it was when
    it is started again, which `tamis serve` does.

    What to do: try again; over HTTP `Retry-After` says when. If it stays, `tamis doctor --database
    URL` and the log of the database say more.
    """


class VersionConflict(TamisError):
    """A change to something that was changed meanwhile.

    Raised by a change that was to count for one version only (`if_version`, `If-Match`,
    `If-None-Match: *`) when there is another.

    What to do: read it again, look at what has changed, and repeat the change.
    """


class LimitReached(TamisError):
    """More of something than an owner may have.

    Raised when an owner would have more subscriptions than the key allows; also, as a kind of it,
    for a body that is too large (413) and for requests that come too often (429).

    What to do: delete some, send less at once, wait for `Retry-After`, or ask an admin for a key
    with other limits (`tamis keys create --limit`).
    """


class NotAllowed(TamisError):
    """A key that is missing, unknown or revoked, or that may not do what was asked.

    Raised for a key whose scope does not allow what was asked (403), and, as a kind of it, for a
    request without a key that counts (401).

    What to do: ask an admin for a key with the scope that the message names: `tamis keys create
    OWNER --scope SCOPE`.
    """


class TokenReused(TamisError, ValueError):
    """An Idempotency-Key that came with another request before.

    Raised when an Idempotency-Key comes with another body than before.

    What to do: make a new Idempotency-Key for every request; only a repetition of the same one has
    the same.
    """


class UnknownKey(TamisError, KeyError):
    """A key that nobody made.

    Raised when a key is looked up or revoked by a prefix that no key has.

    What to do: `tamis keys list` has the prefixes.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnknownNotification(TamisError, KeyError):
    """A notification that is not there, or is somebody else's.

    Raised when a notification is read or sent again that never was, has been removed after its
    retention, or is of another owner.

    What to do: look at the id; `GET /v1/notifications` has those that are there.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingExtra(TamisError, ImportError):
    """An optional part of Tamis that is not installed.

    Raised where a part of Tamis is used whose packages are not installed, and where there is no
    Java, or no connector for Kafka.

    What to do: do what the message says. `tamis doctor` tells it of all extras at once.
    """
