"""The yardsticks equal plain NumPy, also where float32 is too coarse."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from tamis.bench.joins import DuckdbJoin, PolarsJoin
from tamis.bench.scan import Scan, numpy_rows
from tamis.bench.workloads import FULL_SIZES, Workload, make
from tamis.bench.yardsticks import NumpyScan, RTree
from tamis.errors import MissingExtra

N_EVENTS = 20


@pytest.fixture(scope="module", params=FULL_SIZES)
def workload(request: pytest.FixtureRequest) -> Workload:
    return make(request.param, 0.003, n_events=N_EVENTS)


def test_scan_equals_numpy(workload: Workload) -> None:
    scan = Scan(workload)
    for event in range(N_EVENTS):
        assert np.array_equal(scan.match(workload.values[event]), numpy_rows(workload, event))


def on_the_borders() -> Workload:
    """Events on the bounds, and bounds that differ by less than a float32 can tell."""
    made = make("W1", 0.0005, n_events=100)
    values = made.values.copy()
    values[:] = made.low[:100]
    high = made.high.copy()
    high[100:200] = np.nextafter(made.low[:100], 1.0)
    low = made.low.copy()
    low[100:200] = np.nextafter(made.low[:100], 0.0)
    low[200:300] = np.nextafter(made.low[:100], 1.0)
    high[200:300] = 1.0
    low[300:400], high[300:400] = made.low[:100], made.low[:100]
    return dataclasses.replace(made, low=low, high=high, values=values)


def test_exact_where_float32_is_not() -> None:
    workload = on_the_borders()
    scan, numpy_scan = Scan(workload), NumpyScan(workload)
    found = 0
    for event in range(workload.n_events):
        expected = numpy_rows(workload, event)
        assert np.array_equal(scan.match(workload.values[event]), expected)
        assert np.array_equal(numpy_scan.match(workload.values[event]), expected)
        assert 100 + event in expected or workload.low_open[100 + event].any()
        assert 200 + event not in expected
        found += len(expected)
    assert found > 0


@pytest.mark.parametrize("make_it", [NumpyScan, RTree])
def test_one_event_at_a_time(workload: Workload, make_it: type) -> None:
    if make_it is RTree:
        pytest.importorskip("rtree")
    matcher = make_it(workload)
    for event in range(N_EVENTS):
        assert np.array_equal(matcher.match(workload.values[event]), numpy_rows(workload, event))


@pytest.mark.parametrize(("make_it", "module"), [(DuckdbJoin, "duckdb"), (PolarsJoin, "polars")])
def test_joins(make_it: type, module: str) -> None:
    pytest.importorskip(module)
    for name in FULL_SIZES:
        workload = make(name, 0.001, n_events=N_EVENTS)
        database = make_it(workload)
        database.prepare(workload.values)
        expected = [len(numpy_rows(workload, event)) for event in range(N_EVENTS)]
        assert database.join().tolist() == expected


def test_missing_extra_names_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"pip install tamis\[bench\]"):
        DuckdbJoin(make("W1", 0.001, n_events=1))
