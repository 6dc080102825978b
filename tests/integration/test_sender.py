"""The sender: what is sent, in which order, and what comes of failures."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest
from standardwebhooks import Webhook

from tamis.service.sending import Sender, targets_of
from tamis.service.sending.transports.webhook import WebhookTransport
from tamis.storage import Database, SubscriptionStore, delivery_log
from tamis.storage.deliveries import Appetite, Leases, Result, take_back
from tamis.storage.delivery_log import list_deliveries, replay, replay_dead
from tamis.storage.figures import Destination, read_figures
from tamis.storage.outbox import fan_out
from tamis.storage.retention import expire, remove_old
from tamis.storage.tables import attempts, circuits, deliveries, moment, notifications, owners
from tests.integration.receiver import Answer, Receiver, receiving
from tests.integration.sending import (
    Clock,
    a_match,
    notify,
    outcomes,
    rows_of,
    send_due,
    settings,
    states,
    subscribe,
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_webhook_is_told_and_can_check_it(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": f"{receiver.url}/hook?a=b"})
    payloads = [b'{"price": 3200}', b"plain \xc3\xa4", b"\xff\x00", b""]
    (id,) = notify(database, "s1", matches=[a_match(one) for one in payloads], held_back=7)
    assert send_due(database, settings(), clock) == 1
    (request,) = receiver.received
    assert request.path == "/hook?a=b"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    with database.reading() as connection:
        secret = connection.execute(owners.select()).one().webhook_secret
    body = Webhook(secret).verify(request.body, request.headers)
    assert request.id == id
    assert body["type"] == "subscription.matched"
    assert body["data"]["subscription"] == {
        "id": "s1",
        "filter": "price < 3300 AND brand = 'Škoda'",
    }
    assert body["data"]["held_back"] == 7
    told = body["data"]["matches"]
    assert [one.get("payload") for one in told] == [{"price": 3200}, "plain ä", None, None]
    assert told[2]["payload_base64"] == "/wA="
    assert states(database) == {id: "sent"}
    assert outcomes(database) == [("sent", 200)]


def test_a_notice_says_what_was_held_back(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    notify(database, "s1", matches=[], part=0, parts=0, held_back=3)
    send_due(database, settings(), clock)
    body = json.loads(receiver.received[0].body)
    assert (body["type"], body["data"]["matches"]) == ("subscription.held_back", [])


def test_the_highest_priority_is_sent_first(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    wanted = []
    for priority in (9, 0, 5):
        subscribe(database, f"s{priority}", {"webhook": receiver.url}, priority=priority)
    for priority in (9, 0, 5, 0):
        n_before = len(wanted)
        ids = notify(database, f"s{priority}", 2, priority=priority, first=n_before)
        wanted += [(priority, n_before, id) for id in ids]
    send_due(database, settings(per_destination=1, concurrency=1), clock)
    assert receiver.ids == [id for _, _, id in sorted(wanted, key=lambda one: one[:2])]


def test_failures_are_tried_again_later_and_later(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    (id,) = notify(database, "s1")
    receiver.answer = lambda request: Answer(503)
    given = settings(circuit_failures=100)
    waits = []
    for _ in range(4):
        assert send_due(database, given, clock) == 1
        assert send_due(database, given, clock) == 0
        next_at = datetime.fromisoformat(rows_of(database, deliveries)[0].next_at)
        waits.append((next_at - clock.now).total_seconds())
        clock.now = next_at
    for wait, full in zip(waits, (5, 15, 45, 135), strict=True):
        assert full / 2 <= wait <= full
    receiver.answer = lambda request: Answer(200)
    assert send_due(database, given, clock) == 1
    assert states(database) == {id: "sent"}
    assert receiver.ids == [id] * 5
    assert outcomes(database) == [("failed", 503)] * 4 + [("sent", 200)]


def test_after_the_last_attempt_it_is_dead_until_it_is_replayed(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    (id,) = notify(database, "s1")
    given = settings(max_attempts=3, circuit_failures=100)
    receiver.answer = lambda request: Answer(500)
    for _ in range(5):
        send_due(database, given, clock)
        clock.move(hours=1)
    assert len(receiver.received) == 3
    assert states(database) == {id: "dead"}
    receiver.answer = lambda request: Answer(200)
    targets = partial(targets_of, settings=given)
    assert replay(database, id, targets, now=clock(), max_age=given.max_age) == 1
    send_due(database, given, clock)
    assert states(database) == {id: "sent"}
    assert replay(database, "nothing", targets, now=clock(), max_age=given.max_age) == 0


def test_how_often_an_answer_is_asked_for_again(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    wanted = {410: 1, 400: 3, 404: 3, 302: 3, 408: 6, 429: 6, 500: 6}
    for status in wanted:
        subscribe(database, f"s{status}", {"webhook": f"{receiver.url}/{status}"})
        notify(database, f"s{status}")
    receiver.answer = lambda request: Answer(int(request.path.strip("/")))
    for _ in range(8):
        send_due(database, settings(max_attempts=6, circuit_failures=100), clock)
        clock.move(hours=6)
    assert Counter(int(one.path.strip("/")) for one in receiver.received) == wanted
    assert set(states(database).values()) == {"dead"}


def test_too_old_is_dead(database: Database, receiver: Receiver, clock: Clock) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    (id,) = notify(database, "s1")
    receiver.answer = lambda request: Answer(500)
    send_due(database, settings(), clock)
    clock.move(days=4)
    assert expire(database, clock()) == 1
    assert states(database) == {id: "dead"}
    assert rows_of(database, deliveries)[0].problem.startswith(
        "too old; the last problem: answered"
    )


def test_retry_after_is_honoured_within_bounds(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    notify(database, "s1")
    receiver.answer = lambda request: Answer(429, {"retry-after": "600"})
    send_due(database, settings(), clock)
    clock.move(seconds=599)
    assert send_due(database, settings(), clock) == 0
    clock.move(seconds=2)
    receiver.answer = lambda request: Answer(503, {"retry-after": "999999999"})
    assert send_due(database, settings(), clock) == 1
    next_at = datetime.fromisoformat(rows_of(database, deliveries)[0].next_at)
    assert next_at - clock.now == settings().longest_retry


@pytest.mark.parametrize(
    "said", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "9" * 5_000, "soon", ""]
)
def test_a_retry_after_that_says_nothing_is_left_out(
    database: Database, receiver: Receiver, clock: Clock, said: str
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    notify(database, "s1")
    receiver.answer = lambda request: Answer(503, {"retry-after": said})
    assert send_due(database, settings(), clock) == 1
    (row,) = rows_of(database, deliveries)
    assert (row.state, row.problem) == ("waiting", "answered 503 Service Unavailable")


def test_a_destination_that_fails_rests_and_is_probed_once(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    with receiving() as other:
        subscribe(database, "bad", {"webhook": receiver.url})
        subscribe(database, "good", {"webhook": other.url})
        notify(database, "bad", 50)
        good = notify(database, "good", 20)
        receiver.answer = lambda request: Answer(500)
        given = settings(per_destination=1, ahead=1, first_retry="60 s")
        send_due(database, given, clock)
        # Five failures in a row, then nobody bothers it; the other one is not held up.
        assert len(receiver.received) == 5
        assert sorted(other.ids) == sorted(good)
        clock.move(seconds=29)
        assert send_due(database, given, clock) == 0
        clock.move(seconds=2)
        assert send_due(database, given, clock) == 1  # a probe; then it rests twice as long
        clock.move(seconds=58)
        assert send_due(database, given, clock) == 0
        clock.move(seconds=120)
        receiver.answer = lambda request: Answer(200)
        send_due(database, given, clock)
        assert set(states(database).values()) == {"sent"}
        with database.reading() as connection:
            assert connection.execute(circuits.select()).all() == []


def test_attempts_are_not_used_up_while_a_destination_rests(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    notify(database, "s1", 20)
    receiver.answer = lambda request: Answer(500)
    for _ in range(20):
        send_due(database, settings(per_destination=1, ahead=1), clock)
        clock.move(seconds=10)
    assert sum(row.attempts for row in rows_of(database, deliveries)) < 12


def test_a_slow_destination_does_not_hold_up_others(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    with receiving() as other:
        subscribe(database, "slow", {"webhook": receiver.url}, priority=0)
        subscribe(database, "fast", {"webhook": other.url}, priority=9)
        notify(database, "slow", 300, priority=0)
        fast = notify(database, "fast", 100, priority=9)
        receiver.answer = lambda request: Answer(delay_s=0.2)
        given = settings(concurrency=8, per_destination=2, ahead=2)

        async def run() -> None:
            sender = Sender(database, given, {"webhook": WebhookTransport(given)}, clock=clock)
            running = asyncio.create_task(sender.run())
            async with asyncio.timeout(30):
                while len(other.received) < len(fast):
                    await asyncio.sleep(0.01)
            sender.stop()
            await running

        asyncio.run(run())
        assert len(receiver.received) < 300
        assert sorted(other.ids) == sorted(fast)
        left = Counter(states(database).values())
        assert left["sending"] == 0  # what was not begun was given back
        assert left["sent"] == len(receiver.received) + len(other.received)
        not_sent = [row for row in rows_of(database, deliveries) if row.state == "waiting"]
        assert {row.attempts for row in not_sent} == {0}


def test_who_is_told_nothing(database: Database, receiver: Receiver, clock: Clock) -> None:
    store = SubscriptionStore(database)
    for id in ("gone", "paused", "taken", "later", "moved", "feed"):
        subscribe(database, id, {} if id == "feed" else {"webhook": f"{receiver.url}/{id}"})
        notify(database, id)
    store.delete("gone")
    store.delete("taken")
    subscribe(database, "taken", {"webhook": f"{receiver.url}/max"}, owner="max")
    store.change("paused", lambda saved: replace(saved, is_paused=True))
    targets = partial(targets_of, settings=settings())
    fan_out(database, targets, now=clock(), max_age=settings().max_age)
    store.change("later", lambda saved: replace(saved, is_paused=True))
    moved = {"webhook": f"{receiver.url}/new"}
    store.delete("moved")
    subscribe(database, "moved", moved)
    send_due(database, settings(), clock)
    assert receiver.received == []
    problems = Counter((row.state, row.problem) for row in rows_of(database, deliveries))
    assert problems == {
        ("skipped", "the subscription was deleted"): 2,
        ("skipped", "the subscription is paused"): 2,
        ("skipped", "the subscription has another address now"): 1,
    }
    assert rows_of(database, attempts) == []


def test_a_replay_goes_where_the_subscription_says_now(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": f"{receiver.url}/old"})
    (id,) = notify(database, "s1")
    send_due(database, settings(), clock)
    SubscriptionStore(database).delete("s1")
    subscribe(database, "s1", {"webhook": f"{receiver.url}/new"})
    targets = partial(targets_of, settings=settings())
    replay(database, id, targets, now=clock(), max_age=settings().max_age)
    send_due(database, settings(), clock)
    assert [(one.path, one.id) for one in receiver.received] == [("/old", id), ("/new", id)]


def test_dead_letters_of_an_owner_and_of_a_destination(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    with receiving() as other:
        subscribe(database, "z1", {"webhook": receiver.url})
        subscribe(database, "z2", {"webhook": other.url})
        subscribe(database, "m1", {"webhook": receiver.url}, owner="max")
        for id, owner in (("z1", "zoe"), ("z2", "zoe"), ("m1", "max")):
            notify(database, id, 2, owner=owner)
        receiver.answer = other.answer = lambda request: Answer(410)
        send_due(database, settings(), clock)
        again = partial(replay_dead, database, now=clock(), max_age=settings().max_age)
        assert again(owner="nobody") == 0
        assert again(owner="zoe", destination=other.url) == 2
        assert again(owner="zoe") == 2
        assert again(destination=receiver.url) == 2
        assert again() == 0


def test_a_lease_that_ran_out_is_taken_over_and_the_old_sender_has_no_say(
    database: Database, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": "https://example.org"})
    (id,) = notify(database, "s1")
    fan_out(database, partial(targets_of, settings=settings()), now=clock(), max_age=timedelta(1))
    first, second = Leases(database, "first"), Leases(database, "second")
    appetite = Appetite(10, 10, {})
    (claim,) = first.claim(appetite, clock(), clock() + timedelta(seconds=30))
    assert second.claim(appetite, clock(), clock() + timedelta(seconds=30)) == []
    assert first.renew([claim.number], clock() + timedelta(seconds=60)) == {claim.number}
    clock.move(seconds=59)
    assert take_back(database, clock(), 20) == 0
    clock.move(seconds=1)
    assert take_back(database, clock(), 20) == 1
    (again,) = second.claim(appetite, clock(), clock() + timedelta(seconds=30))
    assert (again.number, again.row.attempts) == (claim.number, 2)
    assert first.renew([claim.number], clock() + timedelta(seconds=60)) == set()
    first.finish([Result(claim, "sent", clock())], clock())
    assert states(database) == {id: "sending"}
    second.finish([Result(again, "sent", clock())], clock())
    assert states(database) == {id: "sent"}
    assert outcomes(database) == [("lost", None)]


def test_a_delivery_that_kills_its_senders_is_dead_in_the_end(
    database: Database, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": "https://example.org"})
    (id,) = notify(database, "s1")
    fan_out(database, partial(targets_of, settings=settings()), now=clock(), max_age=timedelta(1))
    for _ in range(3):
        Leases(database, "x").claim(Appetite(10, 10, {}), clock(), clock())
        take_back(database, clock(), 3)
    assert states(database) == {id: "dead"}


def test_what_is_old_is_removed_in_batches(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    past = moment(clock() - timedelta(days=40))
    notify(database, "s1", 5, due=past)
    receiver.answer = lambda request: Answer(410 if len(receiver.received) <= 2 else 200)
    send_due(database, settings(), clock)
    notify(database, "s1", 1, first=5, batch=2)
    clock.move(days=8)
    remove = partial(
        remove_old, database, clock() - timedelta(days=7), clock() - timedelta(days=30)
    )
    assert remove(most=2) == 4  # two deliveries, and their notifications
    while remove(most=2):
        pass
    assert Counter(row.state for row in rows_of(database, deliveries)) == {"dead": 2}
    assert len(rows_of(database, attempts)) == 5  # as long as dead deliveries
    assert len(rows_of(database, notifications)) == 3
    clock.move(days=30)
    old = partial(remove_old, database, clock() - timedelta(days=7), clock() - timedelta(days=30))
    while old():
        pass
    assert [row.batch for row in rows_of(database, notifications)] == [2]
    assert rows_of(database, attempts) == []


def test_figures(database: Database, receiver: Receiver, clock: Clock) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    notify(database, "s1", 3)
    receiver.answer = lambda request: Answer(200 if len(receiver.received) == 1 else 500)
    send_due(database, settings(per_destination=1, ahead=1, circuit_failures=2), clock)
    clock.move(seconds=25)
    figures = read_figures(database, clock())
    assert (figures.sent, figures.failed, figures.waiting, figures.dead) == (1, 2, 2, 0)
    assert figures.attempts == {("webhook", "sent"): 1, ("webhook", "failed"): 2}
    assert figures.destinations == [Destination(receiver.url, True, 2)]
    assert 0 < figures.oldest_waiting_s <= 25
    receiver.answer = lambda request: Answer(410)
    for _ in range(2):  # it is tried with one delivery first
        clock.move(hours=1)
        send_due(database, settings(), clock)
    figures = read_figures(database, clock())
    assert (figures.waiting, figures.dead, figures.oldest_waiting_s) == (0, 2, 0)


def test_dead_deliveries_are_listed_page_by_page(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": receiver.url})
    ids = notify(database, "s1", 5)
    receiver.answer = lambda request: Answer(410)
    send_due(database, settings(), clock)
    listed = list_deliveries(database, "dead")
    assert sorted(one.notification_id for one in listed) == sorted(ids)
    assert {(one.subscription_id, one.transport, one.attempts) for one in listed} == {
        ("s1", "webhook", 1)
    }
    assert {one.last_error for one in listed} == {"answered 410 Gone: it wants no more"}
    pages, before = [], None
    while page := list_deliveries(database, "dead", before=before, most=2):
        pages += page
        before = (page[-1].last_time, page[-1].number)
    assert pages == listed
    assert list_deliveries(database, "sent") == []
    again = partial(replay_dead, database, now=clock(), max_age=settings().max_age)
    assert again(ids=[ids[0], "none"]) == 1
    assert again(ids=[]) == 0
    assert (len(list_deliveries(database, "dead")), again()) == (4, 4)


def test_many_dead_deliveries_are_replayed_bit_by_bit(
    database: Database, receiver: Receiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "_AT_ONCE", 2)
    subscribe(database, "s1", {"webhook": receiver.url})
    notify(database, "s1", 5)
    receiver.answer = lambda request: Answer(410)
    send_due(database, settings(), clock)
    assert replay_dead(database, now=clock(), max_age=settings().max_age) == 5
