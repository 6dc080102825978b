"""The live index: it follows what is saved, and is not ready before its kernels are."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tamis import Event, Subscription
from tamis.index.engine import Engine
from tamis.kernels.compiled import IS_COMPILED
from tamis.service import live_index
from tamis.service.live_index import LiveIndex
from tamis.storage import ChangeLog, Database, Saved, SubscriptionStore
from tamis.storage.changes import log_change
from tamis.storage.direct import Direct, statement
from tamis.storage.drafts import Rules
from tamis.storage.imports import Importer

BREAK = statement(
    'UPDATE subscriptions SET filter = \'{"attribute": "x", "op": "none"}\' WHERE id = :id '
    "RETURNING id"
)


def saved(id: str, filter: str = "x = 1") -> Saved:
    return Saved(Subscription(id, filter, owner="zoe"), filter)


def save_many(database: Database, n_subscriptions: int) -> None:
    importer = Importer(database)
    lines = [
        json.dumps({"id": f"s{n}", "filter": {"attribute": "x", "op": "<", "value": n}}).encode()
        for n in range(n_subscriptions)
    ]
    importer.save(importer.reader(Rules("zoe")).read(1, lines))


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 280
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def index(database: Database) -> Iterator[LiveIndex]:
    made = LiveIndex(database)
    made.start()
    wait_until(lambda: made.is_ready)
    yield made
    made.close()


def test_what_was_saved_before_counts(database: Database, index: LiveIndex) -> None:
    """More changes than are applied at once, some of them of the same subscription."""
    store, event = SubscriptionStore(database), Event("e", {"x": -1})
    save_many(database, 2_500)
    assert len(index.match(event)) == 2_500
    assert index.sequence == ChangeLog(database).last() == 2_500
    save_many(database, 1_200)
    store.delete("s0")
    store.adjust("s1", is_paused=True)
    store.create(saved("new", "x = -1"))
    store.delete("s2")
    store.create(saved("s2", "x = 9"))
    found = index.match(event, owner="zoe")
    assert len(found) == len(set(found)) == len(index) - 1 == 2_498
    assert "new" in found
    assert not {"s0", "s1", "s2"} & set(found)


def test_an_import_is_followed_while_it_runs_and_after(
    database: Database, index: LiveIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_index, "_CHANGES_AT_ONCE", 100)
    with index.resting():
        save_many(database, 1_000)
        assert len(index.match(Event("e", {"x": -1}))) == 1_000
        SubscriptionStore(database).delete("s0")
        wait_until(lambda: index.sequence == 1_001)
    save_many(database, 1_500)
    wait_until(lambda: index.sequence == 2_501)
    assert len(index) == 1_500


def test_one_that_cannot_be_indexed_leaves_the_others(database: Database, index: LiveIndex) -> None:
    def break_one(id: str) -> Callable[[Direct], None]:
        def work(direct: Direct) -> None:
            direct.all(BREAK, {"id": id})
            log_change(direct, id)

        return work

    store, event = SubscriptionStore(database), Event("e", {"x": 1})
    for id in "abc":
        store.create(saved(id))
    assert sorted(index.match(event)) == ["a", "b", "c"]
    database.change(break_one("b"))
    store.create(saved("d"))
    store.create(saved("f"))
    database.change(break_one("d"))
    store.create(saved("g"))
    assert sorted(index.match(event)) == ["a", "c", "f", "g"]


def test_a_change_that_is_broken_off_has_all_loaded_again(
    database: Database, index: LiveIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, event, is_broken = SubscriptionStore(database), Event("e", {"x": 1}), [True]
    held = Engine.publish

    def publish(engine: Engine) -> None:
        if is_broken and is_broken.pop():
            raise MemoryError
        held(engine)

    store.create(saved("a"))
    assert index.match(event) == ["a"]
    first = index.index
    monkeypatch.setattr(Engine, "publish", publish)
    store.create(saved("b"))
    store.delete("a")
    wait_until(lambda: index.is_ready and index.index is not first)
    assert not is_broken
    assert index.match(event) == ["b"]
    store.create(saved("c"))
    assert index.match(event) == ["b", "c"]


def test_what_it_holds_is_not_looked_through_for_garbage(
    database: Database, index: LiveIndex
) -> None:
    """A full collection stops everybody for as long as it looks."""
    save_many(database, 1_000)
    assert len(index.match(Event("e", {"x": -1}))) == 1_000
    looked_at = {id(one) for one in gc.get_objects()}
    held = index.index._archive.recent
    assert len(held) == 1_000
    assert not any(id(one) in looked_at for one in (held, *held, *(one.filter for one in held)))


# A service's index without what this machine has on its disk: what is compiled after it is ready.
COMPILED = """
import json, pathlib, sys, time
from numba.extending import is_jitted
from tamis import Event, Subscription
from tamis.bench.ads import generate_ads, generate_searches
from tamis.index import first_use
from tamis.service import live_index
from tamis.service.standing_out import find_standing_out
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.drafts import Rules
from tamis.storage.imports import Importer

def compiled():
    kernels = [
        held for name, module in [*sys.modules.items()] if name.startswith("tamis.kernels.")
        for held in vars(module).values() if is_jitted(held)
    ]
    return {f"{one.__module__}.{one.__name__}": len(one.overloads) for one in kernels}

live_index.load_kernels = lambda: 0
first_use.cache_directory = lambda: pathlib.Path(sys.argv[2])  # where nothing says it was done
database = Database(sys.argv[1])
database.migrate()
index = live_index.LiveIndex(database)
index.start()
while not index.is_ready:
    time.sleep(0.01)
before = compiled()
importer, ads = Importer(database), generate_ads(300)
places = [ad.location for ad in ads]
drafts = [one.to_json() for one in generate_searches(6_000)]
for number, one in enumerate(drafts[::2]):
    place = places[number % len(places)]
    one |= {"location": [place.lon, place.lat], "radius_m": 500 + number}
drafts += [
    {"id": f"box {n}", "filter": {"and": [
        {"attribute": name, "op": "between", "low": n, "high": n + 4_000} for name in "pqrs"
    ]}} for n in range(5_000)
]
lines = [json.dumps(one).encode() for one in drafts]
reader = importer.reader(Rules("zoe", may_choose_owner=True))
for first in range(0, len(lines), 2_000):
    batch = reader.read(first, lines[first : first + 2_000])
    assert all(one.error is None for one in importer.save(batch))
    for ad in ads[:20]:
        index.match(ad)
store = SubscriptionStore(database)
for one in drafts[:1_500]:
    store.adjust(one["id"], priority=1)
for one in drafts[:1_000]:
    store.delete(one["id"])
found = sum(len(index.match(ad)) for ad in ads)
index.match(Event("e", {"p": 4_000, "q": 4_000, "r": 4_000, "s": 4_000}))
find_standing_out(index.index, ads)
index.index._engine.wait_for_merging()
index.match(ads[0])
later = {name: n for name, n in compiled().items() if n > before.get(name, 0)}
n_ready = sum(before.values())
index.close()
database.close()
print(json.dumps([found, n_ready, later]))
"""


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_nothing_is_compiled_once_it_is_ready(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPILED, f"sqlite:///{tmp_path}/tamis.db", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, n_ready, later = json.loads(done.stdout)
    assert later == {}
    assert found > 0
    assert n_ready > 0
