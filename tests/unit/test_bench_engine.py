"""A run of the engine benchmark: checked first, resumable, and with what it was measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tamis.bench import changes, matching
from tamis.bench.aims import AIMS, Aim, Reached, at_path, number, reached
from tamis.bench.cases import BoxCase, Case, WrongResult
from tamis.bench.engine import Run
from tamis.bench.losses import losses
from tamis.bench.report import KEPT_FROM, KEPT_TO, NothingMeasured, write_report
from tamis.bench.results import BadResult, Key, Results
from tamis.bench.suite import ALL, CELLS, WORKLOADS, UnknownCell, make_case, plan
from tamis.bench.sweeps import SWEEPS, plan_sweeps
from tamis.cli.app import app

SCALE = 0.001


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "ROUNDS", 1)
    monkeypatch.setattr(matching, "N_SCANNED", 5)
    monkeypatch.setattr(matching, "N_OTHER", 5)
    monkeypatch.setattr(changes, "SECONDS", 0.1)
    monkeypatch.setattr(changes, "_WARM_UP_S", 0.1)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


def small_case(name: str) -> Case:
    return BoxCase.of(name, SCALE, n_events=60)


# -- cells


@pytest.mark.parametrize("name", ["W1", "W3", "W4"])
def test_match_and_batch(name: str) -> None:
    case = small_case(name)
    found = CELLS["match"].measure(case)
    assert found["rows"]["n"] == 60
    assert found["rows"]["median_us"] > 0
    assert found["rows"]["p99_us"] >= found["rows"]["p90_us"] >= found["rows"]["median_us"]
    assert found["ratio"] > 0
    total = sum(len(case.expected(event)) for event in range(60))
    assert found["matches_mean"] * 60 == pytest.approx(total, abs=1)
    assert CELLS["batch"].measure(case)["n_matches"] == total


def test_w5_is_checked_and_measured() -> None:
    case = make_case("W5", 0.0005)
    found = CELLS["match"].measure(case)
    assert found["n_subscriptions"] == 500
    assert "scan" not in found


@pytest.mark.parametrize("cell", ["build", "changes", "readers", "files", "memory"])
def test_other_cells(cell: str) -> None:
    found = CELLS[cell].measure(small_case("W1"))
    assert found["n_subscriptions"] == 1_000


def test_priorities_are_determined_in_order() -> None:
    found = CELLS["priorities"].measure(small_case("W3"))
    levels = found["done_us_of_level"]
    assert len(levels) == 10
    assert levels == sorted(levels)
    assert found["first_match_us"] > 0


def test_changes_are_undone() -> None:
    case = small_case("W3")
    CELLS["changes"].measure(case)
    CELLS["readers"].measure(case)
    assert len(case.index) == case.n_subscriptions


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = small_case("W1")
    right = BoxCase.expected
    monkeypatch.setattr(BoxCase, "expected", lambda self, event: right(self, event) | {"x"})
    with pytest.raises(WrongResult, match=r"W1 .* event 0: .* missed \['x'\].* Nothing was timed"):
        CELLS["match"].measure(case)


def test_ids_out_of_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = small_case("W3")
    monkeypatch.setattr(BoxCase, "priority_of", lambda self, id: -int(id) % 7)
    with pytest.raises(WrongResult, match="order of priority"):
        CELLS["match"].measure(case)


# -- plan, files, resuming


def test_plan() -> None:
    keys = plan((), 0.5, ())
    assert {key.workload for key in keys} == {*WORKLOADS, ALL}
    assert Key("numpy", "W5", 0.5) not in keys
    assert Key("priorities", "W3", 0.5) in keys
    assert len({key.file_name for key in keys}) == len(keys)
    with pytest.raises(UnknownCell, match="'speed'"):
        plan((), 0.5, ["speed"])


def test_sweeps_are_planned() -> None:
    keys = plan_sweeps(WORKLOADS, 1.0, largest=1_000_000)
    assert {key.cell for key in keys} == set(SWEEPS)
    assert Key("sweep-n", "W1", 1.0, "1e+06") in keys
    assert Key("sweep-n", "W1", 1.0, "4e+06") not in keys


def test_result_files_say_what_they_were_measured_on(results: Results) -> None:
    results.write(Key("match", "W1", 0.1), {"ratio": 2.0})
    whole = json.loads((results.directory / "W1-x0.1-match.json").read_text())
    assert whole["found"] == {"ratio": 2.0}
    assert whole["machine"]["cores"] >= 1
    assert {"cpu", "caches", "ram_gb"} <= set(whole["machine"])
    assert {"python", "numpy", "numba", "tamis"} <= set(whole["versions"])
    assert {"date", "commit", "scale", "load"} <= set(whole)


def test_a_run_goes_on_where_it_was(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def measure(case: Case) -> dict[str, Any]:
        measured.append(case.name)
        return {"n": len(measured)}

    monkeypatch.setitem(CELLS, "build", type(CELLS["build"])(measure))
    heard: list[tuple[str, str]] = []
    keys = [Key("build", "W1", SCALE), Key("build", "W3", SCALE)]
    run = Run(results, True, lambda key, state, _: heard.append((key.workload, state)))
    run.measure(keys[:1])
    run.measure(keys)
    assert measured == ["W1", "W3"]
    assert heard[2:] == [("W1", "kept"), ("W3", "starts"), ("W3", "done")]
    Run(results).measure(keys[:1])
    assert results.read(keys[0]) == {"n": 3}


@pytest.mark.parametrize("text", ['{"broken', "[]", "{}"])
def test_a_damaged_result_file_is_named(results: Results, text: str) -> None:
    key = Key("build", "W1", SCALE)
    results.write(key, {"n": 1})
    (results.directory / key.file_name).write_text(text)
    with pytest.raises(BadResult, match=f"{key.file_name}.*remove it"):
        results.read(key)
    with pytest.raises(BadResult):
        list(results.all())


# -- aims


def test_aims() -> None:
    at_most, at_least = Aim("a", "c", "W1", "x.y", 10.0), Aim("a", "c", "W1", "x", 2.0, "×", True)
    assert (at_most.wanted, at_least.wanted) == ("≤ 10", "≥ 2×")
    assert Reached(at_most, 20.0).share == 0.5
    assert Reached(at_least, 1.0).share == 0.5
    assert Reached(at_most, 10.0).is_met
    assert not Reached(at_least, 1.9).is_met
    assert not Reached(at_least, None).is_met
    assert Reached(at_most, 10.0).verdict == "yes"
    assert Reached(at_most, 10.0, cpu_share=0.5).verdict == "yes ?"
    assert Reached(at_most, 10.0, is_full=False).verdict == "–"
    assert at_path({"x": {"y": 3}}, at_most.path) == 3
    assert at_path({"x": 3}, at_most.path) is None
    assert number(1234.5) == "1,234"
    assert {aim.cell for aim in AIMS} <= set(CELLS)


def test_aims_are_judged_at_full_size_only(results: Results) -> None:
    for scale in (SCALE, 1.0):
        results.write(Key("match", "W1", scale), {"ratio": 300.0, "cpu_share": 0.8})
    assert {one.verdict for one in reached(results, SCALE)} == {"–"}
    assert "yes ?" in {one.verdict for one in reached(results, 1.0)}


def test_losses_are_told(results: Results) -> None:
    times = {"rows": {"median_us": 50.0}, "scan": {"median_us": 40.0}, "ratio": 0.8}
    results.write(Key("match", "W1", SCALE), times)
    results.write(Key("sweep-n", "W1", SCALE, "10000"), {"n_subscriptions": 10, "ratio": 0.5})
    results.write(Key("match", "W1", 1.0), times)
    told = losses(results, SCALE)
    assert "W1: the scan 40 µs an event, the Index 50 µs." in told
    assert "W1: the scan is faster at N = 10." in told
    assert "W1: one event, median is 50, wanted ≤ 26 µs." in losses(results, 1.0)
    assert not any("wanted" in one for one in told)


# -- the command and the page


def run_command(directory: Path, *words: str) -> Any:
    base = ["bench", "engine", "--scale", str(SCALE), "-o", str(directory), "-w", "W1"]
    return CliRunner().invoke(app, [*base, *words])


def test_command_prints_tables_then_json(tmp_path: Path) -> None:
    done = run_command(tmp_path, "--only", "match,numpy")
    assert done.exit_code == 0, done.output
    assert "One event at a time" in done.output
    assert "≥ 210×" in done.output
    done = run_command(tmp_path, "--only", "match,numpy", "--json")
    held = json.loads(done.stdout)
    assert held["cells"]["W1-x0.001-match"]["n_subscriptions"] == 1_000
    assert {one["workload"] for one in held["aims"]} == {"W1"}


def test_command_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    done = run_command(tmp_path, "--only", "speed")
    assert done.exit_code == 2
    assert "expected one of match" in done.output


def times(median_us: float) -> dict[str, float]:
    return {"median_us": median_us, "mean_us": 9.0, "p90_us": 9.0, "p99_us": 9.0}


def pretend(results: Results) -> None:
    """Result files as a run would leave them."""
    match = {"n_subscriptions": 1_000, "matches_mean": 2.0, "ratio": 4.0, "p99_to_p50": 3.0}
    timed = {"rows": times(10.0), "ids": times(12.0), "scan": times(40.0)}
    results.write(Key("match", "W1", SCALE), {**match, **timed})
    numpy = {"n_subscriptions": 1_000, "limited": False, "times": times(80.0), "ratio": 0.5}
    results.write(Key("numpy", "W1", SCALE), numpy)
    for theta in (0.1, 0.9):
        point = {"point": theta, "n_subscriptions": 1_000, "matches_mean": 2.0, "ratio": 4.0}
        results.write(Key("sweep-theta", "W1", SCALE, f"{theta:g}"), {**point, **timed})


def test_report_keeps_the_part_written_by_hand(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "docs" / "engine.md"
    with pytest.raises(NothingMeasured):
        write_report(results, SCALE, page)
    pretend(results)
    written = write_report(results, SCALE, page)
    assert {path.name for path in written} == {
        "engine.md", "engine-others.png", "engine-sweep-theta.png",
    }  # fmt: skip
    text = page.read_text()
    assert "| W1 | 1,000 | 2 | 10 | 12 | 9 | 9 | 9 | 40 | 4× |" in text
    assert "| W1 | 10 | 40 (4×) | 80 (8×) |" in text
    assert "figures/engine-others.png" in text
    page.write_text(text.replace("*To be written.*", "By hand."))
    write_report(results, SCALE, page)
    kept = page.read_text().partition(KEPT_FROM)[2].partition(KEPT_TO)[0]
    assert "By hand." in kept


def test_a_point_of_a_sweep(results: Results) -> None:
    key = Key("sweep-m", "W1", SCALE, "2")
    Run(results).measure([key])
    found = results.read(key)
    assert (found["point"], found["n_attributes"], found["n_subscriptions"]) == (2.0, 2, 1_000)
    assert found["matches_mean"] > 100  # two wide intervals
