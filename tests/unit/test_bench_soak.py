"""The books of a soak: what must be told, what was, what grew, and the page about it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest

from tamis.bench.report import NothingMeasured
from tamis.bench.results import Key, Results
from tamis.bench.service.receiver import Told, receiving
from tamis.bench.soak.load import AT_ONCE, Ledger, Wish
from tamis.bench.soak.report import write_report
from tamis.bench.soak.samples import sample
from tamis.cli.bench_soak import SoakFailed, judge
from tamis.language import evaluate, parse_filter


def body(who: str, *events: str) -> bytes:
    matches = [{"event_id": id} for id in events]
    return json.dumps({"data": {"subscription": {"id": who}, "matches": matches}}).encode()


def test_what_is_expected_is_what_filters_mean() -> None:
    ledger = Ledger(3)
    for _ in range(20):
        ledger.new_events()
    assert len(ledger.events) == 20 * AT_ONCE
    wanted = {
        (id, one.id)
        for one in ledger.staying
        for condition in [parse_filter(one.filter)]
        for id, event in ledger.events.items()
        if evaluate(condition, event)
    }
    assert ledger.expected() == wanted
    assert wanted


def test_visitors_must_hear_what_came_between_their_saving_and_their_end() -> None:
    ledger = Ledger(3)
    before, during, late = (ledger.new_events()[0] for _ in range(3))
    now = monotonic()
    ledger.sent_at |= {before["id"]: now - 50, during["id"]: now, late["id"]: now + 95}
    ledger.visitors["v0"] = Wish("v0", "price >= 0", saved_at=now - 10, deleted_at=now + 100)
    found = {id for id, _ in ledger.expected_of_visitors(10.0)}
    assert during["id"] in found
    assert not {before["id"], late["id"]} & found


def test_a_notification_again_is_none_twice_but_a_match_in_two_is() -> None:
    told = Told()
    told.take("n1", body("s1", "e1", "e2"))
    told.take("n1", body("s1", "e1", "e2"))
    assert (told.n_requests, told.n_repeated, told.twice) == (2, 1, [])
    told.take("n2", body("s1", "e2", "e3"))
    assert told.twice == [("e2", "s1")]
    assert set(told.by) == {("e1", "s1"), ("e2", "s1"), ("e3", "s1")}


def test_the_receiver_takes_requests_of_a_connection() -> None:
    told = Told()
    with receiving(told) as url:
        at = urlsplit(url)
        assert at.hostname is not None
        with socket.create_connection((at.hostname, at.port or 0), 10) as connection:
            for id in ("n1", "n2"):
                said = body("s1", id)
                head = f"POST /hook HTTP/1.1\r\nWebhook-Id: {id}\r\nContent-Length: {len(said)}"
                connection.sendall(head.encode() + b"\r\n\r\n" + said)
                assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert set(told.by) == {("n1", "s1"), ("n2", "s1")}


def test_samples_are_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"x" * 100_000)
    found = sample({"service": [2**22 + 1], "sender": []}, {"state": tmp_path})
    assert found["memory_mb"] == {"service": 0.0}  # it has ended
    assert found["files"] == {"state": 1}
    assert found["disk_mb"]["state"] >= 0.1


def test_the_page_says_what_came_out(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    with pytest.raises(NothingMeasured):
        write_report(results, tmp_path / "soak.md")
    kinds = ("memory_mb", "open_files", "disk_mb", "files")
    samples = [
        {"t": 10.0 * n, "told": n, **{kind: {"java": 100.0 + n} for kind in kinds}}
        for n in range(6)
    ]
    zero = dict.fromkeys(("lost", "lost_by_visitors", "wrong", "twice"), 0)
    found = {
        "seconds": 60.0, "n_events": 1_000, "n_subscriptions": 10, "n_visitors": 5,
        "n_expected": 20, "n_told": 20, "n_expected_of_visitors": 3, "n_told_to_visitors": 3,
        "n_requests": 12, "n_repeated": 1, "n_asked_again": 2, "drained_s": 1.0, **zero,
        "latency_s": {"p50": 1.0, "p99": 2.0, "most": 3.0}, "samples": samples,
        "kills": [{"t": 5.0, "role": "java"}, {"t": 9.0, "role": "workers"}],
        "growth": {kind: {"java": {"first": 100, "last": 104, "ratio": 1.04}} for kind in kinds},
    }  # fmt: skip
    results.write(Key("soak", "ads", 1.0), found)
    text = write_report(results, tmp_path / "soak.md").read_text()
    assert "killed (`SIGKILL`) 2 times: Java 1×, a Python worker 1×" in " ".join(text.split())
    assert "| memory, MB | java | 100 | 104 | 1.04 |" in text
    assert (tmp_path / "figures" / "soak.png").stat().st_size > 10_000
    judge(found)
    with pytest.raises(SoakFailed, match="2 matches lost; 1 matches told twice"):
        judge({**found, "lost": 2, "twice": 1})
