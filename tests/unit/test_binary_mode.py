"""CloudEvents whose context is in headers."""

from __future__ import annotations

import json

import pytest

from tamis.errors import InvalidEvent, TamisError
from tamis.model import Event
from tamis.service.binary_mode import is_binary, to_structured
from tamis.service.problems import BadRequest
from tamis.service.published import event_of

JSON = "application/json"
CONTEXT = [("ce-specversion", "1.0"), ("ce-id", "e1"), ("ce-source", "/shop"), ("ce-type", "offer")]


@pytest.mark.parametrize("kind", [JSON, "application/vnd.shop+json", "text/json"])
def test_the_event_is_that_of_the_json_format(kind: str) -> None:
    headers = [("host", "a.example"), *CONTEXT, ("ce-partitionkey", "k")]
    event = Event.from_json(to_structured(headers, kind, b'{"price": 3}'))
    assert event == Event(
        "e1", {"price": 3, "ce.source": "/shop", "ce.type": "offer", "ce.partitionkey": "k"}
    )


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("Köln".encode().decode("latin-1"), "Köln"),
        ('"a \\"b\\" %2F"', 'a "b" /'),
        ("100%", "100%"),
        ('"', '"'),
    ],
)
def test_values_are_decoded(header: str, text: str) -> None:
    assert json.loads(to_structured([("ce-subject", header)], JSON, b"")) == {"subject": text}


def test_what_is_in_binary_mode() -> None:
    assert not is_binary(["host", "ce-cream"], JSON)
    assert is_binary(["ce-type"], "text/plain")
    assert not is_binary(["ce-type"], "application/cloudevents-batch+json")


@pytest.mark.parametrize(
    ("header", "kind", "body", "error", "said"),
    [
        (("ce-id", "e2"), JSON, b"{}", BadRequest, "ce-id is given twice"),
        (("ce-data", "{}"), JSON, b"", BadRequest, "names nothing"),
        (("ce-data_base64", "eA=="), JSON, b"", BadRequest, "names nothing"),
        (("ce-", "x"), JSON, b"", BadRequest, "names nothing"),
        (("ce-subject", "%FF"), JSON, b"", BadRequest, "not UTF-8"),
        (("host", "a"), "application/x-ndjson", b"{}", BadRequest, "application/json, not"),
        (("host", "a"), "text/plain", b"x", BadRequest, "data_base64"),
        (("host", "a"), JSON, b"{", InvalidEvent, "not JSON"),
        (("host", "a"), JSON, b'{"x": NaN}', InvalidEvent, "NaN"),
    ],
)
def test_what_cannot_be_read(
    header: tuple[str, str], kind: str, body: bytes, error: type[TamisError], said: str
) -> None:
    with pytest.raises(error, match=said):
        to_structured([*CONTEXT, header], kind, body)


@pytest.mark.parametrize("left_out", range(4))
def test_a_context_that_is_not_whole_is_refused(left_out: int) -> None:
    given = CONTEXT[:left_out] + CONTEXT[left_out + 1 :]
    assert is_binary(dict(given), JSON)
    with pytest.raises(InvalidEvent, match=f"no [\"']{CONTEXT[left_out][0].removeprefix('ce-')}"):
        event_of(to_structured(given, JSON, b"{}"), is_cloud=True)
