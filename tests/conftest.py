"""What all tests share: their order, Java's options, one deterministic Hypothesis profile."""

from __future__ import annotations

import gc
import os
import sys
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
if str(TESTS.parent) not in sys.path:  # so that `from tests.property.strategies import …` works
    sys.path.insert(0, str(TESTS.parent))

# Most Java processes of tests end soon after they have started: its second compiler and its
# parallel collector cost more than they bring.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.register_profile(
    "tamis",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("tamis-long", settings.get_profile("tamis"), max_examples=5_000)
settings.load_profile("tamis")


@pytest.fixture(autouse=True)
def no_collecting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks collect garbage before they time anything: 0.1 s, a hundred times in a test."""
    if request.path.name.startswith(("test_bench", "test_reproduce")):
        monkeypatch.setattr(gc, "collect", lambda *_: 0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the slow files, those that start Spark first.

    Files are dealt out to processes in this order. Each has one or two tests of a minute: dealt out
    last, one process would still be at them when the other has nothing left to do.
    """
    files = [list(held) for _, held in groupby(items, lambda item: item.path)]
    items[:] = [item for held in sorted(files, key=_turn) for item in held]


def _turn(file: list[pytest.Item]) -> int:
    """When a file is due; those with the same turn stay as they are."""
    slow = (TESTS / "integration", TESTS / "browser")
    if not any(file[0].path.is_relative_to(folder) for folder in slow):
        return 0
    return 1 if any(item.get_closest_marker("spark") for item in file) else 2
