"""The binary mode of CloudEvents: their context in headers, their data in the body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from tamis.errors import InvalidEvent, quoted
from tamis.service.problems import BadRequest
from tamis.values import read_json

__all__ = ["is_binary", "to_structured"]

_PREFIX = "ce-"
_REQUIRED = frozenset({"ce-specversion", "ce-id", "ce-source", "ce-type"})
_NAME = re.compile(r"[a-z0-9]+", re.ASCII)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def is_binary(names: Iterable[str], kind: str) -> bool:
    """Whether headers of these names say that a body of some type is the data of a CloudEvent.

    >>> structured = "application/cloudevents+json"
    >>> [is_binary(["ce-id"], kind) for kind in ("application/json", structured)]
    [True, False]
    """
    return not kind.startswith("application/cloudevents") and not _REQUIRED.isdisjoint(names)


def to_structured(headers: Iterable[tuple[str, str]], kind: str, body: bytes) -> bytes:
    """The same CloudEvent in the JSON format.

    >>> to_structured([("ce-id", "e%201"), ("host", "a.example")], "application/json", b'{"x": 1}')
    b'{"id": "e 1", "data": {"x": 1}}'
    """
    made: dict[str, Any] = {}
    for header, value in headers:
        name = header.removeprefix(_PREFIX)
        if name == header:
            continue
        if name in made:
            raise BadRequest(f"the header {header} is given twice")
        if name == "data" or not _NAME.fullmatch(name):
            raise BadRequest(
                f"the header {quoted(header)} names nothing that a CloudEvent can have"
            )
        made[name] = _value(header, value)
    if body:
        if kind not in ("application/json", "text/json") and not kind.endswith("+json"):
            raise BadRequest(
                f"the Content-Type of a CloudEvent in headers is application/json, not {kind!r}; "
                "send other data as data_base64 in application/cloudevents+json"
            )
        made["data"] = read_json(body, "the event", InvalidEvent)
    return json.dumps(made).encode()


def _value(header: str, raw: str) -> str:
    """The text that a header stands for: perhaps in quotes, and with %20 for a space."""
    if found := _QUOTED.fullmatch(raw):
        raw = re.sub(r"\\(.)", r"\1", found[1])
    try:
        return unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the header {header} is not UTF-8: {error}") from None
