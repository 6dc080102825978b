"""Hints of movers 32 at a time: what one by one gives, whatever the processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tamis.index import Index
from tamis.kernels.compiled import kernel
from tamis.kernels.hint_vectors import HINT, LANES, TABLE, hints_hold, hints_hold_plainly
from tamis.kernels.memory import u2_at
from tamis.kernels.moving import N_CELLS, NO_COLUMN, NO_VALUE
from tamis.language import evaluate
from tamis.model import Subscription
from tamis.values import Point


@kernel
def _both(hints, rough, first):  # type: ignore[no-untyped-def]
    items, table = u2_at(hints), u2_at(rough)
    at_once = hints_hold(items, first, table)  # type: ignore[call-arg]
    return at_once, hints_hold_plainly(items, first, table)


@pytest.mark.parametrize("n_columns", [1, 2, 31, 32, 33, TABLE - 1, TABLE])
def test_32_at_a_time_hold_as_one_by_one(n_columns: int) -> None:
    random = np.random.default_rng(n_columns)
    n = 5 * LANES
    hints = np.empty((n, HINT), np.uint16)
    hints[:, 0] = random.integers(0, n_columns, n)
    hints[:, 1:] = np.sort(random.choice([0, 1, 32_767, 32_768, 40_000, 65_534], (n, 2)))
    always = random.random(n) < 0.1
    hints[always] = NO_COLUMN, 0, NO_VALUE
    rough = np.zeros(NO_COLUMN + 1, np.uint16)
    for _ in range(20):
        values = [0, 1, 32_767, 32_768, 39_999, 40_000, 40_001, 65_534, NO_VALUE]
        rough[:TABLE] = random.choice(values, TABLE)
        for first in range(0, n - LANES + 1, 5):
            at_once, plain = _both(hints.ctypes.data, rough.ctypes.data, np.uint64(first))
            assert at_once == plain
            wanted = rough[hints[first : first + LANES, 0]]
            low, high = hints[first : first + LANES, 1:].T
            holds = (low <= wanted) & (wanted <= high)
            assert plain == sum(1 << int(i) for i in np.nonzero(holds)[0])


@pytest.mark.parametrize("n_columns", [TABLE - 3, TABLE - 2, TABLE - 1, TABLE + 7])
def test_as_many_columns_as_fit_into_registers_and_more(tmp_path: Path, n_columns: int) -> None:
    """Beside those of the place, which has two."""
    random = np.random.default_rng(1)
    index, subscriptions = Index(), []
    for number in range(400):
        a, b = random.integers(0, n_columns, 2)
        low = random.integers(0, 4)
        filter = f"c{a} >= {low} AND c{b} <= {low + 3}" if number % 9 else "c0 IS NOT NULL"
        place = tuple((random.random(2) * 0.004).tolist())
        subscriptions.append(Subscription(f"s{number}", filter, location=place, radius_m=300.0))
    # All columns are there, also those that nobody near asks for.
    for column in range(n_columns):
        far = Subscription(f"far{column}", f"c{column} >= 0", location=(90.0, 45.0), radius_m=10.0)
        subscriptions.append(far)
    index.add_many(subscriptions)
    index.save(tmp_path / "saved")
    index = Index.open(tmp_path / "saved")  # now all of them are in the base, cell by cell
    assert index._engine.state.moving.handle[N_CELLS] > 0
    n_matches = 0
    for _ in range(40):
        event = {f"c{c}": float(random.integers(0, 6)) for c in range(n_columns)}
        event |= {"location": Point(*(random.random(2) * 0.004).tolist())}  # type: ignore[dict-item]
        wanted = {one.id for one in subscriptions if evaluate(one.condition, event)}
        assert set(index.match(event)) == wanted
        n_matches += len(wanted)
    assert n_matches > 100
