"""The settings a Spark session starts with; nothing is started here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.spark.runtime import _added_settings, _as_text, _local_cores, _own_settings

NO_JAVA = Path("/no/java/here")


@pytest.fixture(autouse=True)
def local_ip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``SPARK_LOCAL_IP``, which the settings may add, put back afterwards."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "")
    monkeypatch.delenv("SPARK_LOCAL_IP")


def test_defaults() -> None:
    settings = _own_settings({}, NO_JAVA)
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.sql.shuffle.partitions"] == str(len(os.sched_getaffinity(0)))
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_caller_wins() -> None:
    conf = {"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "7", "spark.x": "y"}
    assert _own_settings(conf, NO_JAVA).items() >= conf.items()


def test_java_options_of_the_caller_come_last() -> None:
    options = _own_settings({"spark.driver.extraJavaOptions": "-Dmine=1"}, NO_JAVA)
    assert options["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=file:")
    assert options["spark.driver.extraJavaOptions"].endswith(" -Dmine=1")


def test_the_past_is_kept_for_those_who_look() -> None:
    name = "spark.sql.ui.retainedExecutions"
    assert _own_settings({}, NO_JAVA)[name] == "50"
    assert _own_settings({name: "7"}, NO_JAVA)[name] == "7"
    assert name not in _own_settings({"spark.ui.enabled": "true"}, NO_JAVA)


def test_a_heap_nobody_asked_for_stays_small() -> None:
    def collector(**conf: str) -> bool:
        settings = _own_settings({f"spark.driver.{key}": conf[key] for key in conf}, NO_JAVA)
        is_cleaned = settings.get("spark.cleaner.periodicGC.interval") == "2min"
        assert is_cleaned == ("-XX:+UseSerialGC" in settings["spark.driver.extraJavaOptions"])
        return is_cleaned

    assert collector()
    assert collector(extraJavaOptions="-XX:MaxHeapFreeRatio=70")
    assert not collector(memory="4g")
    assert not collector(extraJavaOptions="-XX:+UseZGC")


DAEMON = "spark.python.daemon.module"


def test_workers_start_from_our_daemon_unless_the_caller_names_another() -> None:
    assert _own_settings({}, NO_JAVA)[DAEMON] == "tamis.spark.daemon"
    assert _own_settings({DAEMON: "mine"}, NO_JAVA)[DAEMON] == "mine"
    assert _added_settings({}, {})[DAEMON] == "tamis.spark.daemon"
    assert _added_settings({DAEMON: "mine"}, {})[DAEMON] == "mine"


def test_what_spark_submit_was_given_is_left_alone() -> None:
    given = {DAEMON: "mine", "spark.sql.session.timeZone": "CET", "spark.x": "y"}
    assert _added_settings({"spark.x": "z", "spark.y": "z"}, given) == {"spark.y": "z"}


def test_a_daemon_does_not_have_what_spark_submit_sends_along() -> None:
    """Python files come to a task, not to the process that is there before."""
    assert DAEMON in _added_settings({}, {"spark.submit.pyFiles": ""})
    assert DAEMON not in _added_settings({}, {"spark.submit.pyFiles": "tamis.zip"})


def test_cluster_keeps_its_own_partitions_and_address() -> None:
    settings = _own_settings({"spark.master": "spark://somewhere:7077"}, NO_JAVA)
    assert "spark.sql.shuffle.partitions" not in settings
    assert "SPARK_LOCAL_IP" not in os.environ


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[3,2]", 3), ("yarn", None), ("k8s://local[2]", None)],
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert _local_cores(master) == cores


def test_values_are_written_as_spark_reads_them() -> None:
    assert [_as_text(value) for value in (True, False, 3, "4g")] == ["true", "false", "3", "4g"]
