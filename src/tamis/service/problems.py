"""Problems: every error as ``application/problem+json``, one status for each class."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from tamis import errors
from tamis.service.limits import RateReached

__all__ = [
    "BadRequest",
    "BodyTooLarge",
    "answer_of",
    "problem_of",
    "problem_type",
    "respond_with_problems",
]

MEDIA_TYPE = "application/problem+json"


class BadRequest(errors.TamisError, ValueError):
    """A request that cannot be read."""


class BodyTooLarge(errors.LimitReached):
    """A body with more bytes than a key may send."""


class NoKey(errors.NotAllowed):
    """A request without a key that counts."""


class AtWork(errors.TamisError):
    """A request whose twin is being answered."""


# The first class that fits counts.
STATUS_OF: tuple[tuple[type[Exception], int], ...] = (
    (NoKey, 401),
    (errors.NotAllowed, 403),
    (errors.UnknownSubscription, 404),
    (errors.UnknownKey, 404),
    (errors.UnknownNotification, 404),
    (errors.DuplicateSubscription, 409),
    (AtWork, 409),
    (errors.VersionConflict, 412),
    (BodyTooLarge, 413),
    (RateReached, 429),
    (errors.LimitReached, 403),
    (BadRequest, 400),
    (errors.TokenReused, 422),
    (errors.StorageUnavailable, 503),
    (errors.FilterError, 422),
    (errors.InvalidEvent, 422),
    (errors.InvalidSubscription, 422),
    (errors.InvalidValue, 422),
    (errors.SchemaViolation, 422),
)


_DATABASE_AWAY = "the database cannot be used now; try again"


def problem_type(kind: type[Exception]) -> str:
    """The stable name of a class of errors.

    >>> problem_type(errors.FilterSyntaxError)
    'urn:tamis:error:filter-syntax-error'
    """
    words = re.findall(r"[A-Z][a-z0-9]*", kind.__name__)
    return "urn:tamis:error:" + "-".join(words).lower()


def status_of(error: Exception) -> int:
    """The status an error is answered with."""
    return next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)


def problem_of(error: errors.TamisError) -> dict[str, Any]:
    """An error as the object that tells it."""
    status = status_of(error)
    told: dict[str, Any] = {
        "type": problem_type(type(error)),
        "title": _title(type(error)),
        "status": status,
        "detail": str(error),
    }
    if isinstance(error, errors.FilterSyntaxError):
        told["detail"] = error.problem
        places = {
            "line": error.line, "column": error.column, "offset": error.offset,
            "caret": error.excerpt, "path": error.path,
        }  # fmt: skip
        told |= {name: held for name, held in places.items() if held is not None}
    if isinstance(error, errors.StorageUnavailable) and error.__cause__ is not None:
        told["detail"] = _DATABASE_AWAY  # its address and what its driver says are for the log
    if notes := getattr(error, "__notes__", None):
        told["hint"] = "; ".join(notes)
    return told


def respond_with_problems(app: FastAPI) -> None:
    """Answer every error of an app as a problem."""
    for kind, answer in _ANSWERS.items():
        app.add_exception_handler(kind, partial(_answer_request, answer))
    app.add_exception_handler(Exception, partial(_answer_request, _answer_anything))


def answer_of(error: Exception) -> JSONResponse | None:
    """The answer to an error; None to a fault of ours, which nobody foresaw."""
    answers = (_ANSWERS.get(kind) for kind in type(error).__mro__)
    found = next((one for one in answers if one is not None), None)
    return None if found is None else found(error)


def _answer_request(
    answer: Callable[[Exception], JSONResponse], request: Request, error: Exception
) -> JSONResponse:
    return answer(error)


def problem_response(error: errors.TamisError) -> JSONResponse:
    """The whole answer to an error."""
    told = problem_of(error)
    headers = {}
    if isinstance(error, RateReached):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    elif isinstance(error, errors.StorageUnavailable | AtWork):
        headers["Retry-After"] = "1"
    elif isinstance(error, NoKey):
        headers["WWW-Authenticate"] = 'Bearer realm="tamis"'
    return _response(told, headers)


def _answer_tamis(error: Exception) -> JSONResponse:
    assert isinstance(error, errors.TamisError)
    return problem_response(error)


def _answer_validation(error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = [
        {"place": ".".join(str(part) for part in one["loc"]), "problem": one["msg"]}
        for one in error.errors()[:20]
    ]
    first = found[0] if found else {"place": "", "problem": "it cannot be read"}
    told = {
        "type": "urn:tamis:error:invalid-request",
        "title": "Invalid request",
        "status": 422,
        "detail": f"{first['place']}: {first['problem']}",
        "problems": found,
    }
    return _response(told)


def _answer_http(error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    word = phrase.lower().replace(" ", "-")
    told = {
        "type": f"urn:tamis:error:{word}",
        "title": phrase,
        "status": error.status_code,
        "detail": str(error.detail),
    }
    return _response(told, dict(error.headers or {}))


def _answer_data(error: Exception) -> JSONResponse:
    return problem_response(errors.InvalidValue("the database cannot hold a value of the request"))


def _answer_pool(error: Exception) -> JSONResponse:
    return problem_response(
        errors.StorageUnavailable("all connections to the database are in use; try again")
    )


def _answer_anything(error: Exception) -> JSONResponse:
    told = {
        "type": "urn:tamis:error:internal",
        "title": "Internal error",
        "status": 500,
        "detail": "the service has a fault; its log says more",
    }
    return _response(told)


_ANSWERS: dict[type[Exception], Callable[[Exception], JSONResponse]] = {
    errors.TamisError: _answer_tamis,
    RequestValidationError: _answer_validation,
    HTTPException: _answer_http,
    DataError: _answer_data,
    PoolTimeout: _answer_pool,
}


def _response(told: dict[str, Any], headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(told, told["status"], headers, MEDIA_TYPE)


def _title(kind: type[Exception]) -> str:
    words = re.findall(r"[A-Z][a-z0-9]*", kind.__name__)
    return " ".join(words).capitalize()
