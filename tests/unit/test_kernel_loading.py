"""Kernels that were compiled before are loaded ahead of their first call, and none is compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tamis import Index, Subscription
from tamis.index import first_use
from tamis.kernels.compiled import IS_COMPILED

# What a new process has of the kernel that every match ends with, before and after a match.
LOAD = """
import json
from tamis import Index, Subscription
from tamis.kernels.settling import settle_one
from tamis.kernels.loading import load_kernels
n_loaded, again = load_kernels(), load_kernels()
loaded = len(settle_one.overloads)
index = Index()
index.add(Subscription("s", "x < 1"))
found = index.match({"x": 0})
hits, misses = settle_one.stats.cache_hits, settle_one.stats.cache_misses
print(json.dumps([n_loaded, again, loaded, sum(hits.values()), len(misses), found]))
"""


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_what_is_on_the_disk_is_loaded() -> None:
    index = Index()
    index.add(Subscription("s", "x < 1"))
    assert index.match({"x": 0}) == ["s"]  # its kernels are on the disk from here on
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    n_loaded, again, loaded, hits, misses, found = json.loads(done.stdout)
    assert again >= n_loaded > 0  # more if another process has compiled something meanwhile
    assert (hits, misses) == (loaded, 0)  # the match had no need to look on the disk
    assert loaded > 0
    assert found == ["s"]


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_kernels_are_used_once_for_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "cache_directory", lambda: tmp_path)
    used: list[int] = []
    monkeypatch.setattr(first_use, "_use", lambda given: iter([used.append(len(given))]))
    steps = first_use.use_kernels()
    next(steps)
    assert not list(tmp_path.iterdir())  # whoever stops has not done it
    assert len([*first_use.use_kernels()]) == 2
    assert len(used) == 3
    assert [*first_use.use_kernels()] == []
    monkeypatch.setattr(first_use, "name_of_processor", lambda: "another")
    assert len([*first_use.use_kernels()]) == 2
