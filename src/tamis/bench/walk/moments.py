"""Moments: when events and subscriptions were where, as files, tables and the receiver tell."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
from sqlalchemy import select

from tamis.bench.service.receiver import Told
from tamis.service.published import ID
from tamis.spark.snapshots import SnapshotStore
from tamis.storage import Database
from tamis.storage.tables import attempts, changes, deliveries, notifications

_EVERY_S = 0.02


@dataclass(slots=True)
class Moments:
    """Of each event and each subscription its moments, in seconds since 1970."""

    events: list[dict[str, float]] = field(default_factory=list)
    subscriptions: list[dict[str, float]] = field(default_factory=list)


class Watch:
    """Looks often at what has no time of its own: notifications, and versions of snapshots."""

    def __init__(self, data: Path, database_url: str, subscription: str) -> None:
        self.notified: dict[str, float] = {}
        self.versions: list[tuple[float, int]] = []
        self._store = SnapshotStore(snapshots_of(data))
        self._database = Database(database_url)
        self._of = subscription
        self._last = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._database.close()

    def _run(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            self._look_for_notifications()
            version = self._store.latest()
            if version and (not self.versions or version.sequence > self.versions[-1][1]):
                self.versions.append((time.time(), version.sequence))

    def _look_for_notifications(self) -> None:
        told = notifications.c
        query = select(told.number, told.id).where(
            told.subscription_id == self._of, told.number > self._last
        )
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(told.number)).all()
        for row in rows:
            self._last = row.number
            self.notified[row.id] = time.time()


def snapshots_of(data: Path) -> Path:
    """Where the pipeline of a service keeps versions of the subscriptions."""
    return data / "pipeline" / "matcher" / "snapshots"


def read_moments(
    data: Path,
    database_url: str,
    traced: str,
    asked: dict[str, tuple[float, float]],
    saved: dict[str, tuple[float, float, float]],
    watch: Watch,
    told: Told,
) -> Moments:
    """Put together what is known of each event and subscription."""
    visible, matched = _visible(data / "events"), _matched(data, traced)
    to_wall = time.time() - time.monotonic()
    database = Database(database_url)
    try:
        sent, sequences = _sent(database), _sequences(database, list(saved))
    finally:
        database.close()
    found = Moments()
    for id, (begun, answered) in asked.items():
        by = told.by[id, traced]
        found.events.append(
            {
                "asked": begun,
                "answered": answered,
                "visible": visible[id],
                "matching": matched[id][0],
                "matched": matched[id][1],
                "notified": watch.notified[by],
                "fanned_out": sent[by][0],
                "begun": sent[by][1],
                "told": told.at[id, traced] + to_wall,
            }
        )
    for id, (begun, answered, live) in saved.items():
        moments = {"asked": begun, "answered": answered, "live": live}
        at = [at for at, sequence in watch.versions if sequence >= sequences[id]]
        found.subscriptions.append(moments | ({"version": at[0]} if at else {}))
    return found


def _visible(folder: Path) -> dict[str, float]:
    """When the file of each event got the name it is seen by: that changes its inode last."""
    return {
        json.loads(line)[ID]: path.stat().st_ctime
        for path in folder.glob("*.jsonl")
        if not path.name.startswith(".")
        for line in path.read_bytes().splitlines()
    }


def _matched(data: Path, traced: str) -> dict[str, tuple[float, float]]:
    """When matching of the micro-batch of each event began, and its folder was there."""
    found = {}
    for folder in (data / "pipeline" / "matcher" / "matches").glob("batch=*"):
        for file in folder.glob("matches-*.parquet"):
            table = pq.read_table(
                file,
                columns=["event_id", "matched_at"],
                filters=[("subscription_id", "=", traced)],
                partitioning=None,
            )
            for row in table.to_pylist():
                began = row["matched_at"].timestamp()
                found[row["event_id"]] = (began, folder.stat().st_ctime)
    return found


def _sent(database: Database) -> dict[str, tuple[float, float]]:
    """When a notification became deliveries, and its first attempt began."""
    query = select(deliveries.c.notification_id, deliveries.c.created_at, attempts.c.at).join_from(
        deliveries, attempts, attempts.c.delivery == deliveries.c.number
    )
    with database.reading() as connection:
        rows = connection.execute(query.where(attempts.c.attempt == 1)).all()
    return {row.notification_id: (_seconds(row.created_at), _seconds(row.at)) for row in rows}


def _sequences(database: Database, ids: list[str]) -> dict[str, int]:
    """The number of each subscription's change."""
    query = select(changes.c.id, changes.c.sequence)
    with database.reading() as connection:
        rows: Any = connection.execute(query.where(changes.c.id.in_(ids))).all()
    return {row.id: row.sequence for row in rows}


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
