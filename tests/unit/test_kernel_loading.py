"""Kernels that were compiled before are loaded ahead of their first call, and none is compiled."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tamis import Index, Subscription
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
