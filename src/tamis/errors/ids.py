"""Errors of ids: those that are taken, and those that nobody has."""

from __future__ import annotations

from tamis.errors.root import TamisError


def _message(error: KeyError) -> str:
    """What it says, without the quotes that Python puts around a key."""
    return str(error.args[0]) if error.args else ""


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

    __str__ = _message


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

    __str__ = _message


class UnknownKey(TamisError, KeyError):
    """A key that nobody made.

    Raised when a key is looked up or revoked by a prefix that no key has.

    What to do: `tamis keys list` has the prefixes.
    """

    __str__ = _message


class UnknownNotification(TamisError, KeyError):
    """A notification that is not there, or is somebody else's.

    Raised when a notification is read or sent again that never was, has been removed after its
    retention, or is of another owner.

    What to do: look at the id; `GET /v1/notifications` has those that are there.
    """

    __str__ = _message
