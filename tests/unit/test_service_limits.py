"""Limits, keys and what the log hides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis import errors
from tamis.errors import InvalidValue, NotAllowed
from tamis.service.limits import Limits, RateReached, TokenBuckets
from tamis.service.logs import hide_secrets
from tamis.service.pipeline import pipeline_text, write_pipeline
from tamis.service.problems import (
    STATUS_OF,
    problem_of,
    problem_response,
    problem_type,
    status_of,
)
from tamis.service.settings import KafkaSettings, ServiceSettings
from tamis.spark.settings import read_settings
from tamis.storage.keys import check_secret, parse_key


def test_a_bucket_fills_again() -> None:
    buckets, limits = TokenBuckets(), Limits(requests_per_s=2, burst=3)
    for _ in range(3):
        buckets.take("a", limits, now=10.0)
    with pytest.raises(RateReached) as caught:
        buckets.take("a", limits, now=10.25)
    assert caught.value.retry_after_s == pytest.approx(0.25)
    buckets.take("b", limits, now=10.25)
    buckets.take("a", limits, now=10.5)
    for _ in range(3):
        buckets.take("a", limits, now=1_000.0)
    with pytest.raises(RateReached):
        buckets.take("a", limits, now=1_000.0)


@pytest.mark.parametrize(
    "limits",
    [
        {"speed": 1}, {"burst": 0}, {"burst": 1.5}, {"burst": True}, {"burst": "1"},
        {"requests_per_s": 1e-320}, {"requests_per_s": 0.99}, {"requests_per_s": float("nan")},
        {"requests_per_s": float("inf")}, {"body_bytes": 10**9 + 1},
    ],
)  # fmt: skip
def test_limits_that_are_none(limits: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Limits().changed(limits)


def test_the_wait_for_a_request_is_never_endless() -> None:
    assert Limits().changed({"requests_per_s": 1.5}).requests_per_s == 1.5
    buckets, limits = TokenBuckets(), Limits(requests_per_s=1e-320, burst=1)
    buckets.take("a", limits, now=10.0)
    with pytest.raises(RateReached) as caught:
        buckets.take("a", limits, now=10.0)
    assert problem_response(caught.value).headers["Retry-After"] == "86400"


@pytest.mark.parametrize("text", ["", "tamis", "tamis_0123456789_", "tamis_x_y", "x" * 10_000])
def test_texts_that_are_no_key(text: str) -> None:
    with pytest.raises(NotAllowed, match="tamis_<prefix>_<secret>"):
        parse_key(text)


def test_nobody_has_the_secret_of_no_key() -> None:
    assert not check_secret(None, "0" * 64)


def test_no_secret_reaches_the_log() -> None:
    key = f"tamis_0123456789_{'ab' * 32}"
    entry = hide_secrets(
        None, "", {"event": f"used {key}", "url": "postgresql://u:secret@h/d", "Authorization": key}
    )
    assert entry == {
        "event": "used tamis_0123456789_…",
        "url": "postgresql://u:…@h/d",
        "Authorization": "…",
    }


def test_every_error_a_request_can_cause_has_a_status() -> None:
    names = {problem_type(kind) for kind, _ in STATUS_OF}
    assert len(names) == len(STATUS_OF)
    assert status_of(errors.InvalidDelivery("x")) == 422
    assert status_of(errors.FilterTooComplex("levels", 2, 1, "less")) == 422
    assert problem_of(errors.StorageUnavailable("away"))["status"] == 503


def test_the_pipeline_finds_a_database_beside_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings lie in another folder, and paths in them are taken from there."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    settings = ServiceSettings(Path("data"), "sqlite:///alerts.db?timeout=5")
    read = read_settings(write_pipeline(settings))
    assert read.subscriptions.url == f"sqlite:///{tmp_path}/alerts.db?timeout=5"
    assert read.notifications.outbox == read.subscriptions.url
    away = "postgresql://tamis@db/tamis"
    assert ServiceSettings(Path("data"), away).database_url == away


@pytest.mark.parametrize("kafka", [None, KafkaSettings("broker:9092", "events")])
def test_the_pipeline_can_read_the_settings_that_are_written(tmp_path, kafka) -> None:
    settings = ServiceSettings(tmp_path, kafka=kafka)
    path = write_pipeline(settings)
    assert path.stat().st_mode & 0o777 == 0o600
    read = read_settings(path)
    assert read.subscriptions.url == settings.database_url
    assert read.notifications.outbox == settings.database_url
    if kafka is None:
        assert (read.events.path, read.events.columns.id) == (settings.events, "@id")
    else:
        assert (read.events.servers, read.events.topic) == ("broker:9092", "events")
    path.write_text("# changed by hand")
    assert write_pipeline(settings).read_text() == "# changed by hand"
    assert "broker" not in pipeline_text(ServiceSettings(tmp_path))
