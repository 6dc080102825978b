"""Start-up: how long a user waits for a fresh process, with kernels that were compiled before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tamis.bench.ads import generate_ads, generate_searches
from tamis.bench.results import Key, Listener, Results, measure_cells
from tamis.bench.service.filling import fill_database
from tamis.bench.service.processes import (
    BenchFailed,
    free_port,
    tamis_command,
    wait_until_ready,
)

ROUNDS = 5
N_SMALL = 100  # subscriptions, and events, of a small file
N_MANY = 100_000  # subscriptions of a service that is started again
_POLL_S = 0.02
_PATIENCE_S = 300.0
_END_S = 90.0
_FIRST_MATCH = """\
from tamis import Index, Subscription
index = Index()
index.add(Subscription("cheap", "brand = 'Huawei' AND price < 3300"))
assert index.match({"brand": "Huawei", "price": 3200}) == ["cheap"]
"""
_PIPELINE = """\
state = "state"
[events]
path = "events"
[subscriptions]
path = "subscriptions"
[notifications]
outbox = "outbox"
[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "1g"
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """Something a user waits for; ``measure`` gives the seconds of one time."""

    title: str
    measure: Callable[[Path], float]
    seconds: float  # that all rounds take, about
    most_rounds: int = ROUNDS


def measure_startup(results: Results, keys: Sequence[Key], listen: Listener) -> None:
    """Measure what has no result file yet."""
    measure_cells(results, keys, lambda key: measure_cell(key.cell), listen, resume=True)


def measure_cell(name: str) -> dict[str, Any]:
    """The median of some rounds, after one that is not counted: the disk and caches are warm."""
    with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder:
        rounds = min(ROUNDS, CELLS[name].most_rounds)
        seconds = [CELLS[name].measure(Path(folder)) for _ in range(rounds + 1)][1:]
    return {
        "median_s": round(median(seconds), 3),
        "seconds_of_rounds": [round(one, 3) for one in seconds],
    }


def _time(*command: str) -> float:
    start = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = perf_counter() - start
    if done.returncode:
        raise BenchFailed(f"{command[-1]} ended with {done.returncode}: {done.stderr[-2_000:]}")
    return seconds


def _time_python(code: str) -> Callable[[Path], float]:
    return lambda folder: _time(sys.executable, "-c", code)


def _time_version(folder: Path) -> float:
    return _time(*tamis_command("--version"))


def _time_match(folder: Path) -> float:
    subscriptions, events = folder / "subscriptions.jsonl", folder / "events.jsonl"
    _write(subscriptions, [one.to_json() for one in generate_searches(N_SMALL)])
    _write(events, [one.to_json() for one in generate_ads(N_SMALL)])
    return _time(*tamis_command("match", "-s", str(subscriptions), "-e", str(events)))


def _time_serve(folder: Path) -> float:
    """With the pipeline beside it, as ``tamis serve`` starts if nobody says otherwise."""
    port, log = free_port(), folder / "service.log"
    command = tamis_command("serve", "--data", str(folder / "data"), "--port", str(port))
    start = perf_counter()
    with _started(command, log) as process:
        wait_until_ready(f"http://127.0.0.1:{port}", process, log, every_s=_POLL_S)
        return perf_counter() - start


def _time_serve_again(folder: Path) -> float:
    """The same with subscriptions; the first time, which is not counted, it has to index them."""
    data = folder / "data"
    if not data.exists():
        data.mkdir()
        fill_database(f"sqlite:///{data}/tamis.db", N_MANY, folder)
    return _time_serve(folder)


def _time_run(folder: Path) -> float:
    """Until the notification of an event that was there already is in the outbox."""
    place = Path(tempfile.mkdtemp(dir=folder))
    for name in ("events", "subscriptions"):
        (place / name).mkdir()
    (place / "pipeline.toml").write_text(_PIPELINE)
    saved = {"sequence": 1, "op": "upsert", "id": "cheap", "filter": "price < 3300"}
    _write(place / "subscriptions" / "1.jsonl", [saved])
    _write(place / "events" / "1.jsonl", [{"id": "e1", "price": 3200}])
    log = place / "pipeline.log"
    start = perf_counter()
    with _started(tamis_command("run", str(place / "pipeline.toml")), log) as process:
        while not any((place / "outbox").glob("batch=*")):
            if process.poll() is not None or perf_counter() > start + _PATIENCE_S:
                raise BenchFailed(f"the pipeline told nobody: {log.read_text()[-2_000:]}")
            time.sleep(_POLL_S)
        return perf_counter() - start


@contextmanager
def _started(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended when it is no longer needed."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=_END_S)


def _write(file: Path, lines: Sequence[Any]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


CELLS: dict[str, Cell] = {
    "python": Cell("Python alone", _time_python("pass"), 1),
    "import": Cell("`import tamis`", _time_python("import tamis"), 1),
    "index": Cell("`from tamis import Index`", _time_python("from tamis import Index"), 6),
    "first-match": Cell("the same, a subscription and a match", _time_python(_FIRST_MATCH), 12),
    "version": Cell("`tamis --version`", _time_version, 2),
    "match": Cell(f"`tamis match`, {N_SMALL} subscriptions and events", _time_match, 15),
    "serve": Cell("`tamis serve` until it is ready", _time_serve, 75, 3),
    "serve-again": Cell(
        f"`tamis serve` again, with {N_MANY:,} subscriptions", _time_serve_again, 110, 3
    ),
    "run": Cell("`tamis run` until the first notification is out", _time_run, 100, 3),
}
