"""The library imports and runs without any of its extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPORT_NAMES = {"protobuf": "google", "import-linter": "importlinter", "pytest-xdist": "xdist"}


def modules_of_extras() -> list[str]:
    """The top-level modules that only an extra installs, read from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [line for extra in project["optional-dependencies"].values() for line in extra]
    names = [re.match(r"[\w.-]+", requirement)[0] for requirement in requirements]
    return sorted({IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names})


BLOCK = f"""
import sys
blocked = set({modules_of_extras()!r})

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Blocker())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_extras_are_known() -> None:
    wanted = {"pyspark", "pandas", "fastapi", "sqlalchemy", "httpx", "matplotlib", "polars"}
    assert wanted <= set(modules_of_extras())


# The star matters: the names of `tamis` load when they are first used.
IMPORTS = ["from tamis import *", "import tamis.cli", "from tamis.spark import *"]


@pytest.mark.parametrize("statement", IMPORTS)
def test_imports_when_no_extra_can_be_imported(statement: str) -> None:
    done = run(f"{BLOCK}\n{statement}\ntry:\n import pyspark\nexcept ImportError: print('ok')")
    assert (done.stderr, done.stdout) == ("", "ok\n")


@pytest.mark.parametrize("statement", IMPORTS)
def test_import_loads_no_extra_that_is_there(statement: str) -> None:
    loaded = f"sorted(set({modules_of_extras()!r}) & set(sys.modules))"
    done = run(f"{statement}\nimport sys\nprint({loaded})")
    assert (done.stderr, done.stdout) == ("", "[]\n")


def test_library_matches_without_extras() -> None:
    done = run(
        f"{BLOCK}\n"
        "from tamis import Index, Subscription\n"
        "index = Index()\n"
        "index.add(Subscription('s1', \"brand = 'Huawei' AND price < 3300\"))\n"
        "print(index.match({'brand': 'Huawei', 'price': 3200}))"
    )
    assert (done.stderr, done.stdout) == ("", "['s1']\n")


def test_session_without_spark_names_the_fix() -> None:
    done = run(
        f"{BLOCK}\n"
        "from tamis.errors import MissingExtra\n"
        "from tamis.spark import session\n"
        "try:\n session()\n"
        "except MissingExtra as error: print(error)"
    )
    assert done.stderr == ""
    assert "pip install 'tamis[spark]'" in done.stdout
