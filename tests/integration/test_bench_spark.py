"""The Spark benchmark at a size at which it says nothing but that it works."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tamis.bench.cases import WrongResult
from tamis.bench.results import Key, Results
from tamis.bench.spark import stream
from tamis.bench.spark.join import measure_join
from tamis.bench.spark.memory import memory_now
from tamis.bench.spark.parquet import measure_parquet
from tamis.bench.spark.suite import AIMS, plan
from tamis.cli.app import app


@pytest.mark.spark
def test_parquet_to_parquet(spark, tmp_path):
    found = measure_parquet(spark, tmp_path, 0.001)
    assert (found["n_subscriptions"], found["n_events"]) == (1_000, 2_000)
    assert found["n_matches"] > 0
    assert found["share_of_two_cores"] > 0


@pytest.mark.spark
def test_matches_that_are_missing_are_an_error(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.bench.spark.parquet._n_matches", lambda case, n: 7)
    with pytest.raises(WrongResult, match="gave 7 without"):
        measure_parquet(spark, tmp_path, 0.001)


@pytest.mark.spark
def test_against_a_join(spark, tmp_path):
    found = measure_join(spark, tmp_path, 0.005)
    assert found["n_subscriptions"] == 500
    assert found["ratio"] > 0


@pytest.mark.spark
def test_a_stream_with_newcomers(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "_WARM_UP_S", 1.0)
    monkeypatch.setattr(stream, "PER_SECOND", 40)
    found = stream.measure_stream(spark, tmp_path, 0.001, 6.0, lambda text: None)
    assert found["n_events"] == 281
    assert found["newcomers"] == 1
    assert 0 < found["event_to_match_p50_s"] <= found["event_to_match_p99_s"]
    assert found["worker_private_mb_max"] > 1
    assert found["daemon_mb_max"] > 1
    assert len(found["lag_events_by_third"]) == 3


def test_memory_of_this_process():
    found = memory_now()
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6
    assert found.driver == pytest.approx(resident, rel=0.2)


def test_the_command_shows_what_is_there(tmp_path):
    results = Results(tmp_path)
    held = {
        "parquet": {"share_of_two_cores": 0.75},
        "join": {"ratio": 90.0},
        "stream": {"event_to_match_p50_s": 0.5, "lag_events_by_third": [1.0, 2.0, 3.0]},
    }
    for key in plan(1.0, []):
        results.write(key, held[key.cell])
    words = ["bench", "spark", "--scale", "1", "--resume", "-o", str(tmp_path)]
    run = CliRunner().invoke(app, [*words, "--json"])
    assert run.exit_code == 0
    told = {one["what"]: one["met"] for one in json.loads(run.stdout)["aims"]}
    assert told["as fast as a join"] is False
    assert told["event to match, median"] is True
    table = CliRunner().invoke(app, words)
    assert "lag events by third: 1.0, 2.0, 3.0" in table.stdout
    assert {aim.cell for aim in AIMS} == set(held)
    assert Key("join", "W1", 1.0) in results


@pytest.mark.parametrize("words", [["--scale", "0"], ["--minutes", "0"], ["--only", "jion"]])
def test_bad_options(words):
    run = CliRunner().invoke(app, ["bench", "spark", *words])
    assert run.exit_code == 2
