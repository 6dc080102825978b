"""Failures: the problems of a service as the errors that Tamis raises."""

from __future__ import annotations

from typing import Any

import httpx

from tamis import errors
from tamis.errors import TamisError

__all__ = ["ServiceError", "error_of"]

_NAME = "urn:tamis:error:"
# Where a service has a class of its own, or something in between answers.
_BY_STATUS: dict[int, type[TamisError]] = {
    401: errors.NotAllowed,
    403: errors.NotAllowed,
    412: errors.VersionConflict,
    413: errors.LimitReached,
    429: errors.LimitReached,
    503: errors.StorageUnavailable,
}


class ServiceError(TamisError):
    """A failure that has no class of its own; ``status`` is that of HTTP, None if none came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def error_of(response: httpx.Response) -> TamisError:
    """The error that an answer stands for; ``problem`` is what the service said of it."""
    problem = _problem(response)
    detail = str(problem.get("detail") or f"the service answered {response.status_code}")
    kind = _kind(str(problem.get("type", "")), response.status_code)
    if kind is ServiceError:
        error: TamisError = ServiceError(detail, response.status_code)
    else:
        # Not by their own constructors, which write messages that are written already.
        error = kind.__new__(kind, detail)
        error.args = (detail,)
    if isinstance(error, errors.FilterSyntaxError):
        _place(error, problem)
    error.problem = problem  # type: ignore[attr-defined]
    if after := response.headers.get("Retry-After"):
        error.retry_after_s = float(after)  # type: ignore[attr-defined]
    return error


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        held = response.json()
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def _kind(name: str, status: int) -> type[TamisError]:
    words = name.removeprefix(_NAME).split("-") if name.startswith(_NAME) else []
    found = getattr(errors, "".join(word.capitalize() for word in words) or "none", None)
    if isinstance(found, type) and issubclass(found, TamisError):
        return found
    return _BY_STATUS.get(status, ServiceError)


def _place(error: errors.FilterSyntaxError, problem: dict[str, Any]) -> None:
    error.path = problem.get("path")
    error.line, error.column = problem.get("line"), problem.get("column")
    error.offset, error.excerpt = problem.get("offset"), problem.get("caret")
    if error.excerpt is not None:
        shown = "\n".join(f"  {line}" for line in error.excerpt.split("\n"))
        said = f"{problem.get('detail')} (line {error.line}, column {error.column})\n{shown}"
        error.args = (said,)
