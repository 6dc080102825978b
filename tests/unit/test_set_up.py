"""The set-up of the repository: the pinned versions, and what the script says."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


set_up = load("set_up")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(line for extra in extras for line in extra)]


def test_constraints_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert [line for line in pinned if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    assert len(pins()) == len(pinned) > 50


@pytest.mark.parametrize("text", [*requirements(), *set_up.BUILD_TOOLS])
def test_every_dependency_is_pinned_within_its_bounds(text: str) -> None:
    requirement = Requirement(text)
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


def test_python_without_ensurepip_and_pip_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"ensurepip", "pip"}
    monkeypatch.setattr(set_up.importlib.util, "find_spec", lambda name: name not in missing)
    with pytest.raises(set_up.SetUpError, match=r"apt-get install python3\.\d+-venv"):
        set_up.make_venv(tmp_path / "venv")
    assert not (tmp_path / "venv").exists()


def test_old_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up.sys, "version_info", (3, 10, 13))
    with pytest.raises(set_up.SetUpError, match=r"is Python 3\.10\.13; Tamis needs 3\.11"):
        set_up.check_python()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  Downloading https://a/pyspark-4.3.0.tar.gz (456.0 MB)", "downloading pyspark (456 MB)"),
        ("  Downloading numpy-2.4.6-cp311-cp311-linux.whl.metadata (7 kB)", None),
        ("  Downloading ruff-0.1-py3.whl (9.9 MB)", None),
        ("  Building wheel for pyspark (pyproject.toml): started", "building pyspark"),
        ("Installing collected packages: a, b, c", "installing 3 packages"),
        ("Installing collected packages: tamis", "installing 1 package"),
        ("WARNING: something is off", "WARNING: something is off"),
        ("Collecting numpy", None),
    ],
)
def test_pip_output_is_cut_down_to_what_takes_long(line: str, shown: str | None) -> None:
    assert set_up._worth_showing(line + "\n") == shown
