"""The client against a service: typed results, and the errors of the library."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tamis import Event, Subscription, col
from tamis.client import AsyncClient, Client, ServiceError
from tamis.errors import (
    DuplicateSubscription,
    FilterSyntaxError,
    FilterTooComplex,
    InvalidDelivery,
    LimitReached,
    NotAllowed,
    UnknownSubscription,
    VersionConflict,
)
from tests.integration.service_server import Service, running_service
from tests.integration.test_service_events import tell


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("client")) as running:
        running.wait_until_ready()
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.admin) as made:
        yield made


def test_subscriptions(client: Client) -> None:
    made = client.create(col("price") < 3300, id="c/1", delivery={"schedule": "every hour"})
    assert (made.id, made.version, made.spelling) == ("c/1", 1, "json")
    assert client.get("c/1") == made
    changed = client.change("c/1", priority=0, if_etag=made.etag)
    assert (changed.priority, changed.version) == (0, 2)
    with pytest.raises(VersionConflict, match=f"{changed.etag}', not '{made.etag}"):
        client.change("c/1", priority=1, if_etag=made.etag)
    put = client.put("c/1", "price < 10", location=(13.4, 52.5), radius_m=5)
    assert (put.filter, put.location) == ("price < 10", [13.4, 52.5])
    assert [one.id for one in client.subscriptions(search="c/", page_size=1)] == ["c/1"]
    with pytest.raises(DuplicateSubscription):
        client.create("x = 1", id="c/1")
    client.delete("c/1")
    with pytest.raises(UnknownSubscription, match="no subscription 'c/1'"):
        client.get("c/1")


def test_errors_are_those_of_the_library(client: Client, service: Service) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        client.create("price <")
    assert (caught.value.line, caught.value.column, caught.value.offset) == (1, 7, 6)
    assert str(caught.value).endswith("  price <\n        ^")
    with pytest.raises(FilterTooComplex):
        client.create(" AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(12)))
    with pytest.raises(InvalidDelivery):
        client.create("x = 1", delivery={"schedule": "never"})
    with pytest.raises(NotAllowed), Client(service.url, "tamis_x") as stranger:
        stranger.get("s1")
    with Client(service.url, service.key("p", "publisher")) as publisher, pytest.raises(NotAllowed):
        publisher.get("s1")
    limited = service.key("l", requests_per_s=1, burst=1)
    with Client(service.url, limited) as hasty:
        list(hasty.subscriptions())
        with pytest.raises(LimitReached) as over:
            _ = [list(hasty.subscriptions()) for _ in range(5)]
    assert over.value.retry_after_s >= 1
    with Client("http://127.0.0.1:9", "k") as nobody, pytest.raises(ServiceError, match="answer"):
        nobody.get("s1")


def test_imports_exports_events_and_matching(client: Client) -> None:
    given = [
        Subscription("i1", "x = 1"),
        {"id": "i2", "filter": col("x") == 2},
        '{"id": "i3", "filter": "x ="}',
    ]
    told = list(client.import_many(given))
    assert [(one.id, one.result) for one in told] == [
        ("i1", "created"), ("i2", "created"), (None, "error"),
    ]  # fmt: skip
    assert told[2].problem is not None
    assert [one.line for one in client.import_many(given, only_errors=True)] == [3]
    assert [one["id"] for one in client.export()] == ["i1", "i2"]
    assert client.match({"x": 1}).ids == ["i1"]
    assert client.explain({"x": 1}, id="i1").held
    assert not client.explain({"x": 1}, "x > 1").held
    published = client.publish(Event("e1", {"x": 1}))
    assert published.ids == ["e1"]
    assert client.publish([{"x": 1}, Event("e2", {"x": 2})]).n_events == 2
    seen = client.preview("x = 2")
    assert (seen.n_matches, seen.too_broad) == (1, False)


def test_keys_and_notifications(client: Client, service: Service) -> None:
    key = client.create_key("zoe", ["subscriber"], limits={"burst": 1_000})
    held = client.keys()
    assert key.prefix in {one.prefix for one in held}
    id = tell(service, 1)
    with Client(service.url, key.key) as zoe:
        (told,) = zoe.notifications()
        assert told.id == id
        assert zoe.notification(id).deliveries == []
        assert zoe.replay(id) == 0
        later = threading.Timer(0.5, lambda: tell(service, 2))
        later.start()
        feed = zoe.follow(after=told.number)
        assert next(feed).matches == [{"event_id": "e2"}]
        feed.close()
        later.join()
    assert client.revoke_key(key.prefix).revoked_at


def test_the_same_for_asyncio(service: Service) -> None:
    async def use() -> None:
        async with AsyncClient(service.url, service.admin) as client:
            made = await client.create("y = 1", id="a1")
            assert await client.get("a1") == made
            with pytest.raises(FilterSyntaxError):
                await client.create("y =")
            found = [one.id async for one in client.subscriptions(search="y = 1")]
            assert found == ["a1"]
            told = [one async for one in client.import_many([Subscription("a2", "y = 2")])]
            assert [one.result for one in told] == ["created"]
            assert [one["id"] async for one in client.export()][:2] == ["a1", "a2"]
            assert (await client.match({"y": 2})).ids == ["a2"]
            assert (await client.publish({"y": 2})).n_events == 1
            tell(service, 50)
            async for one in client.follow(after=0):
                assert one.owner == "zoe"
                break
            await client.delete("a1")
            await client.delete("a2")

    asyncio.run(use())
