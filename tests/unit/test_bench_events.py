"""A run of the benchmark of space and time: checked first, resumable, with its part of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tamis.bench.cases import WrongResult
from tamis.bench.events import asking, keeping, kept, matching, memory, moving, polygons
from tamis.bench.events.figures import FIGURES, keys_of, sheet_of
from tamis.bench.events.kept import HOUR_S, check, fill, make_boxes, make_near_me
from tamis.bench.events.memory import grow
from tamis.bench.events.others import keepers
from tamis.bench.events.report import write_report
from tamis.bench.events.suite import AIMS, CELLS, EventsRun, n_of, plan, size_of, spell
from tamis.bench.measured_part import END, begin
from tamis.bench.report import NothingMeasured
from tamis.bench.results import Key, Results
from tamis.bench.suite import UnknownCell
from tamis.cli.app import app
from tamis.events import EventStore
from tamis.language import evaluate

pytest.importorskip("rtree")

SCALE = 0.0005
MARK = begin("tamis bench events")
N = 20_000


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (asking, matching, polygons):
        monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.setattr(moving, "SECONDS", 0.1)
    monkeypatch.setattr(moving, "N_MOVES", 200)
    monkeypatch.setattr(keeping, "N_SINGLE", 300)
    monkeypatch.setattr(keeping, "N_OBJECTS", 200)
    monkeypatch.setattr(keeping, "MANY", 600)
    monkeypatch.setattr(keeping, "N_MANY", 2)
    monkeypatch.setattr(keeping, "N_OTHER", 60)
    monkeypatch.setattr(polygons, "N_POLYGONS", 5)
    monkeypatch.setattr(kept, "TABLE", 8_000)
    monkeypatch.setattr(memory, "ask", lambda _, kind, n: grow(kind, int(n)))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


# -- events and questions


@pytest.mark.parametrize("make", [make_boxes, make_near_me])
def test_answers_are_those_of_the_oracle(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "N_CHECKED", 60)
    events = make(N, n_questions=60)
    store, seconds = fill(events, N)
    assert seconds > 0
    answers = [events.expected(number, N) for number in range(60)]
    assert check(events, store, N) == sum(map(len, answers)) > 0
    assert check(events, store, N, 6 * HOUR_S) < sum(map(len, answers))
    number = max(range(60), key=lambda one: len(answers[one]))
    condition = events.questions[number].condition
    rows = [row for row in range(N) if evaluate(condition, events.attributes(row))]
    assert answers[number] == rows[::-1]


def test_a_table_holds_what_the_events_hold() -> None:
    for events in (make_boxes(1_000, 5), make_near_me(1_000, 5)):
        tables, single = EventStore(), EventStore()
        tables.insert_many(events.table(0, 1_000), now=kept.START)
        single.insert_many([events.event(row) for row in range(5)], now=kept.START)
        for row in range(5):
            held, other = tables[f"e{row}"], single[f"e{row}"]
            assert (held.attributes, held.until) == (other.attributes, other.until)


def test_a_wrong_answer_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = EventStore.match
    monkeypatch.setattr(EventStore, "match", lambda *a, **k: [*right(*a, **k), "x"][:1])
    with pytest.raises(WrongResult, match="Nothing was timed"):
        asking.measure_subscriptions(500)


def test_the_others_find_and_forget_the_same() -> None:
    events = make_boxes(N, n_questions=40)
    answers = {number: events.expected(number, N)[::-1] for number in range(40)}
    number = max(answers, key=lambda one: len(answers[one]))
    gone, *left = answers[number]
    for keeper in keepers(events, N).values():
        keeper.remove([gone])
        assert keeper.match(number).tolist() == left
        keeper.insert(np.full((1, 20), 2.0))
        assert keeper.match(number).tolist() == left


def test_polygons_are_many_cornered_and_where_they_should_be() -> None:
    (one,) = polygons.make_polygons(np.array([[121.5, 31.2]]), "p")
    assert evaluate(one.condition, {"location": kept.Point(121.5, 31.2)})
    assert not evaluate(one.condition, {"location": kept.Point(121.52, 31.2)})
    corners = one.filter.polygon.to_geojson()["coordinates"][0]
    assert len(corners) == polygons.N_VERTICES + 1
    (box,) = polygons.make_boxes(np.array([[121.5, 31.2]]), "b")
    assert evaluate(box.condition, {"location": kept.Point(121.505, 31.195)})
    assert not evaluate(box.condition, {"location": kept.Point(121.507, 31.2)})


def test_memory_counts_both() -> None:
    found = grow("boxes", 1_000)
    assert found["counted_mb"] == pytest.approx(found["index_mb"] + found["events_mb"], abs=0.2)
    assert found["events_mb"] == pytest.approx(0.2, abs=0.1)


# -- plan and run


def test_plan_and_sizes() -> None:
    keys = plan(1.0, [], ["500k", "2M", "1M"])
    assert [key.cell for key in keys if not key.point] == list(CELLS)
    assert {key.cell for key in keys if key.point == "2M"} == set(CELLS) - {"polygon", "move"}
    assert {key.cell for key in keys if key.point == "500k"} == set(CELLS) - {"polygon"}
    assert n_of(Key("insert", "W4", 0.1, "2M")) == 200_000
    assert [spell(size_of(word)) for word in ("3M", "250k", "1234")] == ["3M", "250k", "1234"]
    assert {aim.cell for aim in AIMS} == set(CELLS)
    for word in ("2G", "0", "-1"):
        with pytest.raises(UnknownCell, match="is no size"):
            size_of(word)


def test_every_cell_and_the_page(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "docs" / "page.md"
    with pytest.raises(NothingMeasured):
        write_report(results, SCALE, page)
    keys = sorted({*plan(SCALE, []), *plan(SCALE, ["insert", "expiry"], ["2M"])})
    heard: list[str] = []
    EventsRun(results, True, lambda key, state, _: heard.append(state)).measure(keys)
    assert heard == ["starts", "done"] * len(keys)
    EventsRun(results, True, lambda key, state, _: heard.append(state)).measure(keys)
    assert heard[2 * len(keys) :] == ["kept"] * len(keys)
    for figure in FIGURES:
        sheet = sheet_of(results, SCALE, figure)
        assert len(sheet.rows) == len(figure.lines), figure.cell
        points = [key.point for key in keys_of(results, figure.cell, SCALE)]
        assert points == ([""] if figure.cell not in ("insert", "expiry") else ["", "2M"])
        assert not any("–" in row for row in sheet.rows)
    page.parent.mkdir()
    page.write_text(f"Before.\n\n{MARK}\nold\n{END}\n\nAfter.\n")
    for _ in range(2):
        written = write_report(results, SCALE, page)
    assert {path.name for path in written} == {
        "page.md", "events-insert.png", "events-expiry.png",
    }  # fmt: skip
    text = page.read_text()
    assert text.startswith("Before.\n\n")
    assert text.endswith("After.\n")
    assert text.count(MARK) == text.count("### Beside polygons") == 1
    assert "old" not in text.splitlines()


def test_command(tmp_path: Path) -> None:
    words = ["bench", "events", "--scale", str(SCALE), "-o", str(tmp_path), "--only", "expiry"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Dropping an event" in done.output
    assert "≤ 5 µs/event" in done.output
    held = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert held["cells"][f"W4-x{SCALE:g}-expiry"]["n_events"] == 500
    assert held["aims"][0]["what"] == "expiry, amortised"


@pytest.mark.parametrize("words", [["--scale", "0"], ["--only", "speed"], ["--sizes", "many"]])
def test_bad_options(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", "events", *words]).exit_code == 2
