"""Experiments of the papers: running, resuming, the report, and what makes a claim hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tamis.bench.cases import WrongResult
from tamis.bench.report import NothingMeasured
from tamis.bench.reproduce import boxes, datasets, determining, kept, searches
from tamis.bench.reproduce.boxes import BoxSet, measure_boxes, measure_plans
from tamis.bench.reproduce.checks import Against, Check, Grown, Lowest
from tamis.bench.reproduce.determining import measure_determining
from tamis.bench.reproduce.figures import OURS, TAMIS, Experiment, Figure, Line, Metric, Paper
from tamis.bench.reproduce.kept import Both, Kept, measure_kept, measure_memory
from tamis.bench.reproduce.looks import share_looked_at
from tamis.bench.reproduce.papers import PAPERS, UnknownExperiment, chosen, paper_of
from tamis.bench.reproduce.places import placed_boxes
from tamis.bench.reproduce.reading import Shown, read, read_at
from tamis.bench.reproduce.report import figures_of, page_of, write_report
from tamis.bench.reproduce.runner import DONE, KEPT, cells_of, run
from tamis.bench.reproduce.searches import make_searches, measure_searches
from tamis.bench.reproduce.sending import measure_ways
from tamis.bench.reproduce.verdicts import Verdict
from tamis.bench.results import Results
from tamis.bench.workloads import Workload
from tamis.cli.app import app
from tamis.index import Index

SCALE = 0.0005
SIMPLE = Line("simple", "Simple", "simple")
REIN = Line("rein", "REIN", "rein")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "N_EVENTS", 20)
    monkeypatch.setattr(boxes, "ROUNDS", 1)
    monkeypatch.setattr(determining, "N_TIMED", 10)
    monkeypatch.setattr(searches, "N_EVENTS", 12)
    monkeypatch.setattr(kept, "N_QUERIES", 10)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


def small_paper(checks: tuple[Check, ...] = (Lowest("rein", ("simple",)),)) -> Paper:
    experiment = Experiment(
        "n",
        "subscriptions",
        (100, 200, 400),
        (200,),
        (SIMPLE, REIN, Line("ghost", "Ghost", "no_such_algorithm"), TAMIS),
        lambda n, scale: BoxSet(datasets.gem_boxes(datasets.scaled(n, scale), m=3)),
        measure_boxes,
        size=lambda n: n,
    )
    figures = tuple(
        Figure(number, "A title", "n", (Metric(path, "ms"),), "A is 2 times as fast.", checks)
        for number, path in (("1", "match.mean_ms"), ("2", "match.std_ms"))
    )
    return Paper("small", "Nobody: A paper", "A setting.", (experiment,), figures)


def names(results: Results) -> set[str]:
    return {path.name for path in results.directory.iterdir()}


# -- running and resuming


def test_each_cell_is_a_file_and_figures_share_them(results: Results) -> None:
    paper = small_paper()
    cells = cells_of(paper, paper.figures, is_headline=False)
    assert [(cell.point, cell.line.key) for cell in cells[:4]] == [
        (100, "simple"), (100, "rein"), (100, "tamis"), (200, "simple"),
    ]  # fmt: skip
    run(cells, results, 0.5)
    assert len(names(results)) == 9
    found = results.read(cells[0].key(0.5))
    assert found["n_subscriptions"] == 50
    assert found["checked_events"] == 10
    assert found["match"]["mean_ms"] > 0


def test_a_headline_run_has_fewer_points() -> None:
    paper = small_paper()
    cells = cells_of(paper, paper.figures[:1], is_headline=True)
    assert {cell.point for cell in cells} == {200}


def test_a_run_that_was_stopped_goes_on_where_it_was(results: Results) -> None:
    paper = small_paper()
    cells = cells_of(paper, paper.figures, is_headline=False)
    heard: list[tuple[str, str, float]] = []

    class Stopped(Exception):
        pass

    def stop(cell: Any, state: str, seconds: float) -> None:
        heard.append((cell.line.key, state, seconds))
        if len([one for one in heard if one[1] == DONE]) == 4:
            raise Stopped

    with pytest.raises(Stopped):
        run(cells, results, 1.0, listen=stop)
    before = {path.name: path.stat().st_mtime_ns for path in results.directory.iterdir()}
    assert len(before) == 4
    states: list[str] = []
    run(cells, results, 1.0, resume=True, listen=lambda cell, state, _: states.append(state))
    assert (states.count(KEPT), states.count(DONE)) == (4, 5)
    after = {path.name: path.stat().st_mtime_ns for path in results.directory.iterdir()}
    assert {name: after[name] for name in before} == before
    run(cells[:1], results, 1.0)
    assert (results.directory / cells[0].key(1.0).file_name).stat().st_mtime_ns > max(
        before.values()
    )


def test_a_wrong_result_is_not_timed(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoxSet, "expected", lambda self, event: np.zeros(1, np.int32))
    paper = small_paper()
    with pytest.raises(WrongResult, match="Nothing was timed"):
        run(cells_of(paper, paper.figures, is_headline=True), results, 1.0)
    assert not results.directory.exists()


def test_an_approximate_algorithm_may_find_more_but_not_less() -> None:
    tama = Line("tama", "TAMA", "tama")
    case = BoxSet(datasets.gem_boxes(200))
    matcher, _ = case.build(tama)
    case.check(matcher, tama)
    several = np.array([1, 2, 3], np.int32)
    case.compare(several, several[:2], matcher, "here")
    with pytest.raises(WrongResult, match="2 subscriptions found, 3 expected"):
        case.compare(several[:2], several, matcher, "here")


def test_what_would_be_too_large_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(boxes, "_N_SAMPLE", 100)
    case = BoxSet(datasets.gem_boxes(2_000, theta=0.8))
    found = measure_boxes(case, Line("h_tree", "H-Tree", "h_tree"))
    assert "would need about" in found["skipped"]
    assert measure_plans(case, Line("h_tree", "H-Tree", "h_tree")) == found
    assert measure_determining(case, Line("h_tree", "H-Tree", "h_tree")) == found


# -- what is measured


def test_boxes_are_inserted_matched_and_removed() -> None:
    found = measure_boxes(BoxSet(datasets.gem_boxes(500)), REIN, changes=True)
    assert found["match"]["n"] == 20
    assert found["remove_s"] == pytest.approx(found["remove_us"] * 500 / 1e6)
    assert found["bytes"] > found["structure_bytes"] > 0
    assert found["add_us"] > 0


def test_plans_have_a_cost() -> None:
    case = BoxSet(datasets.dexin_boxes(300, 5, zipf=datasets.mixed_zipf(5)))
    near, best = (
        measure_plans(case, Line(plan, plan, "dexin", {"plan": plan}))
        for plan in ("near_optimal", "optimal")
    )
    assert near["cost"] >= best["cost"] > 0
    assert near["matching_ms"] > 0
    ours = measure_plans(case, TAMIS)
    assert ours["cost"] == 1.0  # so few are scanned
    assert ours["matching_ms"] == ours["match"]["mean_ms"]


@pytest.mark.parametrize(
    ("n_attributes", "n", "kind"), [(2, 9, "scan"), (2, 900, "sparse"), (8, 900, "dense")]
)
def test_what_the_index_looks_at_holds_what_it_finds(n_attributes: int, n: int, kind: str) -> None:
    random = np.random.default_rng(3)
    low = random.random((n, n_attributes)) / 4
    names = [f"a{k}" for k in range(n_attributes)]
    index = Index.from_boxes(names, low, low + 0.7)
    assert [block["kind"] for block in index.stats()["blocks"]] == [kind]
    for event in random.random((20, n_attributes)):
        looks = share_looked_at(index, event) * n
        found = index.match(dict(zip(names, event.tolist(), strict=True)))
        assert looks >= len(found)
        assert kind != "scan" or looks == n
    far = np.full(n_attributes, 5.0)
    assert kind == "scan" or share_looked_at(index, far) < 0.2


def test_tamis_stands_in_every_figure() -> None:
    for paper, figures in chosen(tuple(PAPERS), None):
        for figure in figures:
            keys = [line.key for line in paper.lines_of(figure)]
            assert OURS in keys, (paper.key, figure.number)


@pytest.mark.parametrize("algorithm", ["rein", "pri_rein", "pri_rein_s", "tamis", "siena"])
def test_moments_are_in_order(algorithm: str) -> None:
    found = measure_determining(
        BoxSet(datasets.rein_boxes(3_000, m=8, k=2)), Line("x", "X", algorithm)
    )
    times = {name: found[name]["mean_ms"] for name in ("tp", "te", "tm", "tg")}
    assert times["tp"] + times["tg"] + times["te"] == pytest.approx(times["tm"], abs=0.2)
    assert len(found["levels"]) == 10
    assert all(level["n"] > 0 for level in found["levels"])


def test_all_three_ways_send_everything() -> None:
    found = measure_ways(BoxSet(datasets.rein_boxes(2_000, m=8, k=2)), REIN)
    n_sent = {found[way]["n"] for way in ("serial", "alternate", "concurrent")}
    assert len(n_sent) == 1
    assert found["serial"]["mean_ms"] > found["serial"]["determining_ms"]


def test_kept_events_are_found_added_and_removed() -> None:
    values = placed_boxes(10, n_events=300).values
    case = Kept(placed_boxes(20, k=4), values)
    found = measure_kept(case, SIMPLE)
    assert found["n_kept"] == 300
    assert min(found["insert_us"], found["remove_us"], found["bytes"]) > 0
    case.queries.low[0] = case.queries.high[0] = np.nan  # accepts everything
    with pytest.raises(WrongResult):
        case.build(SIMPLE)


def test_memory_of_one_structure_and_of_two() -> None:
    workload = placed_boxes(200)
    case = Both(BoxSet(workload), workload.values)
    both, two, ours = (
        measure_memory(case, Line("x", "X", name)) for name in ("simple", "rein+simple", "tamis")
    )
    assert both["n_kept"] == two["n_kept"] == ours["n_kept"] == workload.n_events
    assert two["bytes"] > both["bytes"]


@pytest.mark.parametrize("key", ["one", "tamis"])
def test_searches_are_checked_and_timed(key: str) -> None:
    found = measure_searches(make_searches(300), Line(key, key, "filter_tree"))
    assert found["n_subscriptions"] == 300
    assert found["events_per_s"] == pytest.approx(1e3 / found["match"]["mean_ms"])


# -- the data


def test_boxes_of_a_matching_rate_have_it() -> None:
    for rate in (0.01, 0.2):
        workload = datasets.matching_boxes(2_000, rate)
        for value in workload.values[:5]:
            accepted = ((workload.low <= value) & (value <= workload.high)).all(axis=1)
            assert accepted.mean() == pytest.approx(rate, rel=0.01)


def test_levels_points_and_skew() -> None:
    workload = datasets.dexin_boxes(3_000, 4, levels=100, points=0.5, zipf=1.0)
    assert np.allclose(workload.low * 100, np.round(workload.low * 100))
    assert (workload.low <= workload.high).all()
    assert (workload.low == workload.high).mean() > 0.45
    even = datasets.dexin_boxes(3_000, 4)
    assert np.median(workload.values) < 0.2 < np.median(even.values)


def test_places_are_squares_and_events_lack_some_attributes() -> None:
    workload = placed_boxes(3_000)
    asks = ~np.isnan(workload.low)
    assert (asks.sum(axis=1) == 6).all()
    assert asks[:, 0].mean() > asks[:, 19].mean()
    width = (workload.high - workload.low)[:, 0]
    assert np.nanmax(width) <= 0.04 + 1e-9
    n_held = (~np.isnan(workload.values)).sum(axis=1)
    assert 15 <= n_held.min() <= n_held.max() <= 20


def test_different_selectivity() -> None:
    def widths(workload: Workload) -> Any:
        return np.nanstd(workload.high - workload.low)

    assert (
        widths(datasets.rein_boxes(500)) < 1e-5 < 0.1 < widths(datasets.rein_boxes(500, width=None))
    )


# -- the report


def write_cells(results: Results, paper: Paper, scale: float, slow: str) -> None:
    experiment = paper.experiments[0]
    for cell in cells_of(paper, paper.figures, is_headline=False):
        ms = 9.0 if cell.line.key == slow else 1.0
        match = {"mean_ms": ms * cell.point, "std_ms": ms, "median_ms": ms, "n": 20}
        results.write(cell.key(scale), {"match": match, "n_subscriptions": cell.point})
    assert experiment.points


@pytest.mark.parametrize(("slow", "words"), [("simple", "holds"), ("rein", "does not hold")])
def test_the_report_says_what_became_of_the_claim(
    results: Results, tmp_path: Path, slow: str, words: str
) -> None:
    paper = small_paper()
    write_cells(results, paper, 0.1, slow)
    written = write_report(results, [paper], tmp_path / "docs" / "page.md")
    assert [path.name for path in written] == ["page.md", "small-1.png", "small-2.png"]
    assert all(path.stat().st_size > 500 for path in written)
    page = written[0].read_text()
    assert f"**The claim {words}.**" in page
    assert f"- {'✓' if words == 'holds' else '✗'} order: " in page
    assert "A is 2 times as fast." in page
    assert "(figures/reproduction/small-1.png)" in page
    assert "| Simple | " in page
    assert "*Not measured: Ghost.*" in page
    verdicts = "2 hold, 0 do not hold" if words == "holds" else "0 hold, 2 do not hold"
    assert f"Of 2 figures {verdicts}, of 0 we cannot tell." in page
    assert "at scale 0.1" in page


def test_the_reason_is_given_where_a_claim_does_not_hold(results: Results, tmp_path: Path) -> None:
    paper = replace(small_paper(), reasons={"1": "Because of the cache."})
    write_cells(results, paper, 0.1, "rein")
    page = write_report(results, [paper], tmp_path / "page.md")[0].read_text()
    told = "Of its parts hold: order 0 of 1. Because of the cache."
    assert f"does not hold.** {told}" in page
    write_cells(results, paper, 0.1, "simple")
    page = write_report(results, [paper], tmp_path / "page.md")[0].read_text()
    assert "Because of the cache." not in page


def test_the_largest_scale_is_shown(results: Results) -> None:
    paper = small_paper()
    write_cells(results, paper, 0.1, "simple")
    write_cells(results, paper, 1.0, "rein")
    shown = read(results, paper, paper.figures[0])
    assert shown is not None
    assert (shown.scale, shown.verdict) == (1.0, Verdict.FAILS)
    assert "Tamis at 400" in shown.ours()
    assert read_at(results, paper, paper.figures[0], 0.1).verdict is Verdict.HOLDS


def test_a_figure_is_compared_with_the_experiment_beside_it(results: Results) -> None:
    plain = small_paper((Against(Grown("rein")),))
    other = replace(plain.experiments[0], name="other")
    figure = replace(plain.figures[0], beside="other")
    paper = replace(plain, experiments=(*plain.experiments, other), figures=(figure,))
    write_cells(results, plain, 0.1, slow="rein")
    assert [one.verdict for one in read_at(results, paper, figure, 0.1).judged()] == [
        Verdict.UNKNOWN
    ]
    beside = replace(plain, experiments=(other,), figures=(replace(figure, experiment="other"),))
    write_cells(results, beside, 0.1, slow="simple")
    judged = read_at(results, paper, figure, 0.1).judged()
    assert [one.found for one in judged] == ["times as much: REIN 9.0 here, above 1 by the paper"]


def test_what_was_skipped_is_said(results: Results, tmp_path: Path) -> None:
    paper = small_paper()
    write_cells(results, paper, 0.1, "simple")
    cell = cells_of(paper, paper.figures, is_headline=False)[0]
    results.write(cell.key(0.1), {"skipped": "would need about 40 GB"})
    page = write_report(results, [paper], tmp_path / "page.md")[0].read_text()
    assert "*Simple at 10: would need about 40 GB*" in page


def test_a_report_of_nothing_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(NothingMeasured):
        write_report(results, [small_paper()], tmp_path / "page.md")


# -- the results that are kept with the sources

ROOT = Path(__file__).parents[2]
COMMITTED = Results(ROOT / "docs" / "results" / "reproduce")


@pytest.fixture(scope="module")
def every_figure() -> list[Shown]:
    return figures_of(COMMITTED, [paper_of(name) for name in PAPERS])


def test_every_figure_has_results(every_figure: list[Shown]) -> None:
    assert len(every_figure) == sum(len(paper_of(name).figures) for name in PAPERS)


def test_every_claim_that_does_not_hold_has_its_own_reason(every_figure: list[Shown]) -> None:
    reasons = {
        f"{one.paper.key} {one.figure.name}": one.reason
        for one in every_figure
        if one.verdict is not Verdict.HOLDS
    }
    assert [name for name, reason in reasons.items() if len(reason) < 60] == []
    assert len(set(reasons.values())) == len(reasons)


def test_the_page_is_what_the_results_give() -> None:
    page = page_of(COMMITTED, [paper_of(name) for name in PAPERS])
    assert (ROOT / "docs" / "reproduction.md").read_text() == page


# -- the papers


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_whole(name: str) -> None:
    paper = paper_of(name)
    numbers = [figure.number for figure in paper.figures]
    assert len(set(numbers)) == len(numbers)
    assert any(figure.is_headline for figure in paper.figures)
    for figure in paper.figures:
        experiment = paper.experiment(figure.experiment)
        keys = {one.key for one in experiment.lines}
        assert set(figure.lines) <= keys
        assert set(experiment.headline) <= set(experiment.points)
        assert any(character.isdigit() for character in figure.claim) or figure.note
        labels = {key: key for key in keys}
        assert all(one.judge({}, labels).verdict is Verdict.UNKNOWN for one in figure.checks)


def test_the_figures_that_were_asked_for_are_there() -> None:
    def numbers(name: str) -> list[str]:
        return [figure.number for figure in paper_of(name).figures]

    assert numbers("gem") == [str(n) for n in range(4, 12)]
    assert numbers("dexin") == [str(n) for n in range(2, 18)]
    assert {"4", "5", "6", "7", "11", "12", "13", "14"} <= set(numbers("pri-rein"))
    assert {*(str(n) for n in range(4, 13)), "table 5"} <= set(numbers("mo-tree"))
    assert numbers("yandex")


def test_a_paper_or_figure_that_is_not_there() -> None:
    assert [paper.key for paper, _ in chosen(("all",), None)] == list(PAPERS)
    with pytest.raises(UnknownExperiment, match="no paper 'gme'"):
        chosen(("gme",), None)
    with pytest.raises(UnknownExperiment, match="no figure '40'"):
        chosen(("gem",), "40")


# -- the command


@pytest.fixture
def invoke() -> Callable[..., Any]:
    return lambda *words: CliRunner().invoke(app, ["bench", "reproduce", *map(str, words)])


def test_the_command_runs_resumes_and_reports(invoke: Any, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "docs" / "reproduction.md"
    words = ("gem", "--figure", "4", "--headline", "--scale", SCALE, "-o", out)
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert "gem Fig. 4" in result.output
    assert len(list(out.glob("gem-n-*.json"))) == 14
    whole = json.loads(next(out.glob("*.json")).read_text())
    assert {"found", "machine", "versions", "scale"} <= whole.keys()
    again = invoke(*words, "--resume", "--report", page)
    assert again.exit_code == 0, again.output
    assert again.output.count(": kept") == 14
    assert "gem Fig. 4: Matching time" in page.read_text()
    assert (page.parent / "figures" / "reproduction" / "gem-4.png").exists()


def test_the_command_refuses_what_it_does_not_know(invoke: Any) -> None:
    for words in (("gme",), ("gem", "--figure", "40"), ("gem", "--scale", "0")):
        result = invoke(*words)
        assert result.exit_code == 2
        assert "error:" in result.output
