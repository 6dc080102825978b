"""How fast subscriptions are imported, and how fast single ones are changed over HTTP.

python tests/perf/service_speed.py FOLDER [N_IMPORTED [SECONDS]]
"""

from __future__ import annotations

import http.client
import json
import logging
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog

from tamis.storage import Database, SubscriptionStore
from tamis.storage.drafts import Rules
from tamis.storage.imports import Importer, LineReader, read_many
from tamis.values import load_json
from tests.integration.postgresql import running_postgresql
from tests.integration.service_server import running_service

RATE, N_THREADS = 300, 16


def lines(n_lines: int) -> Iterator[bytes]:
    chosen = random.Random(1)
    for number in range(n_lines):
        made = {
            "id": f"s{number:08}",
            "filter": {
                "and": [
                    {"attribute": "brand", "op": "=", "value": f"b{chosen.randrange(500)}"},
                    {"attribute": "price", "op": "<", "value": chosen.randrange(10_000)},
                    {"attribute": "year", "op": "between", "low": 2000, "high": 2020},
                ]
            },
            "priority": number % 10,
            "delivery": {"schedule": "every hour", "webhook": "https://hooks.example/a"},
        }
        yield json.dumps(made).encode() + b"\n"


def yardstick() -> float:
    """Seconds for work that never changes: what a busy machine makes of it."""
    since, total = time.perf_counter(), 0
    for number in range(5_000_000):
        total += number * number % 7
    return time.perf_counter() - since


def measure_import(url: str, n_lines: int) -> dict[str, Any]:
    """Microseconds a subscription: the stages by one process, and the whole way by several."""
    given = list(lines(n_lines))
    some = given[:20_000]
    reader = LineReader(Rules("zoe"))
    since = time.perf_counter()
    for line in some:
        load_json(line)
    json_s = time.perf_counter() - since
    since = time.perf_counter()
    reader.read(1, some)
    read_s = time.perf_counter() - since
    database = Database(url)
    database.migrate()
    importer, sql_s = Importer(database), 0.0
    since = time.perf_counter()
    for batch in read_many(importer.reader(Rules("zoe")), given):
        begun = time.perf_counter()
        importer.save(batch)
        sql_s += time.perf_counter() - begun
    whole_s = time.perf_counter() - since
    assert SubscriptionStore(database).count() == n_lines
    database.close()
    per_us = 1e6 / n_lines
    return {
        "JSON": round(json_s / len(some) * 1e6, 1),
        "filter, checks, row": round((read_s - json_s) / len(some) * 1e6, 1),
        "SQL": round(sql_s * per_us, 1),
        "whole": round(whole_s * per_us, 1),
        "subscriptions": n_lines,
        "seconds": round(whole_s, 1),
    }


def measure_requests(folder: Path, url: str | None, seconds: float) -> dict[str, Any]:
    """Requests at a steady rate by another process; latency counts from when each was due."""
    with running_service(folder, url) as service:
        service.wait_until_ready()
        cpu_s = time.process_time()
        command = [sys.executable, __file__, "--client", service.url, service.admin, str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
        cpu_s = time.process_time() - cpu_s
    return told | {"CPU of the service, ms a request": round(cpu_s / told["requests"] * 1e3, 2)}


def send_requests(url: str, key: str, seconds: float) -> None:
    place, lock = urlsplit(url), threading.Lock()
    since, count, taken, failed = time.perf_counter() + 0.5, iter(range(10**9)), [], []

    def send(thread: int) -> None:
        connection = http.client.HTTPConnection(str(place.hostname), place.port)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        chosen, ids = random.Random(thread), []
        while True:
            with lock:
                number = next(count)
            due = since + number / RATE
            if due > since + seconds:
                return
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.request(*request(chosen, ids, f"{thread}-{number}", number), headers=headers)
            answer = connection.getresponse()
            answer.read()
            taken.append(time.perf_counter() - due)
            if answer.status >= 400:
                failed.append(answer.status)

    threads = [threading.Thread(target=send, args=(n,)) for n in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole_s = time.perf_counter() - since
    taken.sort()
    told = {f"p{p} ms": round(taken[len(taken) * p // 100] * 1e3, 1) for p in (50, 90, 99)}
    per_s = round(len(taken) / whole_s, 1)
    print(json.dumps({"requests": len(taken), "failed": len(failed), "a second": per_s, **told}))


def request(chosen: random.Random, ids: list[str], id: str, number: int) -> tuple[Any, ...]:
    """One of five: a new one, two that are read, a change, a removal."""
    kind = number % 5
    if kind == 0 or not ids:
        ids.append(id)
        draft = {"filter": f"brand = 'b{number % 50}' AND price < {number}"}
        return "PUT", f"/v1/subscriptions/{id}", json.dumps(draft)
    if kind == 4:
        return "DELETE", f"/v1/subscriptions/{ids.pop()}", None
    address = f"/v1/subscriptions/{chosen.choice(ids)}"
    if kind == 3:
        return "PATCH", address, json.dumps({"priority": number % 10})
    return "GET", address, None


def main(folder: Path, n_lines: int, seconds: float) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    told: dict[str, Any] = {"yardstick s": [round(yardstick(), 2)]}
    with running_postgresql() as server:
        places = {"sqlite": f"sqlite:///{folder}/import.db", "postgresql": server.new_database()}
        for name, url in places.items():
            told[f"import, {name}, us"] = measure_import(url, n_lines)
        told[f"{RATE} requests a second, sqlite"] = measure_requests(folder / "s", None, seconds)
        told[f"{RATE} requests a second, postgresql"] = measure_requests(
            folder / "p", server.new_database(), seconds
        )
    told["yardstick s"].append(round(yardstick(), 2))
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        send_requests(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    else:
        counts = sys.argv[2:] + ["100000", "10"][len(sys.argv) - 2 :]
        main(Path(sys.argv[1]), int(counts[0]), float(counts[1]))
