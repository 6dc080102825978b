"""What each stage costs alone: its own code over a thousand events, one after the other."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tamis import Subscription
from tamis.bench.walk.moments import snapshots_of
from tamis.delivery import notification_id
from tamis.service.event_log import FileLog
from tamis.service.published import ID, PAYLOAD, TIME, UNTIL, line_of, read_events
from tamis.service.sending.message import Message
from tamis.service.sending.settings import MailSettings, SenderSettings
from tamis.service.sending.transports import targets_of
from tamis.service.sending.transports.mail import compose
from tamis.spark.events import EventMapping, EventReader
from tamis.spark.match_files import MatchFile
from tamis.spark.snapshots import SnapshotStore
from tamis.spark.sources import LINE
from tamis.spark.versions import open_version
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.deliveries import Appetite, Leases
from tamis.storage.outbox import add_notifications, fan_out
from tamis.storage.tables import moment

N_EVENTS = 1_000
_ROUNDS = 5
_N_NOTIFICATIONS = 500
_MAIL = {"host": "localhost", "sender": "tamis@example.org"}

T = TypeVar("T")


class Book:
    """Stages with what they take; each is done several times, and the middle one counts."""

    def __init__(self) -> None:
        self.stages: list[dict[str, Any]] = []

    def time(self, name: str, per: str, n: int, do: Callable[[], T], rounds: int = _ROUNDS) -> T:
        """Do something to ``n`` events, matches or notifications, and note what one takes."""
        taken = []
        for _ in range(rounds):
            begun = perf_counter()
            made = do()
            taken.append(perf_counter() - begun)
        self.stages.append({"stage": name, "per": per, "us": round(1e6 * median(taken) / n, 2)})
        return made

    def note_bytes(self, n_bytes: float) -> None:
        """Note what the last stage makes of one."""
        self.stages[-1]["bytes"] = round(n_bytes)


def measure_work(folder: Path, data: Path, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stages from the body of a request to the mail; the notifier's own are Spark's."""
    book = Book()
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        lines = _service(book, Path(aside), events)
        _matcher(book, Path(aside), data, lines)
        _sender(book, Path(aside), lines[0])
    return book.stages


def _service(book: Book, aside: Path, events: list[dict[str, Any]]) -> list[bytes]:
    n = len(events)
    body = b"\n".join(json.dumps(one).encode() for one in events)
    read = book.time("read the request", "event", n, lambda: read_events(body, is_lines=True))
    book.note_bytes(len(body) / n)
    lines = book.time("spell the line", "event", n, lambda: [line_of(one) for one in read])
    book.note_bytes(sum(map(len, lines)) / n)
    log = FileLog(aside / "events")
    try:
        book.time("append and sync", "event", n, lambda: log.append(read).result())
    finally:
        log.close()
    return lines


def _matcher(book: Book, aside: Path, data: Path, lines: list[bytes]) -> None:
    version = SnapshotStore(snapshots_of(data)).latest()
    assert version is not None
    opened = open_version(version)
    batch = pa.record_batch({LINE: [line.decode().rstrip() for line in lines]})
    mapping = EventMapping(ID, TIME, PAYLOAD, json=[LINE], until=UNTIL)
    reader = EventReader(mapping, batch.schema, opened.schema)
    n = len(lines)
    events = book.time("read the line", "event", n, lambda: reader.read(batch))
    held: Any = events.attributes
    book.time("match, a thousand at once", "event", n, lambda: list(opened.match(held)))
    some = held[:100]
    book.time(
        "match, one at a time", "event", len(some),
        lambda: [list(opened.match([one])) for one in some],
    )  # fmt: skip
    now = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
    file = aside / "matches.parquet"

    matches = list(opened.match(held))
    n_matches = sum(len(found.rows) for found in matches)

    def write() -> None:
        written = MatchFile(file, opened, version.number, now)
        for found in matches:
            written.add(events, found)
        written.close()

    book.time("write the matches", "match", n_matches, write)
    book.note_bytes(file.stat().st_size / n_matches)
    book.stages[-1]["n_matches"] = n_matches


def _sender(book: Book, aside: Path, line: bytes) -> None:
    database = Database(f"sqlite:///{aside}/outbox.db")
    try:
        database.migrate()
        told = {"webhook": "https://example.org/hook", "mail": "zoe@example.org"}
        given = Subscription("traced", "walk = true", 5, "zoe", told)
        SubscriptionStore(database).create(Saved(given, "walk = true"))
        _deliver(book, database, json.loads(line)[PAYLOAD])
    finally:
        database.close()


def _deliver(book: Book, database: Database, payload: str) -> None:
    now, n = datetime.now(UTC), _N_NOTIFICATIONS
    match = {
        "priority": 5, "event_time": moment(now), "event_id": "e1", "matched_at": moment(now),
        "payload": base64.b64encode(payload.encode()).decode(),
    }  # fmt: skip
    row: dict[str, Any] = {
        "subscription_id": "traced", "owner": "zoe", "priority": 5, "due": moment(now), "part": 1,
        "parts": 1, "total": 1, "n_matches": 1, "held_back": 0, "delivery": "",
        "matches": json.dumps([match]), "batch": 1,
    }  # fmt: skip
    rows = [{"id": notification_id("traced", number, 1), **row} for number in range(n)]
    settings = SenderSettings.model_validate({"mail": _MAIL})
    book.time("insert", "notification", n, lambda: add_notifications(database, rows), rounds=1)
    book.note_bytes(len(row["matches"]))
    book.time(
        "fan out", "notification", n,
        lambda: fan_out(
            database, lambda given: targets_of(given, settings), now=now, max_age=timedelta(days=1)
        ), rounds=1,
    )  # fmt: skip
    leases, until = Leases(database, "bench"), now + timedelta(minutes=1)
    claims = book.time(
        "claim",
        "delivery",
        2 * n,
        lambda: leases.claim(Appetite(2 * n, n, {}), now, until),
        rounds=1,
    )
    webhooks, letters = (
        [Message(one) for one in claims if one.transport == kind] for kind in ("webhook", "mail")
    )
    bodies = book.time(
        "write the webhook", "delivery", len(webhooks),
        lambda: [json.dumps(Message(one.claim).to_json()) for one in webhooks],
    )  # fmt: skip
    book.note_bytes(len(bodies[0]))
    mail = MailSettings.model_validate(_MAIL)
    mails = book.time(
        "write the mail", "delivery", len(letters),
        lambda: [compose(Message(one.claim), mail, now).as_bytes() for one in letters],
    )  # fmt: skip
    book.note_bytes(len(mails[0]))
