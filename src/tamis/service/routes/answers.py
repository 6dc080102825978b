"""What the routes say in the OpenAPI document about their errors."""

from __future__ import annotations

from typing import Any

from tamis.service.problems import MEDIA_TYPE
from tamis.service.schemas import Problem

_SAID = {
    400: "The request cannot be read.",
    401: "There is no key, or it does not count.",
    403: "The key may not do this, or its owner has reached a limit.",
    404: "It is not there, or somebody else's.",
    405: "There is no such method.",
    409: "It is there already, or its twin is being answered.",
    412: "It was changed meanwhile.",
    413: "The body is too large.",
    422: "The request says something that cannot be.",
    429: "Too many requests; Retry-After says when to come back.",
    503: "The database or the event log cannot be used now; Retry-After says when to try again.",
}
_RETRY_AFTER = {
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}, "example": 1}
}
_ETAG = {
    "ETag": {
        "description": "For `If-Match` of the next change.", "schema": {"type": "string"},
        "example": '"1-2026-01-01T09:00:00.000000Z"',
    }
}  # fmt: skip
_EVERYWHERE = (400, 401, 403, 413, 422, 429, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route: those of all routes, and these."""
    return {
        status: {
            "description": _SAID[status],
            "content": {
                MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}
            },
            **({"headers": _RETRY_AFTER} if status in (429, 503) else {}),
        }
        for status in sorted({*_EVERYWHERE, *statuses})
    }


def with_etag(said: str, **more: Any) -> dict[str, Any]:
    """An answer with an ETag; ``more`` is what else is said about it."""
    return {"description": said, "headers": _ETAG, **more}
