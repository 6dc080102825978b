"""Whose a state folder is: other sources are refused, and what only moved is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import PipelineError
from tamis.spark.identity import check_identity, keep_identity
from tamis.spark.settings import PipelineSettings
from tamis.spark.state_folder import StateFolder

FILES = {"path": "/shop/ads"}
TOPIC = {"source": "kafka", "servers": "a:9092", "topic": "ads"}
CHANGES = {"path": "/shop/searches"}
STORE = {"source": "store", "url": "postgresql://zoe:secret@db/tamis?sslmode=require"}
TABLE = {"source": "jdbc", "url": "jdbc:postgresql://db/x?password=secret", "table": "changes"}
SQLITE = {"source": "store", "url": "sqlite:////shop/tamis.db"}


def settings(
    state: Path, events: dict[str, str] = FILES, subscriptions: dict[str, str] = CHANGES,
    name: str = "ads",
) -> PipelineSettings:  # fmt: skip
    return PipelineSettings.model_validate(
        {"state": state, "name": name, "events": events, "subscriptions": subscriptions,
         "notifications": {"outbox": "outbox"}}
    )  # fmt: skip


def check(
    state: Path, before: tuple[dict[str, str], dict[str, str]],
    now: tuple[dict[str, str], dict[str, str]],
) -> None:  # fmt: skip
    folder = StateFolder(state)
    keep_identity(folder, settings(state, *before))
    check_identity(folder, settings(state, *now, name="another name"))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((FILES, CHANGES), (FILES, CHANGES)),
        ((FILES, CHANGES), ({"path": "/shop/../shop/ads"}, CHANGES)),
        ((TOPIC, STORE), ({**TOPIC, "servers": "b:9092"}, STORE)),
        ((TOPIC, STORE), (TOPIC, {**STORE, "url": "postgresql+psycopg://tom@db/tamis"})),
        ((TOPIC, TABLE), (TOPIC, {**TABLE, "url": "jdbc:postgresql://db/x?password=new"})),
    ],
)
def test_the_same_pipeline(
    tmp_path: Path,
    before: tuple[dict[str, str], dict[str, str]],
    now: tuple[dict[str, str], dict[str, str]],
) -> None:
    check(tmp_path, before, now)
    assert "secret" not in (tmp_path / "pipeline.json").read_text()


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (
            (FILES, CHANGES),
            ({"path": "/shop/cars"}, CHANGES),
            "events from files /shop/ads; .*cars",
        ),
        ((FILES, CHANGES), (TOPIC, CHANGES), "events from files /shop/ads; .*kafka ads"),
        ((TOPIC, CHANGES), ({**TOPIC, "topic": "cars"}, CHANGES), "kafka ads; .*kafka cars"),
        ((FILES, CHANGES), (FILES, STORE), "subscriptions from files .*store //db/tamis"),
        ((FILES, TABLE), (FILES, {**TABLE, "table": "t"}), "table changes; .*table t"),
        ((FILES, STORE), (FILES, SQLITE), "store //db/tamis; .*/shop/tamis.db"),
    ],
)
def test_another_pipeline(
    tmp_path: Path,
    before: tuple[dict[str, str], dict[str, str]],
    now: tuple[dict[str, str], dict[str, str]],
    said: str,
) -> None:
    with pytest.raises(PipelineError, match=said) as raised:
        check(tmp_path, before, now)
    has_moved = str(tmp_path / "pipeline.json") in str(raised.value)
    assert has_moved == ("subscriptions from" in str(raised.value))
    assert "secret" not in str(raised.value)


def test_a_state_that_does_not_say_is_anybodys(tmp_path: Path) -> None:
    check_identity(StateFolder(tmp_path), settings(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "pipeline.json").write_text(content)
    with pytest.raises(PipelineError, match=r"pipeline\.json cannot be read: .*back-up"):
        check_identity(StateFolder(tmp_path), settings(tmp_path))


def test_a_state_that_has_moved_is_refused_and_found_behind_a_link(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    keep_identity(StateFolder(old), settings(old))
    old.rename(new)
    with pytest.raises(PipelineError, match=f"{new} was at {old} when its pipeline ran last"):
        check_identity(StateFolder(new), settings(new))
    old.symlink_to(new)
    check_identity(StateFolder(old), settings(old))


def test_a_state_of_before_may_be_anywhere(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    folder = StateFolder(old)
    keep_identity(folder, settings(old))
    held = folder.read("pipeline.json")
    assert held is not None
    folder.keep("pipeline.json", {name: held[name] for name in ("events", "subscriptions")})
    old.rename(new)
    check_identity(StateFolder(new), settings(new))
