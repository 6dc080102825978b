"""Deliveries: notifications that wait in the outbox, sent as signed webhooks by ``tamis send``."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

from tamis import Subscription
from tamis.bench.service.processes import BenchFailed, new_key, tamis_command
from tamis.delivery import notification_id
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.outbox import add_notifications
from tamis.storage.tables import moment

_OWNER = "told"
_N_SUBSCRIPTIONS = 50
_WAIT_S = 300.0
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def measure_deliveries(folder: Path, database_url: str, n_notifications: int) -> dict[str, Any]:
    """How many webhooks a second one sender delivers to one receiver."""
    new_key(database_url)
    return asyncio.run(_measure(folder, database_url, n_notifications))


async def _measure(folder: Path, database_url: str, n_notifications: int) -> dict[str, Any]:
    receiver = _Receiver(n_notifications)
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _fill(database_url, f"http://127.0.0.1:{port}/hook", n_notifications)
    settings = folder / "sender.toml"
    settings.write_text('[webhook]\nallow_networks = ["127.0.0.0/8"]\n')
    command = tamis_command("send", "--settings", str(settings), "--database", database_url)
    with (folder / "sender.log").open("wb") as log:
        sender = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        await asyncio.wait_for(receiver.has_all.wait(), _WAIT_S)
    except TimeoutError:
        got, text = len(receiver.seen), (folder / "sender.log").read_text()[-2_000:]
        raise BenchFailed(f"{got:,} of {n_notifications:,} were delivered: {text}") from None
    finally:
        sender.send_signal(signal.SIGTERM)
        await asyncio.to_thread(sender.wait, 60)
        server.close()
    seconds = receiver.ended - receiver.begun
    return {
        "n_notifications": n_notifications,
        "per_s": round((n_notifications - 1) / seconds, 1),
        "twice": sum(count > 1 for count in receiver.seen.values()),
    }


class _Receiver:
    """Takes webhooks, and counts each by its id."""

    def __init__(self, n_expected: int) -> None:
        self.seen: Counter[bytes] = Counter()
        self.has_all = asyncio.Event()
        self.begun = self.ended = 0.0
        self._n_expected = n_expected

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        try:
            while head := await _head(reader):
                await reader.readexactly(int(head[b"content-length"]))
                self._take(head[b"webhook-id"])
                writer.write(_ANSWER)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the sender has closed it
        finally:
            writer.close()

    def _take(self, id: bytes) -> None:
        self.ended = perf_counter()
        self.begun = self.begun or self.ended
        self.seen[id] += 1
        if len(self.seen) == self._n_expected:
            self.has_all.set()


async def _head(reader: asyncio.StreamReader) -> dict[bytes, bytes]:
    """The header fields of the next request; none where there is no more."""
    if not await reader.readline():
        return {}
    fields = {}
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.partition(b":")
        fields[name.lower()] = value.strip()
    return fields


def _fill(database_url: str, address: str, n_notifications: int) -> None:
    """Subscriptions with a webhook, and notifications for them."""
    delivery = {"webhook": address}
    database = Database(database_url)
    try:
        store = SubscriptionStore(database)
        for number in range(_N_SUBSCRIPTIONS):
            one = Subscription(f"d{number}", "price < 3300", 5, _OWNER, delivery)
            store.create(Saved(one, "price < 3300"))
        rows = [_row(number) for number in range(n_notifications)]
        for first in range(0, n_notifications, 1_000):
            add_notifications(database, rows[first : first + 1_000])
    finally:
        database.close()


def _row(number: int) -> dict[str, Any]:
    id, payload = f"d{number % _N_SUBSCRIPTIONS}", base64.b64encode(b'{"price": 3200}').decode()
    told = {
        "priority": 5, "event_time": moment(), "event_id": f"e{number}", "matched_at": moment(),
        "payload": payload,
    }  # fmt: skip
    return {
        "id": notification_id(id, number, 1), "subscription_id": id, "owner": _OWNER,
        "priority": number % 10, "due": moment(), "part": 1, "parts": 1, "total": 1,
        "n_matches": 1, "held_back": 0, "delivery": "", "matches": json.dumps([told]), "batch": 1,
    }  # fmt: skip
