"""Late joiners without Spark: events that come again, with files that are swept and read anew."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import Event, Subscription
from tamis.language import evaluate
from tamis.spark import late_joiners
from tamis.spark.kept_events import read_kept, read_untils, write_kept
from tamis.spark.late_joiners import LateJoiners

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
Pair = tuple[str, str]
CHEAP = Subscription("s", "price < 10")


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def moment(now: datetime) -> np.datetime64:
    return np.datetime64(now.replace(tzinfo=None), "us")


@dataclass
class Snapshots:
    """Versions of the subscriptions, in memory."""

    versions: list[dict[str, Subscription]] = field(default_factory=list)

    def ids(self, version: Any) -> Iterable[str]:
        return self.versions[version.number]

    def changed(self, before: int, after: int) -> set[str]:
        old, new = self.versions[before], self.versions[after]
        return {id for id in old.keys() | new.keys() if old.get(id) != new.get(id)}

    def find(self, version: Any, ids: Iterable[str]) -> dict[str, Subscription]:
        held = self.versions[version.number]
        return {id: held[id] for id in ids if id in held}


class Stream:
    """Micro-batches, as a pipeline makes them."""

    def __init__(self, path: Path) -> None:
        self.path, self.snapshots, self.n_batches = path, Snapshots(), 0
        self.restart()

    def restart(self) -> None:
        self.joiners = LateJoiners(SimpleNamespace(path=self.path), self.snapshots)  # type: ignore[arg-type]

    def run(
        self,
        now: datetime,
        events: Iterable[Event] = (),
        saved: Iterable[Subscription] = (),
        is_repeated: bool = False,
    ) -> list[Pair]:
        """A micro-batch; what late joiners are told in it."""
        batch = self.n_batches
        self.snapshots.versions.append({one.id: one for one in saved})
        before = SimpleNamespace(number=batch - 1) if batch else None
        given: Any = (batch, SimpleNamespace(number=batch), before, moment(now))
        made = self.joiners.join(*given)
        if is_repeated:
            self.restart()
            again = self.joiners.join(*given)
            assert _rows(again.told) == _rows(made.told)
            assert _rows(again.matches) == _rows(made.matches)
        folder = self.path / f"batch={batch}"
        folder.mkdir()
        made.write(folder)
        kept = [event for event in events if event.until is not None and event.until > now]
        passing = [event.id for event in events if event not in kept]
        if kept or passing:
            write_kept(
                folder / "kept-1.parquet", kept, [pa.array(passing, pa.string())], moment(now)
            )
        self.n_batches += 1
        columns = (made.matches[name].to_pylist() for name in ("event_id", "subscription_id"))
        return sorted(zip(*columns, strict=True))

    def kept(self) -> list[int]:
        """The micro-batches of which a file of kept events is there."""
        return sorted(int(file.parent.name[6:]) for file in self.path.glob("batch=*/kept-*"))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def offer(price: float, until: datetime | None) -> Event:
    return Event("X", {"price": price}, until=until)


AGAIN = {
    "shorter": (at(1), at(10)),
    "gone before the next micro-batch": (at(1), at(1.5)),
    "no end": (at(1), None),
    "expired on arrival": (at(1), at(0)),
}


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_swept", [False, True])
@pytest.mark.parametrize("way", AGAIN)
def test_what_was_replaced_does_not_come_back(
    way: str, is_swept: bool, is_restarted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_swept:
        monkeypatch.setattr(late_joiners, "_SWEEP_EVERY", 1)
    stream = Stream(tmp_path)
    arrival, until = AGAIN[way]
    stream.run(at(0), [offer(5, at(60))])
    stream.run(arrival, [offer(900, until)])
    stream.run(at(2))
    stream.run(at(20))
    if is_restarted:
        stream.restart()
    assert stream.run(at(21), saved=[CHEAP]) == []
    stream.run(at(22), [offer(6, at(40))], [CHEAP])
    assert stream.run(at(23), saved=[CHEAP, Subscription("t", "price < 10")]) == [("X", "t")]


def test_who_was_told_of_an_event_is_told_of_the_next_one_with_its_id(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    far, near = Subscription("s", "price > 99"), CHEAP
    stream.run(at(0), [offer(5, at(60))])
    assert stream.run(at(1), saved=[near]) == [("X", "s")]
    assert stream.run(at(2), saved=[far]) == []
    assert stream.run(at(3), saved=[near]) == []
    assert stream.run(at(4), [offer(6, at(60))], saved=[far]) == []
    assert stream.run(at(5), saved=[near], is_repeated=True) == [("X", "s")]


def test_files_go_when_nothing_in_them_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_joiners, "_SWEEP_EVERY", 1)
    stream = Stream(tmp_path)
    stream.run(at(0), [offer(5, at(600))])
    stream.run(at(1), [Event("Y", {}, until=at(3))])
    for n in range(2, 9):
        stream.run(at(n), [offer(5, at(600))])
    assert stream.kept() == [7, 8]
    stream.run(at(9), [offer(5, None)])
    stream.run(at(10))
    assert stream.kept() == [9]  # says that the one before it ended
    stream.run(at(11))
    assert stream.kept() == []
    assert not stream.joiners._ids


def test_files_go_although_another_event_beside_the_first_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_joiners, "_SWEEP_EVERY", 1)
    stream = Stream(tmp_path)
    stream.run(at(0), [offer(5, at(600)), Event("Y", {}, until=at(600))])
    for n in range(1, 9):
        stream.run(at(n), [offer(5, None)])
    assert stream.kept() == [0, 7, 8]


def test_files_without_ids_are_read(tmp_path: Path) -> None:
    path = tmp_path / "kept-1.parquet"
    write_kept(path, [offer(5, at(60))], [], moment(NOON))
    pq.write_table(pq.read_table(path).drop_columns(["id"]), path)
    assert read_kept(path, moment(NOON)) == (["X"], [offer(5, at(60))])
    assert read_kept(path, moment(at(60))) == (["X"], [])
    assert list(read_untils(path)) == ["X"]


@pytest.mark.parametrize("seed", range(20))
def test_late_joiners_are_told_what_the_oracle_says(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_joiners, "_SWEEP_EVERY", 3)
    chosen, stream = random.Random(seed), Stream(tmp_path)
    saved: dict[str, Subscription] = {}
    valid: dict[str, Event] = {}
    told: set[Pair] = set()
    n_late = 0
    for batch in range(50):
        now, before = at(batch), dict(saved)
        for id in chosen.sample("abcd", chosen.randrange(3)):
            saved[id] = Subscription(id, f"price < {chosen.randrange(1, 10)}")
            if chosen.random() < 0.2:
                del saved[id]
        events = [
            Event(
                f"e{n}", {"price": chosen.randrange(10)},
                until=chosen.choice([None, *(at(batch + m) for m in (-1, 0, 0.5, 2, 5, 20))]),
            )
            for n in chosen.sample(range(8), chosen.randrange(3))
        ]  # fmt: skip
        if chosen.random() < 0.2:
            stream.restart()
        found = stream.run(now, events, saved.values(), chosen.random() < 0.2)
        valid = {id: one for id, one in valid.items() if one.until is None or one.until > now}
        expected = [
            (one.id, id)
            for id, held in saved.items()
            for one in valid.values()
            if id not in before or before[id].condition != held.condition
            if (one.id, id) not in told and evaluate(held.condition, one.attributes)
        ]
        assert found == sorted(expected), batch
        n_late += len(found)
        came = {one.id: one for one in events}
        told = {pair for pair in (*told, *expected) if pair[0] not in came}
        valid = {id: one for id, one in valid.items() if id not in came}
        new = {id: one for id, one in came.items() if one.until is not None and one.until > now}
        told |= {
            (id, held.id)
            for id, one in new.items()
            for held in saved.values()
            if evaluate(held.condition, one.attributes)
        }
        valid |= new
    assert n_late > 2
