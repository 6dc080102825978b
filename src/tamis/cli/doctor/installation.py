"""Checks of what is installed: Python, packages, Java, compiled kernels, tools for the tests."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import time
from collections.abc import Collection, Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tamis.cli.doctor.subject import Finding
from tamis.errors import MissingExtra

_FOR = {
    "spark": "tamis run, tamis demo, tamis.spark",
    "service": "tamis serve, tamis send, tamis keys, tamis import",
    "bench": "tamis bench, tamis show",
    "kafka": "tamis serve --kafka",
    "dev": "make test, make check",
}


def check_python() -> Iterator[Finding]:
    """Whether this Python is one that Tamis runs on."""
    running, wanted = platform.python_version(), metadata("tamis")["Requires-Python"]
    if SpecifierSet(wanted).contains(running, prereleases=True):
        yield Finding("Python", "ok", running)
    else:
        yield Finding(
            "Python", "wrong", f"{running}; wanted {wanted}",
            "Install a newer Python, and Tamis into a new environment of it.",
        )  # fmt: skip


def check_packages(needed: Collection[str]) -> Iterator[Finding]:
    """Whether the library's packages and those of each extra are there, in versions that fit."""
    yield _check_extra("", is_needed=True)
    for extra in metadata("tamis").get_all("Provides-Extra") or ():
        yield _check_extra(extra, extra in needed)


def _check_extra(extra: str, is_needed: bool) -> Finding:
    name, package = (f"extra {extra}", f"tamis[{extra}]") if extra else ("packages", "tamis")
    absent, unfit = _unmet(extra)
    if not absent and not unfit:
        return Finding(name, "ok", "installed")
    told = [f"not installed: {', '.join(absent)}"] if absent else []
    told += [f"{one} does not fit" for one in unfit]
    is_wrong = is_needed or bool(unfit)
    purpose = f" It is for {_FOR[extra]}." if extra in _FOR else ""
    return Finding(
        name, "wrong" if is_wrong else "note", "; ".join(told),
        f"Install it: pip install '{package}'.{purpose}",
    )  # fmt: skip


def _unmet(extra: str) -> tuple[list[str], list[str]]:
    """The packages of an extra that are absent, and those of a version that does not fit."""
    absent, unfit = [], []
    for wanted in map(Requirement, requires("tamis") or ()):
        of_library = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        of_extra = wanted.marker is not None and wanted.marker.evaluate({"extra": extra})
        if not (of_extra and not of_library if extra else of_library):
            continue
        try:
            there = version(wanted.name)
        except PackageNotFoundError:
            absent.append(wanted.name)
            continue
        if not wanted.specifier.contains(there, prereleases=True):
            unfit.append(f"{wanted.name} {there} (wanted {wanted.specifier})")
    return absent, unfit


def check_java() -> Iterator[Finding]:
    """Which Java Spark would run on; nothing where Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        return
    from tamis.spark.java import find_java, home_for_spark

    try:
        java = find_java()
        home = home_for_spark(java)
    except MissingExtra as error:
        yield Finding("Java", "wrong", "none that Spark can use", str(error))
        return
    yield Finding("Java", "ok", f"{java.version} from {java.origin} ({home})")


def check_spark() -> Iterator[Finding]:
    """Whether Spark starts, and a Python worker of it can import Tamis."""
    from tamis.spark.runtime import session

    since = time.monotonic()
    try:
        spark = session("tamis doctor", **{"spark.master": "local[1]"})
        try:
            spark.range(1).mapInArrow(_as_they_are, "id long").count()
            found = f"{spark.version} starts, in {time.monotonic() - since:.0f} s"
        finally:
            spark.stop()
    except MissingExtra:
        raise
    except Exception as error:  # Spark has many ways not to start
        said = next((line for line in str(error).splitlines() if line.strip()), repr(error))
        yield Finding(
            "Spark", "wrong", f"it does not start: {said}",
            "What Java wrote to stderr says more; python -m tamis.spark tells which Java it is.",
        )  # fmt: skip
        return
    yield Finding("Spark", "ok", found)


def _as_they_are(batches: Any) -> Any:
    return batches


def check_kernels() -> Iterator[Finding]:
    """Whether kernels are compiled already, and since when."""
    from tamis.kernels.compiled import IS_COMPILED, cache_directory

    folder = cache_directory()
    if not IS_COMPILED:
        yield Finding(
            "kernels", "note", "the compiler is off: matching takes a hundred times as long",
            "Unset NUMBA_DISABLE_JIT.",
        )  # fmt: skip
        return
    files = [file for file in folder.glob("**/*") if file.is_file()]
    if not files:
        yield Finding(
            "kernels", "note", f"none is compiled yet in {folder}",
            "Nothing: the first use compiles them, which takes up to a minute.",
        )  # fmt: skip
        return
    newest = max(file.stat().st_mtime for file in files)
    size = sum(file.stat().st_size for file in files)
    found = f"compiled, the last {_ago(time.time() - newest)} ago; {size / 1e6:.0f} MB in {folder}"
    yield Finding("kernels", "ok", found)


def _ago(seconds: float) -> str:
    """How long ago, in the largest unit there is at least one of.

    >>> _ago(3 * 86_400 + 5), _ago(90), _ago(0.2)
    ('3 d', '1 min', '0 s')
    """
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


def check_tools() -> Iterator[Finding]:
    """What the tests of a clone can do without: a browser, Maven and the jars for Kafka."""
    scripts = Path(__file__).resolve().parents[4] / "scripts"
    if not (scripts / "browser.py").is_file():  # no clone
        return
    browser = _load(scripts / "browser.py")
    try:
        found = browser.find()
    except browser.BrowserError as error:
        yield Finding("browser", "note", str(error))
    else:
        yield Finding("browser", "ok", found) if found else Finding(
            "browser", "note", "no Chromium or Chrome is on PATH",
            "make browser installs one. Without it the tests of the page are skipped.",
        )  # fmt: skip
    yield _check_kafka()


def _check_kafka() -> Finding:
    from tamis.spark.kafka import connector_settings

    try:
        connector_settings()
        return Finding("Kafka", "ok", "Spark's connector is there")
    except MissingExtra:
        pass
    if shutil.which("mvn"):
        return Finding("Kafka", "note", "Spark's connector is not there", "make kafka fetches it.")
    return Finding(
        "Kafka", "note", "Spark's connector is not there, and no mvn to fetch it with",
        "Install Maven (on Debian and Ubuntu: apt-get install maven), then: make kafka.",
    )  # fmt: skip


def _load(path: Path) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
