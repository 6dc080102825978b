"""Make the virtual environment of this repository: `python3 scripts/set_up.py .venv`.

Runs on a bare Python (standard library only) and is called by `make setup`. The versions come
from constraints.txt; where packages come from is left to pip's own configuration.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "spark,service,bench,kafka,dev"
# Built without isolation, so that the build tools are pinned like everything else.
BUILD_TOOLS = ["hatchling", "editables", "setuptools", "wheel"]
OLDEST_PYTHON = (3, 11)
_COMPILE = "from tamis.index.first_use import use_kernels; [*use_kernels()]"


class SetUpError(Exception):
    """The set-up cannot go on; the message says what to do."""


def check_python() -> None:
    """Refuse a Python that is too old for Tamis."""
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        raise SetUpError(
            f"{sys.executable} is Python {found}; Tamis needs 3.11 or newer.\n"
            "Name a newer one: make setup PYTHON=/path/to/python3.12"
        )


def make_venv(venv: Path) -> list[str]:
    """Create the environment (keeping one that works) and return the pip command for it."""
    python = venv / "bin" / "python"
    inner_pip = [str(python), "-m", "pip"]
    if _runs([*inner_pip, "--version"]):
        return inner_pip
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        _run([sys.executable, "-m", "venv", "--clear", str(venv)])
        return inner_pip
    # Debian splits ensurepip off into python3-venv; a pip outside can fill the environment too.
    outer_pip = [sys.executable, "-m", "pip", "--python", str(python)]
    if importlib.util.find_spec("venv") and importlib.util.find_spec("pip"):
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)])
        if _runs([*outer_pip, "--version"]):
            return outer_pip
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    raise SetUpError(
        f"{sys.executable} cannot make a virtual environment: its module 'ensurepip' is missing,\n"
        "and there is no pip to do without it. On Debian and Ubuntu:\n"
        f"    apt-get install {name}-venv     (or python3-venv)\n"
        "Or name another Python: make setup PYTHON=/path/to/python3.12"
    )


def install_some(pip: list[str]) -> None:
    """Install what Tamis depends on without its extras, and what it is built with."""
    import tomllib  # not there in the Pythons that check_python refuses

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    _run_pip([*_install(pip), *BUILD_TOOLS, *project["dependencies"]])


def install(pip: list[str]) -> None:
    """Install Tamis (editable) with the extras that `make demo` and `make test` need."""
    editable = ["--no-build-isolation", "--use-pep517", "-e", f"{ROOT}[{EXTRAS}]"]
    _run_pip([*_install(pip), *editable])


def _install(pip: list[str]) -> list[str]:
    constraints = str(ROOT / "constraints.txt")
    return [*pip, "install", "--disable-pip-version-check", "-c", constraints]


@contextmanager
def compiling(venv: Path) -> Iterator[None]:
    """Have the kernels of the index compiled meanwhile, which takes a minute of one core.

    What fails here is tried again by whoever needs it, and told then.
    """
    command = [str(venv / "bin" / "python"), "-c", _COMPILE]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            yield
            if process.poll() is None:
                print("  compiling the kernels of the index", flush=True)
        except BaseException:
            process.kill()
            raise


def prepare_java(venv: Path) -> None:
    """Choose the Java that Spark will run on, and say which."""
    _run([str(venv / "bin" / "python"), "-m", "tamis.spark"])


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(command: list[str]) -> None:
    code = subprocess.run(command, check=False).returncode
    if code:
        raise SetUpError(f"this command failed (exit {code}): {' '.join(command)}")


def _run_pip(command: list[str]) -> None:
    """Run pip, showing only the steps that take a while; show everything if it fails."""
    lines: list[str] = []
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if step := _worth_showing(line):
                print(f"  {step}", flush=True)
    if process.returncode:
        sys.stderr.writelines(lines)
        raise SetUpError(f"pip failed (exit {process.returncode}): {' '.join(command)}")


def _worth_showing(line: str) -> str | None:
    """Shorten one line of pip's output, or drop it."""
    if match := re.search(r"Downloading \S*?([^/\s]+) \(([\d.]+) MB\)", line):
        name, size = match[1].split("-")[0], float(match[2])
        return f"downloading {name} ({size:.0f} MB)" if size >= 10 else None
    if match := re.search(r"Building (?:editable|wheel) for (\S+).*started", line):
        return f"building {match[1]}"
    if line.startswith("Installing collected packages"):
        count = line.count(",") + 1
        return f"installing {count} package{'s' if count > 1 else ''}"
    if line.startswith(("WARNING", "ERROR")):
        return line.rstrip()
    return None


def main() -> int:
    """Run all steps; the folder of the environment is the only argument."""
    venv = Path(sys.argv[1] if len(sys.argv) > 1 else ".venv").absolute()
    started = time.monotonic()
    try:
        check_python()
        print(f"Setting up {venv.name} (first time: a few minutes, mostly downloads)", flush=True)
        pip = make_venv(venv)
        install_some(pip)
        with compiling(venv):
            install(pip)
            prepare_java(venv)
    except SetUpError as error:
        print(f"\nset-up stopped: {error}", file=sys.stderr)
        return 1
    print(f"Set-up done in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
