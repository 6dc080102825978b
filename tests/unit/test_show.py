"""``tamis show``: a picture a reader can look at, made from the trace of a real match."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tamis.bench.views.subject import Subject
from tamis.cli.app import app
from tamis.cli.showing import VIEWS
from tamis.errors import InvalidEvent


@pytest.mark.parametrize("algorithm", VIEWS)
@pytest.mark.parametrize("event", ["{}", '{"a": 0, "b": 1}', '{"a": null}'])
def test_a_picture_of_every_view(algorithm, event, tmp_path):
    for suffix in ("png", "svg"):
        file = tmp_path / f"picture.{suffix}"
        words = ["show", algorithm, "--event", event, "--subscriptions", "300", "-o", str(file)]
        run = CliRunner().invoke(app, words)
        assert run.exit_code == 0, run.stderr
        assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" or b"<svg" in file.read_bytes()


@pytest.mark.parametrize("algorithm", VIEWS)
def test_the_bars_end_with_the_number_of_matches(algorithm):
    subject = Subject.of(500, 3, seed=2, event={"a": 0.4})
    figure = VIEWS[algorithm](subject)
    bars = [text.get_text() for text in figure.axes[-1].texts]
    low, high = subject.bounds
    values = np.array([subject.event[name] for name in subject.names])
    n_matches = int(((low <= values) & (values <= high)).all(axis=1).sum())
    assert bars[0] == "500"
    assert bars[-1] == f"{n_matches:,}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gemm"], "expected one of gem, dexin, mo_tree"),
        (["gem", "-o", "x.pdf"], "ends with .png or .svg"),
        (["gem", "--attributes", "9"], "is not between 1 and 6"),
        (["gem", "--event", "{"], "not JSON"),
        (["gem", "--event", "[1]"], "a JSON object"),
        (["gem", "--event", '{"z": 1}'], "expected some of a, b, c, d"),
        (["gem", "--event", '{"a": 2}'], "from 0 to 1"),
    ],
)
def test_bad_options(words, said):
    run = CliRunner().invoke(app, ["show", *words])
    assert run.exit_code == 2
    assert said in run.stderr


def test_an_event_is_checked():
    with pytest.raises(InvalidEvent, match="a = True"):
        Subject.of(1, 1, 0, {"a": True})
