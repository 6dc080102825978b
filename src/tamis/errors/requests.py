"""Errors of requests: what an owner may not do, or not any more."""

from __future__ import annotations

from tamis.errors.root import TamisError


class VersionConflict(TamisError):
    """A change to something that was changed meanwhile.

    Raised by a change that was to count for one version only (`if_etag`, `If-Match`,
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
