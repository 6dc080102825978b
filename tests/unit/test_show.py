"""``tamis show``: a picture a reader can look at, made from the state of a real matcher."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tamis.algorithms import ALGORITHMS, make
from tamis.bench.views.filter_tree import draw_filter_tree
from tamis.bench.views.plane import draw_found
from tamis.bench.views.registry import EXAMPLES, VIEWS, View
from tamis.bench.views.subject import Subject
from tamis.cli.app import app
from tamis.errors import InvalidEvent

STEPS = ["dexin", "gem", "mo_tree"]
SKETCHES = sorted(set(VIEWS) - set(STEPS))
DOCS = Path(__file__).parents[2] / "docs"


def _show(*words):
    return CliRunner().invoke(app, ["show", *words])


def _matches(subject):
    low, high = subject.bounds
    values = np.array([subject.event.get(name, np.nan) for name in subject.names])
    return np.flatnonzero((((low <= values) & (values <= high)) | np.isnan(low)).all(axis=1))


def _told(figure):
    return figure.get_suptitle()


def test_every_algorithm_can_be_shown():
    assert set(ALGORITHMS) == set(VIEWS) | set(EXAMPLES)


@pytest.mark.parametrize("event", [{"a": 0.3, "b": 0.7}, {"a": None}])
def test_an_algorithm_without_a_view_of_its_own_is_shown_by_what_it_finds(event):
    subject = View(partial(draw_found, "rein")).subject(event, seed=1)
    figure = draw_found("rein", subject)
    assert _told(figure).endswith(f" {len(_matches(subject)):,} match")
    assert len(figure.axes[0].patches) == len(subject)


@pytest.mark.parametrize("algorithm", [*SKETCHES, *EXAMPLES])
def test_a_sketch_without_options(algorithm, tmp_path):
    file = tmp_path / "picture.png"
    run = _show(algorithm, "-o", str(file))
    assert run.exit_code == 0, run.stderr
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert file.stat().st_size < 60_000


@pytest.mark.parametrize("algorithm", STEPS)
@pytest.mark.parametrize("event", ["{}", '{"a": 0, "b": 1}', '{"a": null}'])
def test_a_picture_of_steps(algorithm, event, tmp_path):
    file = tmp_path / "picture.svg"
    run = _show(algorithm, "--event", event, "--subscriptions", "300", "-o", str(file))
    assert run.exit_code == 0, run.stderr
    assert b"<svg" in file.read_bytes()


@pytest.mark.parametrize("algorithm", STEPS)
def test_the_bars_end_with_the_number_of_matches(algorithm):
    subject = VIEWS[algorithm].subject({"a": 0.4}, 2, 500, 3)
    figure = VIEWS[algorithm].draw(subject)
    bars = [text.get_text() for text in figure.axes[-1].texts]
    assert bars[0] == "500"
    assert bars[-1] == f"{len(_matches(subject)):,}"


@pytest.mark.parametrize("algorithm", [name for name in SKETCHES if name != "beq_tree"])
@pytest.mark.parametrize("event", [{"a": 0.3, "b": 0.7}, {"a": 0, "b": 1}, {"a": None}])
def test_a_sketch_tells_the_number_of_matches(algorithm, event):
    view = VIEWS[algorithm]
    subject = view.subject(event, seed=1)
    assert _told(view.draw(subject)).endswith(f" {len(_matches(subject)):,} match")


@pytest.mark.parametrize("event", [{"a": 0.3, "b": 0.7}, {"a": 0, "b": 1}, {"a": None}])
def test_the_sketch_of_beq_tree_tells_the_events_of_a_window(event):
    view = VIEWS["beq_tree"]
    subject = view.subject(event)
    middles = sum(subject.bounds) / 2
    asked = [subject.names.index(name) for name in subject.event]
    is_near = np.abs(middles[:, asked] - [*subject.event.values()]) <= 0.17
    assert _told(view.draw(subject)).endswith(f" {is_near.all(axis=1).sum()} match")


@pytest.mark.parametrize("algorithm", ["tamis", "r_star_tree", "be_tree", "simple", "rein"])
def test_a_sketch_of_one_subscription(algorithm):
    view = VIEWS[algorithm]
    assert "1 subscriptions" in _told(view.draw(view.subject({}, n_subscriptions=1)))


def test_the_filter_tree_finds_what_the_paper_says():
    assert _told(draw_filter_tree()).endswith("A1 satisfies F1, F2, F3; A2 satisfies F2")


def _filled(algorithm, **parameters):
    subject = Subject.of(200, 2, 3, {"a": 0.3, "b": 0.7}, narrow=0.6, free=(0.2, 0.0))
    matcher = make(algorithm, subject.names, **parameters)
    subject.put_into(matcher)
    return matcher, subject


def test_visited_buckets_of_h_tree_hold_all_matches():
    tree, subject = _filled("h_tree")
    visited = tree.visited(subject.event)
    held = {slot for cells in visited for slot in tree.bucket(*cells).tolist()}
    assert set(_matches(subject)) <= held < set(range(200))
    assert len(visited) < 25


def test_visited_nodes_of_be_tree_hold_all_matches():
    tree, subject = _filled("be_tree", max_size=5)
    visited = tree.visited(subject.event)
    held = np.flatnonzero(np.isin(tree.tree.node_of[:200], visited))
    assert set(_matches(subject)) <= set(held) < set(range(200))
    assert len(set(visited)) == len(visited)


def test_leaves_of_r_star_tree_enclose_each_subscription_once():
    subject = Subject.of(300, 2, 3, {})
    tree = make("r_star_tree", subject.names)
    assert tree.leaves() == []
    subject.put_into(tree)
    leaves = tree.leaves()
    assert sorted(slot for slots, _ in leaves for slot in slots) == list(range(300))
    low, high = subject.bounds
    for slots, box in leaves:
        assert (low[slots] >= np.array(box[:2]) - 1e-12).all()
        assert (high[slots] <= np.array(box[2:]) + 1e-12).all()


def test_leaves_of_beq_tree_hold_each_event_once_and_in_order():
    events = np.random.default_rng(4).random((300, 3))
    tree = make("beq_tree", ["a", "b", "c"], capacity=16)
    tree.add_events(events)
    leaves = tree.leaves()
    assert sorted(slot for leaf in leaves for slot in leaf.orders[0].tolist()) == list(range(300))
    for leaf in leaves:
        inside = events[leaf.orders[0], :2] - leaf.corner
        assert ((inside >= 0) & (inside < leaf.width)).all()
        for m, order in enumerate(leaf.orders):
            assert (np.diff(events[order, m]) >= 0).all()
            assert set(order) == set(leaf.orders[0])


@pytest.mark.parametrize("algorithm", ["siena", "rein"])
def test_buckets_hold_every_bound(algorithm):
    matcher, subject = _filled(algorithm, n_buckets=10)
    for m, low in enumerate(subject.bounds[0].T):
        numbers = np.floor(low[~np.isnan(low)] * 10).astype(int)
        assert matcher.bucket_counts(m, 0).tolist() == np.bincount(numbers, minlength=10).tolist()
        assert matcher.bucket_counts(m, 1).sum() == len(numbers)


def test_the_sections_of_the_algorithms_have_their_pictures():
    text = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    shown = {name for title in sections for name in title.split(", ")}
    assert shown | set(EXAMPLES) >= set(VIEWS)
    for title, section in sections.items():
        (picture,) = re.findall(r"!\[[^]]{20,}\]\((figures/show-\w+\.png)\)", section)
        assert title.split(", ")[0] in picture
        assert (DOCS / picture).is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gemm"], "expected one of be_tree, beq_tree, dexin, filter_tree, gem, h_tree"),
        (["gem", "-o", "x.pdf"], "ends with .png or .svg"),
        (["gem", "--attributes", "9"], "is not between 1 and 6"),
        (["rein", "--attributes", "3"], "is not 2 for rein"),
        (["rein", "--subscriptions", "61"], "expected at most 60"),
        (["filter_tree", "--event", '{"a": 1}'], "leave out --event"),
        (["gem", "--event", "{"], "not JSON"),
        (["gem", "--event", "[1]"], "a JSON object"),
        (["gem", "--event", '{"a":' * 20_000], "not JSON"),
        (["gem", "--event", '{"z": 1}'], "expected some of a, b, c, d"),
        (["gem", "--event", '{"a": 2}'], "from 0 to 1"),
    ],
)
def test_bad_options(words, said):
    run = _show(*words)
    assert run.exit_code == 2
    assert said in run.stderr


def test_an_event_is_checked():
    with pytest.raises(InvalidEvent, match="a = True"):
        Subject.of(1, 1, 0, {"a": True})
