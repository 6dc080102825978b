"""Where the tests of the page get their browser from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts import browser


def program(path: Path, lines: str) -> Path:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, but for the shell's own programs."""
    monkeypatch.delenv("TAMIS_BROWSER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_the_first_on_path_that_runs_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(folder / "chromium", "echo 'install a snap' >&2; exit 1")
    chrome = program(folder / "google-chrome", "echo Chrome 1")
    assert browser.main() == 0
    assert capsys.readouterr().out == f"{chrome}\n"
    monkeypatch.setenv("TAMIS_BROWSER", str(folder / "chromium"))
    assert browser.main() == 1
    assert "TAMIS_BROWSER=" in capsys.readouterr().err


def test_without_apt_or_root_it_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert browser.main() == 2
    assert "apt-get install chromium" in capsys.readouterr().err
    program(folder / "apt-get", f"touch {folder}/asked")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert browser.main() == 2
    assert not (folder / "asked").exists()


def test_root_gets_it_from_apt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder / "chromium"
    program(
        folder / "apt-get",
        f"""echo "$DEBIAN_FRONTEND $*" >> {folder}/asked
case "$*" in *update*) exit 100;; esac
printf '#!/bin/sh\\n' > {made}
/bin/chmod 755 {made}""",
    )
    assert browser.main() == 0
    assert capsys.readouterr().out == f"{made}\n"
    asked = (folder / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["noninteractive"] * 2
    assert asked[1].endswith("install --yes --no-install-recommends chromium")


ENDS = [
    ("exit 0", 2, "brings no browser"),
    ("echo no such package; exit 100", 1, "no such package"),
]


@pytest.mark.parametrize(("end", "code", "said"), ENDS)
def test_an_installation_that_brings_none_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], end: str, code: int, said: str
) -> None:
    program(folder / "apt-get", end)
    assert browser.main() == code
    assert said in capsys.readouterr().err
