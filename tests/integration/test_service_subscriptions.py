"""Subscriptions over HTTP, on both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.service_server import Service, running_service


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    with running_service(tmp_path / "data", database_url) as running:
        yield running


@pytest.fixture
def zoe(service: Service) -> Iterator[httpx.Client]:
    with service.client(service.key("zoe")) as client:
        yield client


def problem(response: httpx.Response, status: int, name: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    assert told["type"] == f"urn:tamis:error:{name}"
    assert told["status"] == status
    assert told["title"]
    assert told["detail"]
    return told


SPELLINGS: list[tuple[dict[str, Any], Any]] = [
    ({"filter": "price < 3300"}, "sql"),
    ({"filter": {"attribute": "price", "op": "<", "value": 3300}}, "json"),
    ({"filter": '{"attribute": "price", "op": "<", "value": 3300}'}, "json"),
    ({"filter": "mark=FORD&year_from=2014", "spelling": "query"}, "query"),
    ({"filter": True}, "json"),
]


@pytest.mark.parametrize(("given", "spelling"), SPELLINGS)
def test_every_spelling_is_kept_as_it_was_given(
    zoe: httpx.Client, given: dict[str, Any], spelling: str
) -> None:
    made = zoe.post("/v1/subscriptions", json=given)
    assert made.status_code == 201
    read = zoe.get(f"/v1/subscriptions/{made.json()['id']}").json()
    assert read == made.json()
    assert (read["filter"], read["spelling"]) == (given["filter"], spelling)


def test_created_read_replaced_changed_and_deleted(zoe: httpx.Client) -> None:
    draft = {
        "id": "sä/1 ?", "filter": "price < 10", "priority": 0,
        "delivery": {"schedule": "every hour"}, "location": [13.4, 52.5], "radius_m": 500.0,
    }  # fmt: skip
    made = zoe.post("/v1/subscriptions", json=draft)
    etag = made.headers["etag"]
    assert etag == f'"{made.json()["etag"]}"'
    address = "/v1/subscriptions/s%C3%A4%2F1%20%3F"
    read = zoe.get(address).json()
    assert {name: read[name] for name in draft} == draft
    assert (read["owner"], read["version"], read["is_paused"]) == ("zoe", 1, False)
    assert zoe.get(address, headers={"If-None-Match": etag}).status_code == 304

    paused = zoe.patch(address, json={"is_paused": True}, headers={"If-Match": etag})
    assert (paused.json()["version"], paused.json()["is_paused"]) == (2, True)
    moved = zoe.patch(address, json={"location": None, "radius_m": None, "priority": 3}).json()
    assert (moved["location"], moved["radius_m"], moved["priority"]) == (None, None, 3)

    replaced = zoe.put(address, json={"filter": "price < 20"})
    assert replaced.status_code == 200
    assert (replaced.json()["filter"], replaced.json()["delivery"]) == ("price < 20", {})
    assert zoe.delete(address, headers={"If-Match": replaced.headers["etag"]}).status_code == 204
    problem(zoe.get(address), 404, "unknown-subscription")
    assert zoe.put(address, json={"filter": "price < 20"}).status_code == 201


def test_a_change_to_what_was_changed_meanwhile(zoe: httpx.Client) -> None:
    made = zoe.put("/v1/subscriptions/s1", json={"filter": "x = 1"})
    now = zoe.patch("/v1/subscriptions/s1", json={"priority": 1}).headers["etag"]
    old = {"If-Match": made.headers["etag"]}
    for answer in (
        zoe.patch("/v1/subscriptions/s1", json={"priority": 2}, headers=old),
        zoe.put("/v1/subscriptions/s1", json={"filter": "x = 2"}, headers=old),
        zoe.delete("/v1/subscriptions/s1", headers=old),
        zoe.put("/v1/subscriptions/none", json={"filter": "x = 2"}, headers=old),
        zoe.put("/v1/subscriptions/none", json={"filter": "x = 2"}, headers={"If-Match": "*"}),
        zoe.patch("/v1/subscriptions/s1", json={"priority": 2}, headers={"If-Match": f"W/{now}"}),
        zoe.patch("/v1/subscriptions/s1", json={"priority": 2}, headers={"If-Match": '"*"'}),
        zoe.put("/v1/subscriptions/s1", json={"filter": "x = 2"}, headers={"If-None-Match": "*"}),
    ):
        problem(answer, 412, "version-conflict")
    assert zoe.get("/v1/subscriptions/s1").json()["version"] == 2


def test_many_edit_at_once_and_none_is_lost(zoe: httpx.Client, service: Service) -> None:
    zoe.put("/v1/subscriptions/s1", json={"filter": "x = 1", "delivery": {"max_digest": 1}})
    key = zoe.headers["Authorization"].removeprefix("Bearer ")

    def count_up() -> None:
        with service.client(key) as client:
            for _ in range(5):
                while True:
                    read = client.get("/v1/subscriptions/s1")
                    most = read.json()["delivery"]["max_digest"]
                    held = {"delivery": {"max_digest": most + 1}}
                    version = {"If-Match": read.headers["etag"]}
                    done = client.patch("/v1/subscriptions/s1", json=held, headers=version)
                    if done.status_code == 200:
                        break
                    assert done.status_code == 412

    threads = [threading.Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert zoe.get("/v1/subscriptions/s1").json()["delivery"] == {"max_digest": 21}


def test_the_same_id_from_many_at_once_is_taken_once(service: Service) -> None:
    answers: list[int] = []

    def create(owner: str) -> None:
        with service.client(service.key(owner)) as client:
            draft = {"id": "wanted", "filter": "x = 1"}
            answers.append(client.post("/v1/subscriptions", json=draft).status_code)

    threads = [threading.Thread(target=create, args=(f"o{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + [409] * 5


def test_an_owner_sees_and_touches_only_their_own(zoe: httpx.Client, service: Service) -> None:
    zoe.put("/v1/subscriptions/s1", json={"filter": "x = 1"})
    with service.client(service.key("max")) as other:
        address = "/v1/subscriptions/s1"
        problem(other.get(address), 404, "unknown-subscription")
        problem(other.patch(address, json={"priority": 0}), 404, "unknown-subscription")
        problem(other.delete(address), 404, "unknown-subscription")
        problem(other.put(address, json={"filter": "x = 2"}), 409, "duplicate-subscription")
        assert other.get("/v1/subscriptions").json() == {"items": [], "next": None}
        assert other.get("/v1/subscriptions/export").text == ""
        draft = {"filter": "x = 1", "owner": "zoe"}
        problem(other.post("/v1/subscriptions", json=draft), 403, "not-allowed")
        told = other.post("/v1/subscriptions/import", content=b'{"id": "s1", "filter": "x = 2"}\n')
        assert json.loads(told.text.splitlines()[0])["problem"]["status"] == 409
    with service.client() as admin:
        assert admin.get(address).json()["owner"] == "zoe"
        assert admin.put(address, json={"filter": "x = 3"}).json()["owner"] == "zoe"
        theirs = admin.get("/v1/subscriptions", params={"owner": "zoe"}).json()["items"]
        assert [one["id"] for one in theirs] == ["s1"]
    assert zoe.get(address).json()["filter"] == "x = 3"


def test_pages_and_searches(zoe: httpx.Client) -> None:
    for number in range(7):
        zoe.put(f"/v1/subscriptions/s{number}", json={"filter": f"price < {number}00"})
    ids, cursor = [], ""
    while cursor is not None:
        page = zoe.get("/v1/subscriptions", params={"limit": 3, "cursor": cursor}).json()
        ids += [one["id"] for one in page["items"]]
        cursor = page["next"]
    assert ids == [f"s{number}" for number in range(7)]
    found = zoe.get("/v1/subscriptions", params={"search": "PRICE < 3"}).json()
    assert [one["id"] for one in found["items"]] == ["s3"]
    problem(zoe.get("/v1/subscriptions", params={"cursor": "?"}), 400, "bad-request")


def test_the_same_request_again_is_answered_as_the_first_time(zoe: httpx.Client) -> None:
    once = {"Idempotency-Key": "k1"}
    draft = {"filter": "x = 1"}
    first = zoe.post("/v1/subscriptions", json=draft, headers=once)
    zoe.patch(f"/v1/subscriptions/{first.json()['id']}", json={"priority": 0})
    again = zoe.post("/v1/subscriptions", json=draft, headers=once)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["etag"] == first.headers["etag"]
    assert len(zoe.get("/v1/subscriptions").json()["items"]) == 1
    other = zoe.post("/v1/subscriptions", json={"filter": "x = 2"}, headers=once)
    problem(other, 422, "token-reused")
    # What failed was not answered for good.
    bad = {"Idempotency-Key": "k2"}
    zoe.put("/v1/subscriptions/s1", json={"filter": "x = 1"})
    taken = {"id": "s1", "filter": "x = 1"}
    problem(zoe.post("/v1/subscriptions", json=taken, headers=bad), 409, "duplicate-subscription")
    zoe.delete("/v1/subscriptions/s1")
    assert zoe.post("/v1/subscriptions", json=taken, headers=bad).status_code == 201


def test_twins_at_the_same_time_make_one_subscription(zoe: httpx.Client, service: Service) -> None:
    key = zoe.headers["Authorization"].removeprefix("Bearer ")
    answers: list[httpx.Response] = []

    def create() -> None:
        with service.client(key) as client:
            once = {"Idempotency-Key": "twin"}
            answers.append(client.post("/v1/subscriptions", json={"filter": "x = 1"}, headers=once))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(zoe.get("/v1/subscriptions").json()["items"]) == 1


def test_a_filter_that_cannot_be_read_says_where(zoe: httpx.Client) -> None:
    told = problem(
        zoe.post("/v1/subscriptions", json={"filter": "price < 10 AND\n  brand ~ 3"}),
        422, "filter-syntax-error",
    )  # fmt: skip
    assert (told["line"], told["column"], told["offset"]) == (2, 9, 23)
    assert told["caret"] == "  brand ~ 3\n        ^"
    told = problem(
        zoe.post("/v1/subscriptions", json={"filter": {"and": [{"attribute": "x", "op": "~"}]}}),
        422, "filter-syntax-error",
    )  # fmt: skip
    assert told["path"] == "$.and[0].op"


BAD: list[tuple[Any, str]] = [
    ({"filter": "x = 1", "priority": 10}, "invalid-request"),
    ({"filter": "x = 1", "priority": "1"}, "invalid-request"),
    ({"filter": "x = 1", "colour": "red"}, "invalid-request"),
    ({"filter": "x = 1", "id": ""}, "invalid-request"),
    ({"filter": "x = 1", "id": "a\0b"}, "invalid-subscription"),
    ({"filter": "x = 1", "id": "\ud800"}, "invalid-request"),
    ({"filter": "x = 1", "location": [1, 2]}, "invalid-subscription"),
    ({"filter": "x = 1", "location": [1, 2, 3], "radius_m": 1}, "invalid-request"),
    ({"filter": "x = 1", "delivery": {"schedule": "now and then"}}, "invalid-delivery"),
    ({"filter": "x = 1", "delivery": {"shedule": "immediate"}}, "invalid-delivery"),
    ({"filter": "x = 1", "delivery": {"webhook": "http://xn--/"}}, "invalid-delivery"),
    ({"filter": 3}, "invalid-request"),
    ({"filter": None}, "invalid-request"),
    ({}, "invalid-request"),
    ([], "invalid-request"),
    ({"filter": "x = 1", "spelling": "latin"}, "invalid-request"),
]


@pytest.mark.parametrize(("draft", "name"), BAD)
def test_what_cannot_be_saved(zoe: httpx.Client, draft: Any, name: str) -> None:
    body = json.dumps(draft).encode()
    answer = zoe.post(
        "/v1/subscriptions", content=body, headers={"Content-Type": "application/json"}
    )
    problem(answer, 422, name)
    assert zoe.get("/v1/subscriptions").json()["items"] == []


RAW: list[tuple[bytes, str]] = [
    (b'{"filter": "x = 1"', "not JSON"),
    (b'{"filter": "x = 1", "filter": "y = 1"}', "given twice"),
    (b'{"filter": "x = 1", "radius_m": NaN}', "NaN is not JSON"),
    (b'{"filter": "\xff"}', "UTF-8"),
    ('{"filter": "x = 1"}'.encode("utf-16"), "not UTF-8"),
    (b"[" * 100_000, "too deep"),
    (b'{"filter": ' + b'{"not": ' * 50_000, "too deep"),
    (b'{"filter": "x = 1", "priority": ' + b"9" * 5_000 + b"}", "not JSON"),
    (b"", "not JSON"),
]


@pytest.mark.parametrize(("body", "said"), RAW, ids=[said for _, said in RAW[:-1]] + ["empty"])
def test_bodies_that_cannot_be_read(zoe: httpx.Client, body: bytes, said: str) -> None:
    headers = {"Content-Type": "application/json"}
    told = problem(zoe.post("/v1/subscriptions", content=body, headers=headers), 400, "bad-request")
    assert said in told["detail"]


def test_a_nested_filter_is_refused_for_its_depth(zoe: httpx.Client) -> None:
    deep: Any = {"attribute": "x", "op": "=", "value": 1}
    for _ in range(200):
        deep = {"not": deep}
    problem(zoe.post("/v1/subscriptions", json={"filter": deep}), 422, "filter-too-complex")


# -- many at once


def results(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_an_import_tells_of_every_line(zoe: httpx.Client) -> None:
    zoe.put("/v1/subscriptions/b", json={"filter": "x = 1"})
    lines = [
        b'{"id": "a", "filter": "x = 2", "priority": 0, "is_paused": true}',
        b'{"id": "b", "filter": {"attribute": "x", "op": "=", "value": 3}}',
        b'{"id": "c", "filter": "x ="}',
        b"",
        b'{"id": "d", "filter": "m=1", "spelling": "query"}',
        b"{",
        b"\xff",
        b'{"id": "a", "filter": "x = 4"}',
        b'{"filter": "x = 4"}',
        b'{"id": "e", "filter": "x = 5", "delivery": {"webhook": "http://xn--/"}}',
    ]
    *told, last = results(zoe.post("/v1/subscriptions/import", content=b"\n".join(lines)))
    assert [(one["line"], one["result"]) for one in told] == [
        (1, "created"), (2, "replaced"), (3, "error"), (5, "created"), (6, "error"), (7, "error"),
        (8, "replaced"), (9, "error"), (10, "error"),
    ]  # fmt: skip
    assert (told[2]["problem"]["line"], told[2]["problem"]["column"]) == (1, 3)
    assert last == {"summary": {"lines": 9, "created": 2, "replaced": 2, "errors": 5}}
    held = {one["id"]: one for one in zoe.get("/v1/subscriptions").json()["items"]}
    assert sorted(held) == ["a", "b", "d"]
    assert (held["a"]["filter"], held["a"]["is_paused"]) == ("x = 4", False)
    assert (held["b"]["version"], held["b"]["spelling"]) == (2, "json")
    assert held["d"]["spelling"] == "query"


def test_a_line_that_is_far_too_long_ends_an_import_after_those_before_it(
    zoe: httpx.Client,
) -> None:
    lines = [b'{"id": "s%d", "filter": "x = 1"}' % number for number in range(10)]
    lines += [b'{"id": "' + b"x" * 3_000_000 + b'"}', b'{"id": "after", "filter": "x = 1"}']
    *told, last = results(zoe.post("/v1/subscriptions/import", content=b"\n".join(lines)))
    assert [one["result"] for one in told] == ["created"] * 10
    assert "nothing after it was read" in last["problem"]["detail"]
    assert last["summary"] == {"lines": 10, "created": 10, "replaced": 0, "errors": 0}
    assert len(zoe.get("/v1/subscriptions").json()["items"]) == 10


def test_an_export_is_an_import(zoe: httpx.Client, service: Service) -> None:
    lines = b"".join(
        json.dumps({"id": f"s{n:05}", "filter": f"x = {n}", "priority": n % 10}).encode() + b"\n"
        for n in range(5_000)
    )
    only_errors = {"results": "errors"}
    told = results(zoe.post("/v1/subscriptions/import", content=lines, params=only_errors))
    assert told == [{"summary": {"lines": 5_000, "created": 5_000, "replaced": 0, "errors": 0}}]
    exported = zoe.get("/v1/subscriptions/export")
    assert len(exported.text.splitlines()) == 5_000
    *_, last = results(zoe.post("/v1/subscriptions/import", content=exported.content))
    assert last == {"summary": {"lines": 5_000, "created": 0, "replaced": 5_000, "errors": 0}}
    assert zoe.get("/v1/subscriptions/export").content == exported.content
    service.wait_until_ready()
    with service.client() as admin:
        found = admin.post("/v1/match", json={"event": {"x": 4_999}}).json()
    assert found == {"n_matches": 1, "ids": ["s04999"]}


def test_a_client_that_sends_all_before_it_reads_is_no_trouble(zoe: httpx.Client) -> None:
    """The results are larger than what connections hold, and are read at the very end."""
    n_lines = 30_000
    line = b'{"id": "' + b"x" * 400 + b'", "filter": "y ="}\n'
    told = results(zoe.post("/v1/subscriptions/import", content=line * n_lines))
    assert len(told) == n_lines + 1
    assert told[-1]["summary"]["errors"] == n_lines


def test_no_more_subscriptions_than_allowed(service: Service) -> None:
    with service.client(service.key("max", subscriptions=3)) as client:
        for number in range(2):
            client.put(f"/v1/subscriptions/m{number}", json={"filter": "x = 1"})
        lines = b"".join(b'{"id": "m%d", "filter": "x = 2"}\n' % number for number in range(5))
        told = results(client.post("/v1/subscriptions/import", content=lines))
        kinds = [one.get("result") for one in told[:-1]]
        assert kinds == ["replaced", "replaced", "created", "error", "error"]
        assert told[3]["problem"]["type"] == "urn:tamis:error:limit-reached"
        bad = client.post("/v1/subscriptions", json={"filter": "x ="})
        problem(bad, 422, "filter-syntax-error")
        problem(client.post("/v1/subscriptions", json={"filter": "x = 1"}), 403, "limit-reached")
        client.delete("/v1/subscriptions/m0")
        assert client.post("/v1/subscriptions", json={"filter": "x = 1"}).status_code == 201
