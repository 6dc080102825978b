"""Which class archive Java uses or writes; no Java is started here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.spark import class_archive
from tamis.spark.class_archive import archive_options
from tamis.spark.runtime import _own_settings


class Place:
    """A Java, the jars of Spark, and a folder for archives."""

    def __init__(self, root: Path) -> None:
        self.home, self.jars, self.folder = root / "java", root / "jars", root / "cache" / "tamis"
        base = self.home / "lib" / "server" / "classes.jsa"
        base.parent.mkdir(parents=True)
        base.touch()
        self.jars.mkdir()

    def options(self) -> list[str]:
        return archive_options(self.home, self.jars, self.folder)

    def written(self) -> Path:
        """Where Java is told to write an archive."""
        option = self.options()[0]
        assert option.startswith("-XX:ArchiveClassesAtExit=")
        return Path(option.partition("=")[2])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_first_writes_and_the_next_uses_it(place: Place) -> None:
    part = place.written()
    part.write_bytes(bytes(100))  # the head is still missing
    assert place.written() == part
    part.write_bytes(b"\xf0\x0b" + bytes(100))
    used = place.options()[0]
    assert used.startswith("-XX:SharedArchiveFile=")
    archive = Path(used.partition("=")[2])
    assert archive.read_bytes() == b"\xf0\x0b" + bytes(100)
    part.write_bytes(b"of another")
    assert place.options()[0] == used
    assert list(place.folder.iterdir()) == [archive]


def test_two_write_two_files(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = place.written()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert place.written() != first
    assert place.written().parent == first.parent


def test_one_from_before_the_machine_was_started_is_not_trusted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = place.written()
    part.write_bytes(b"whole")
    monkeypatch.setattr(class_archive, "_boot", lambda: "another")
    assert place.written() != part
    assert not part.exists()


def test_another_spark_has_another_archive(place: Place) -> None:
    before = place.written()
    os.utime(place.jars, (1, 1))
    assert place.written() != before


def test_without_an_archive_of_its_own_java_gets_none(place: Place) -> None:
    (place.home / "lib" / "server" / "classes.jsa").unlink()
    assert place.options() == []
    place.folder.parent.mkdir()
    place.folder.touch()
    (place.home / "lib" / "server" / "classes.jsa").touch()
    assert place.options() == []  # a file is where the folder should be


def test_who_brings_an_archive_keeps_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(place.folder))
    monkeypatch.setenv("SPARK_HOME", str(place.jars.parent))
    name = "spark.driver.extraJavaOptions"
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert "-XX:ArchiveClassesAtExit=" in _own_settings({}, place.home)[name]
    given = "-XX:SharedArchiveFile=/mine.jsa"
    options = _own_settings({name: given}, place.home)[name]
    assert options.endswith(given)
    assert "AtExit" not in options
