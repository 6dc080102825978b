"""The walk: stages between moments, what steps cost, and the page about it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tamis.bench.measured_part import write_measured_part
from tamis.bench.report import NothingMeasured
from tamis.bench.results import Key, Results
from tamis.bench.walk import work
from tamis.bench.walk.report import write_report
from tamis.bench.walk.stages import EVENT_STAGES, EVENT_WHOLE, SUBSCRIPTION_STAGES, durations
from tamis.bench.walk.trial import _events
from tamis.bench.walk.work import Book

EVENT = {
    "asked": 10.0, "answered": 10.25, "visible": 10.5, "matching": 11.0, "matched": 12.0,
    "notified": 14.0, "fanned_out": 14.5, "begun": 14.75, "told": 15.0,
}  # fmt: skip


def test_stages_follow_each_other_and_make_the_whole() -> None:
    for before, after in pairwise(EVENT_STAGES):
        assert before.end == after.begin
    assert (EVENT_WHOLE.begin, EVENT_WHOLE.end) == (EVENT_STAGES[0].begin, EVENT_STAGES[-1].end)
    found = durations([EVENT], EVENT_STAGES)
    assert sum(one["median_ms"] for one in found.values()) == 5_000
    assert found["notify"]["median_ms"] == 2_000


def test_a_moment_that_is_not_known_leaves_its_stage_out() -> None:
    moments = [{"asked": 1.0, "answered": 1.5}, {"asked": 2.0, "answered": 2.1, "live": 2.2}]
    found = durations(moments, SUBSCRIPTION_STAGES)
    assert found["answer"]["n"] == 2
    assert found["live index"]["n"] == 1
    assert "version" not in found


def test_the_middle_round_counts_and_what_was_made_is_returned() -> None:
    book, made = Book(), iter(range(5))
    assert book.time("step", "event", 10, lambda: next(made)) == 4
    book.note_bytes(12.4)
    (stage,) = book.stages
    assert (stage["stage"], stage["per"], stage["bytes"]) == ("step", "event", 12)
    assert stage["us"] >= 0


def test_the_page_keeps_what_stands_around_the_measured_part(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nBefore.\n")
    write_measured_part(page, "tamis bench x", "one")
    page.write_text(page.read_text() + "\n## After\n")
    write_measured_part(page, "tamis bench x", "two")
    text = page.read_text()
    assert text.startswith("# Page\n\nBefore.\n\n<!-- measured: `tamis bench x --report`")
    assert text.endswith("\ntwo\n<!-- end of the measured part -->\n\n## After\n")
    assert "one" not in text


def test_the_page_tells_every_stage(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    with pytest.raises(NothingMeasured, match="run `tamis bench walk` first"):
        write_report(results, tmp_path / "page.md")
    found = {
        "n_subscriptions": 1_000_000,
        "ready_s": 50.2,
        "first_told_s": 71.4,
        "ready_again_s": 9.6,
        "event": durations([EVENT], (*EVENT_STAGES, EVENT_WHOLE)),
        "subscription": durations([{"asked": 1.0, "answered": 1.02}], SUBSCRIPTION_STAGES),
        "work": [
            {
                "stage": "read the line",
                "per": "event",
                "us": 12.34,
                "bytes": 400,
                "n_matches": 5_000,
            }
        ],
    }
    results.write(Key("walk", "ads", 1.0), found)
    text = write_report(results, tmp_path / "page.md").read_text()
    assert "with\n1,000,000 saved searches" in text
    assert "accepted by 5 searches" in text
    assert "| notify | pipeline | grouped, ordered, put into the outbox | 2,000 |" in text
    assert "| whole |  | from the request to the webhook | 5,000 |" in text
    assert "| read the line | event | 12.3 | 400 |" in text


def test_steps_of_service_and_sender_are_done_and_timed(tmp_path: Path) -> None:
    book = Book()
    lines = work._service(book, tmp_path, _events(20, 1))
    work._sender(book, tmp_path, lines[0])
    assert len(lines) == 20
    assert [one["stage"] for one in book.stages] == [
        "read the request", "spell the line", "append and sync", "insert", "fan out", "claim",
        "write the webhook", "write the mail",
    ]  # fmt: skip
    assert all(one["us"] > 0 for one in book.stages)
    assert len(list((tmp_path / "events").glob("*.jsonl"))) >= 1
