"""The headline benchmark: its plan, a run in which something fails, and its page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tamis.algorithms import ALGORITHMS
from tamis.bench import startup
from tamis.bench.aims import Aim
from tamis.bench.headline import plan
from tamis.bench.headline.page import write_page
from tamis.bench.headline.parts import Part, Planned
from tamis.bench.headline.plan import chosen, make_plan
from tamis.bench.headline.run import HeadlineRun
from tamis.bench.headline.sheets import SHEETS, algorithm_sheets
from tamis.bench.report import NothingMeasured
from tamis.bench.reproduce import boxes, overview
from tamis.bench.results import Key, Listener, Results
from tamis.bench.service.processes import BenchFailed
from tamis.bench.suite import ALL, UnknownCell
from tamis.cli.app import app

pytest.importorskip("matplotlib")
HALF_AN_HOUR_S = 1_800
LEFT_OUT = {  # to be below that
    ("import", "postgresql"), ("upload", "sqlite"), ("upload", "postgresql"),
    ("polygon", "W4"), ("expiry", "W4"),
}  # fmt: skip


# -- the plan


def test_the_plan_has_all_parts_and_stays_below_half_an_hour() -> None:
    parts = make_plan()
    assert [part.name for part in parts] == list(SHEETS)
    assert sum(cell.seconds for part in parts for cell in part.cells) < HALF_AN_HOUR_S
    for part in parts:
        keys = part.keys(1.0)
        assert [key for group in part.groups(1.0) for key in group] == keys
        assert len({key.file_name for key in keys}) == len(keys)
        measured = {(key.cell, key.workload) for key in keys if key.scale == 1.0}
        aimed_at = {(aim.cell, aim.workload) for aim in part.aims}
        assert aimed_at - measured <= LEFT_OUT


def test_cells_of_a_workload_follow_each_other() -> None:
    engine, spark = (chosen(make_plan(), [name])[0] for name in ("engine", "spark"))
    groups = [{key.workload for key in group} for group in engine.groups(1.0)]
    assert groups == [{"W1"}, {"W2"}, {"W3"}, {"W4"}, {"W5"}, {ALL}]
    assert [len(group) for group in spark.groups(1.0)] == [1, 1, 1]


def test_a_part_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownCell, match="'engin'"):
        chosen(make_plan(), ["engin"])


def test_without_a_server_postgresql_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "find_programs", lambda: None)
    store = chosen(make_plan(), ["store"])[0]
    assert {key.workload for key in store.keys(1.0)} == {"sqlite"}
    assert {aim.workload for aim in store.aims} == {"sqlite"}


# -- a run


def part_of(name: str, found: dict[str, Any], *cells: str) -> Part:
    """A part whose cells find something at once, or fail where it is an error."""

    def measure(results: Results, keys: Sequence[Key], listen: Listener) -> None:
        for key in keys:
            listen(key, "starts", 0.0)
            if isinstance(found[key.cell], Exception):
                raise found[key.cell]
            results.write(key, {"n": found[key.cell]}, 1.0)
            listen(key, "done", 1.0)

    planned = tuple(Planned(cell, "W1", 1) for cell in cells)
    return Part(name, name.title(), "[x](x.md)", name, planned, measure, (
        Aim("n", "good", "W1", "n", 5.0),
    ))  # fmt: skip


def test_what_fails_does_not_keep_the_others_from_being_measured(tmp_path: Path) -> None:
    found: dict[str, Any] = {"good": 1, "bad": BenchFailed("no luck"), "last": 3}
    parts = [part_of("first", found, *found), part_of("second", found, "good")]
    heard: list[tuple[str, str]] = []
    run = HeadlineRun(tmp_path, 1.0, lambda part, key, state, _: heard.append((key.cell, state)))
    run.measure(parts, resume=False)
    assert [(one.part, one.cell, one.problem) for one in run.failures] == [
        ("first", "W1 bad", "BenchFailed: no luck")
    ]
    assert heard == [
        ("good", "starts"), ("good", "done"), ("bad", "starts"), ("bad", "failed"),
        ("last", "starts"), ("last", "done"), ("good", "starts"), ("good", "done"),
    ]  # fmt: skip
    assert parts[0].results(tmp_path).read(Key("last", "W1", 1.0)) == {"n": 3}
    assert parts[0].results(tmp_path).whole(Key("last", "W1", 1.0))["seconds"] == 1.0


def test_a_run_is_resumed_or_begins_anew(tmp_path: Path) -> None:
    found: dict[str, Any] = {"good": 1, "bad": BenchFailed("no luck")}
    part = part_of("first", found, *found)
    HeadlineRun(tmp_path, 1.0).measure([part], resume=False)
    found.update(good=2, bad=2)
    HeadlineRun(tmp_path, 1.0).measure([part], resume=True)
    results = part.results(tmp_path)
    assert [results.read(key)["n"] for key in part.keys(1.0)] == [1, 2]
    found["bad"] = BenchFailed("no luck again")
    HeadlineRun(tmp_path, 1.0).measure([part], resume=False)
    assert [results.read(key) for key in part.keys(1.0)] == [{"n": 2}, {}]


def test_a_failure_after_the_last_cell_is_told(tmp_path: Path) -> None:
    def measure(results: Results, keys: Sequence[Key], listen: Listener) -> None:
        results.write(keys[0], {"n": 1})
        raise BenchFailed("the server did not stop")

    part = Part("a", "A", "", "a", (Planned("good", "W1", 1),), measure)
    run = HeadlineRun(tmp_path, 1.0)
    run.measure([part], resume=False)
    assert [one.problem for one in run.failures] == ["BenchFailed: the server did not stop"]
    assert part.results(tmp_path).read(part.keys(1.0)[0]) == {"n": 1}


def test_an_interrupted_run_ends(tmp_path: Path) -> None:
    def interrupt(results: Results, keys: Sequence[Key], listen: Listener) -> None:
        raise KeyboardInterrupt

    part = Part("a", "A", "", "a", (Planned("good", "W1", 1),), interrupt)
    with pytest.raises(KeyboardInterrupt):
        HeadlineRun(tmp_path, 1.0).measure([part], resume=False)


# -- cells of its own


def test_every_algorithm_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "SECONDS", 0.01)
    results = Results(tmp_path)
    keys = [Key(name, "W1", 0.0003) for name in ("rein", "tamis")]
    overview.OverviewRun(results, lambda *said: None).measure(keys)
    assert set(overview.NAMES) == {*ALGORITHMS} - {"beq_tree"}
    sheet = algorithm_sheets(results, 0.003)[0]
    assert {row[0] for row in sheet.rows} == {"`rein`", "`tamis`"}
    results.write(Key("gem", "W1", 0.0003), {"skipped": "would need about 7 GB"})
    told = algorithm_sheets(results, 0.003)[0]
    assert told.notes == ["Not measured: `gem` would need about 7 GB."]


def test_start_up_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "ROUNDS", 1)
    keys = [Key(cell, ALL, 1.0) for cell in ("import", "version")]
    startup.measure_startup(Results(tmp_path), keys, lambda *said: None)
    for key in keys:
        found = Results(tmp_path).read(key)
        assert [found["median_s"]] == found["seconds_of_rounds"]
    monkeypatch.setitem(
        startup.CELLS, "import", startup.Cell("", startup._time_python("import nothing_so"), 1)
    )
    with pytest.raises(BenchFailed, match="nothing_so"):
        startup.measure_cell("import")


# -- the page and the command


def times(median_us: float) -> dict[str, float]:
    return {"median_us": median_us, "mean_us": 9.0, "p90_us": 9.0, "p99_us": 19.0}


def pretend(root: Path, scale: float) -> None:
    """Result files as a run would leave them."""
    match = {"n_subscriptions": 1_000, "matches_mean": 2.0, "ratio": 4.0, "p99_to_p50": 3.0}
    timed = {"rows": times(10.0), "ids": times(12.0), "scan": times(40.0)}
    Results(root / "engine").write(Key("match", "W1", scale), {**match, **timed}, 12.0)
    algorithm = {
        "n_subscriptions": 100, "insert_us": 2.0, "bytes_each": 300.0,
        "match": {"median_ms": 0.5},
    }  # fmt: skip
    for name, factor in (("rein", 0.1), ("tamis", 0.1)):
        at = float(f"{factor * scale:g}")
        Results(root / "algorithms").write(Key(name, "W1", at), algorithm, 3.0)
    events = {"near_me": times(30.0), "boxes": times(40.0), "mo_tree": times(900.0)}
    for cell in ("matching", "subscriptions"):
        Results(root / "events").write(Key(cell, "W4", scale), events, 20.0)
    asked = {"rate": 300.0, "p50_ms": 3.0, "p99_ms": 90.0, "server_cpu_ms": 2.0,
             "flat_out_per_s": 400.0}  # fmt: skip
    Results(root / "service").write(Key("requests", "sqlite", scale), asked, 80.0)
    delivered = {"n_notifications": 10, "per_s": 400.0, "twice": 0}
    Results(root / "service").write(Key("deliveries", "sqlite", scale), delivered, 30.0)
    Results(root / "startup").write(
        Key("version", ALL, 1.0), {"median_s": 0.2, "seconds_of_rounds": [0.1, 0.2, 0.3]}, 1.0
    )
    parquet = {"n_subscriptions": 1_000, "spark_events_per_second": 20_000,
               "engine_events_per_second": 15_000, "share_of_two_cores": 0.75}  # fmt: skip
    join = {"n_subscriptions": 100, "our_events_per_second": 9_000.0,
            "join_events_per_second": 30.0, "ratio": 300.0}  # fmt: skip
    Results(root / "spark").write(Key("parquet", "W1", scale), parquet, 40.0)
    Results(root / "spark").write(Key("join", "W1", scale), join, 20.0)


def test_the_page_tells_of_every_part(tmp_path: Path) -> None:
    page, root = tmp_path / "docs" / "performance.md", tmp_path / "docs" / "results"
    with pytest.raises(NothingMeasured):
        write_page(make_plan(), root, 1.0, page)
    pretend(root, 1.0)
    written = write_page(make_plan(), root, 1.0, page)
    assert {path.name for path in written} == {
        "performance.md", "performance-engine.png", "performance-algorithms.png",
        "performance-events.png", "performance-store.png", "performance-startup.png",
        "performance-spark.png",
    }  # fmt: skip
    text = page.read_text()
    for part in make_plan():
        assert f"\n## {part.title}\n" in text
        assert part.page in text
    assert "[result files](results)" in text
    assert "| W1 | 1,000 | 10 | 19 | 4× | – | – | – | – |" in text
    assert "| `rein` | Qian, Cao, Zhu, Li: REIN, INFOCOM 2014 | 500 | 2 | 300 |" in text
    assert "| match an event, boxes | 40 | 900 | – | – | – |" in text
    assert "| sqlite | 300 | 3 | 90 | 2 | 400 | – | – |" in text
    assert "| `tamis --version` | 0.2 | 0.1 | 0.3 |" in text
    assert "| store | sqlite | a request, p99 | ≤ 100 ms | 90 | 1.11 | yes |" in text
    assert "| [Spark](#spark) | [pipeline.md](pipeline.md#how-fast-it-is) | 2 | 2 |" in text
    assert "*Not measured yet.*" not in text
    assert " | 1 of 3 | " in text or " | 1 of 1 | " in text


def test_the_command_shows_what_is_there(tmp_path: Path) -> None:
    pretend(tmp_path, 1.0)
    words = ["bench", "all", "--scale", "1", "-o", str(tmp_path), "--only", "none"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "as fast as a join" in done.output
    held = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert held["cells"]["spark"]["W1-x1-join"]["ratio"] == 300.0
    assert {"part": "spark", "met": True}.items() <= held["aims"][-1].items()
    assert held["failures"] == []


def test_the_command_measures_and_tells_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = startup.Cell("broken", startup._time_python("import nothing_so"), 1)
    monkeypatch.setattr(startup, "ROUNDS", 1)
    monkeypatch.setattr(startup, "CELLS", {"python": startup.CELLS["python"], "broken": broken})
    words = ["bench", "all", "-o", str(tmp_path), "--only", "startup"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "startup: all python: 0." in done.stderr
    assert "error: startup, all broken: BenchFailed" in done.stderr


@pytest.mark.parametrize("words", [["--scale", "0"], ["--only", "sprak"]])
def test_bad_options(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", "all", *words]).exit_code == 2
