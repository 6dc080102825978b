"""Many subscriptions saved at once, in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tamis import Point, Subscription
from tamis.errors import DuplicateSubscription, LimitReached
from tamis.storage import ChangeLog, Database, Saved, SubscriptionStore
from tamis.storage.direct import statement
from tamis.storage.drafts import Rules
from tamis.storage.imports import Importer, Result

LOG = statement("SELECT sequence, id FROM changes ORDER BY sequence")
SECRETS = statement("SELECT owner, webhook_secret FROM owners ORDER BY owner")
ANYBODY = Rules("zoe", may_choose_owner=True)


def line(id: str, value: Any = 1, **fields: Any) -> bytes:
    draft = {"id": id, "filter": {"attribute": "x", "op": "=", "value": value}, **fields}
    return json.dumps(draft).encode()


def save(
    database: Database, lines: Sequence[bytes], rules: Rules = ANYBODY, most: int | None = None
) -> list[Result]:
    importer = Importer(database, most)
    return importer.save(importer.reader(rules).read(1, lines))


def kinds(results: list[Result]) -> list[str]:
    return [one.result for one in results]


def logged(database: Database) -> list[str]:
    """The ids in the change log, which has no gap."""
    rows = database.ask(LOG, {})
    assert [sequence for sequence, _ in rows] == list(range(1, len(rows) + 1))
    assert ChangeLog(database).last() == len(rows)
    return [id for _, id in rows]


def test_new_ones_and_those_that_are_replaced(database: Database) -> None:
    ids = [f"s{number:04}" for number in range(1_234)]
    assert kinds(save(database, [line(id) for id in ids])) == ["created"] * 1_234
    some = ids[::7]
    again = [line(id, 2) for id in [*some, "new"]]
    assert kinds(save(database, again)) == ["replaced"] * len(some) + ["created"]
    store = SubscriptionStore(database)
    assert store.count("zoe") == 1_235
    assert {(row.id, row.version, row.filter[-2]) for row in store.page(most=2_000)} == {
        (id, 2 if id in some else 1, "2" if id in some else "1") for id in ids
    } | {("new", 1, "2")}
    assert logged(database) == [*ids, *some, "new"]


def test_those_of_somebody_else_stay_as_they_are(database: Database) -> None:
    store = SubscriptionStore(database)
    store.create(Saved(Subscription("b", "x = 7", owner="max"), "x = 7"))
    told = save(database, [line(id) for id in "abc"])
    assert kinds(told) == ["created", "error", "created"]
    assert isinstance(told[1].error, DuplicateSubscription)
    assert (store.read("b").owner, store.read("b").version) == ("max", 1)
    assert (store.count("zoe"), store.count("max")) == (2, 1)
    assert logged(database) == ["b", "a", "c"]


def test_no_more_than_an_owner_may_have(database: Database) -> None:
    save(database, [line("a"), line("b")])
    told = save(database, [line(id, 2) for id in "dbcae"], Rules("zoe"), most=3)
    assert kinds(told) == ["created", "replaced", "error", "replaced", "error"]
    assert isinstance(told[2].error, LimitReached)
    store = SubscriptionStore(database)
    assert [row.id for row in store.page()] == ["a", "b", "d"]
    assert store.count("zoe") == 3
    assert logged(database) == ["a", "b", "d", "b", "a"]


def test_wrong_lines_and_one_that_is_there_twice(database: Database) -> None:
    told = save(database, [line("a", 1), b"{", b"", line("a", 2), line("b", [])])
    assert [(one.line, one.id, one.result) for one in told] == [
        (1, "a", "created"), (2, None, "error"), (4, "a", "replaced"), (5, None, "error"),
    ]  # fmt: skip
    row = SubscriptionStore(database).read("a")
    assert (row.version, row.filter) == (1, '{"attribute":"x","op":"=","value":2}')
    assert logged(database) == ["a"]
    assert save(database, [b"{", b" "])[0].result == "error"  # nothing to save


def test_texts_stay_what_they_are(database: Database) -> None:
    texts = ["\\", "\\N", "\\.", "a\tb\nc", "\0", '"', "ü€𝄞", "%s %(x)s :x", "''"]
    given = [
        line(f"s{number}\\n'%", text, delivery={"webhook": "https://h.example/\\t"}, owner="o\\%s")
        for number, text in enumerate(texts)
    ]
    assert kinds(save(database, given)) == ["created"] * len(texts)
    store = SubscriptionStore(database)
    held = [store.get(f"s{number}\\n'%") for number in range(len(texts))]
    assert [json.loads(json.dumps(one.spelling))["value"] for one in held] == texts
    assert {one.owner for one in held} == {"o\\%s"}
    assert held[0].subscription.delivery == {"webhook": "https://h.example/\\t"}


def test_places_and_pauses(database: Database) -> None:
    save(database, [line("a", location=[13.4, 52.5], radius_m=500, is_paused=True, priority=0)])
    held = SubscriptionStore(database).get("a")
    assert held.is_paused
    assert held.subscription.location == Point(13.4, 52.5)
    assert (held.subscription.radius_m, held.subscription.priority) == (500.0, 0)


def test_many_owners_are_counted_and_keep_their_secrets(database: Database) -> None:
    given = [line(f"s{number}", owner=f"o{number % 700:03}") for number in range(1_000)]
    save(database, given)
    before = database.ask(SECRETS, {})
    assert len({secret for _, secret in before}) == 700
    assert all(secret.startswith("whsec_") for _, secret in before)
    save(database, [line(f"t{number}", owner=f"o{number:03}") for number in range(5)])
    save(database, given)
    assert database.ask(SECRETS, {}) == before
    store = SubscriptionStore(database)
    assert (store.count(), store.count("o000"), store.count("o699")) == (1_005, 3, 1)


def test_a_batch_that_fails_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(database, [line("a")])

    def fail(direct: object, ids: object) -> None:
        raise RuntimeError("the log is full")

    monkeypatch.setattr("tamis.storage.imports.log_changes", fail)
    with pytest.raises(RuntimeError, match="full"):
        save(database, [line("a", 2), line("b")])
    monkeypatch.undo()
    store = SubscriptionStore(database)
    assert [(row.id, row.version) for row in store.page()] == [("a", 1)]
    assert store.count() == 1
    assert kinds(save(database, [line("a", 2), line("b")])) == ["replaced", "created"]
    assert logged(database) == ["a", "a", "b"]


def test_imports_at_once_leave_no_gap(database: Database) -> None:
    """The same ids in opposite orders, which must not wait for each other for ever."""
    ids = [f"s{number:03}" for number in range(600)]

    def run(chosen: list[str]) -> None:
        for start in range(0, len(chosen), 100):
            save(database, [line(id) for id in chosen[start : start + 100]])

    threads = [threading.Thread(target=run, args=(one,)) for one in (ids, ids[::-1], ids[::2])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = SubscriptionStore(database)
    assert sorted(row.id for row in store.page(most=1_000)) == ids
    assert store.count("zoe") == 600
    assert sorted(logged(database)) == sorted([*ids, *ids, *ids[::2]])
