"""Errors of what is given: values, events, subscriptions, schemas and settings of no use."""

from __future__ import annotations

from tamis.errors.root import TamisError


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
