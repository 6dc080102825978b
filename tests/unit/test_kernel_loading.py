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
from tamis.kernels.emit import emit_plain
from tamis.kernels.loading import load_kernels
n_loaded, again = load_kernels(), load_kernels()
loaded = len(emit_plain.overloads)
index = Index()
index.add(Subscription("s", "x < 1"))
found = index.match({"x": 0})
hits, misses = emit_plain.stats.cache_hits, emit_plain.stats.cache_misses
print(json.dumps([n_loaded == again, loaded, sum(hits.values()), len(misses), found]))
"""


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_what_is_on_the_disk_is_loaded() -> None:
    index = Index()
    index.add(Subscription("s", "x < 1"))
    assert index.match({"x": 0}) == ["s"]  # its kernels are on the disk from here on
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    is_same, loaded, hits, misses, found = json.loads(done.stdout)
    assert is_same
    assert (hits, misses) == (loaded, 0)  # the match had no need to look on the disk
    assert loaded > 0
    assert found == ["s"]
