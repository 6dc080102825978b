"""SlotTable: many slots as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.slots import Slot
from tamis.kernels.scan import Boxes, Constraints
from tamis.kernels.tests import IN_SET, NEGATED, Tests

Bools = npt.NDArray[np.bool_]


class SlotTable(NamedTuple):
    """P slots, and the row each belongs to."""

    constraints: Constraints
    tests: Tests
    row_of_slot: npt.NDArray[np.int32]

    @property
    def n_slots(self) -> int:
        """How many slots there are."""
        return len(self.row_of_slot)

    def select(self, wanted: Bools) -> SlotTable:
        """The wanted slots, in their order."""
        if wanted.all():
            return self
        constraints, tests = self.constraints, self.tests
        kept = np.repeat(wanted, np.diff(constraints.start))
        kept_tests = np.repeat(wanted, np.diff(tests.start))
        return SlotTable(
            Constraints(
                _starts(np.diff(constraints.start)[wanted], np.int64),
                *(array[kept] for array in constraints[1:]),
            ),
            Tests(
                _starts(np.diff(tests.start)[wanted]),
                *(array[kept_tests] for array in tests[1:5]),
                tests.set_start,
                tests.set_values,
            ),
            self.row_of_slot[wanted],
        )


def tests_of(slots: Sequence[Slot]) -> Tests:
    """The tests of slots as arrays."""
    if not any(slot.tests for slot in slots):
        return no_tests(len(slots))
    tests = [test for slot in slots for test in slot.tests]
    sets = [one for slot in slots for one in slot.sets]
    first_set = np.cumsum([0, *(len(slot.sets) for slot in slots)])
    low = [
        test[2] + first_set[p] if test[0] & ~NEGATED == IN_SET else test[2]
        for p, slot in enumerate(slots)
        for test in slot.tests
    ]
    return Tests(
        _starts([len(slot.tests) for slot in slots]),
        np.array([test[0] for test in tests], np.uint8),
        np.array([test[1] for test in tests], np.int32),
        np.array(low, np.float64),
        np.array([test[3] for test in tests], np.float64),
        _starts([len(one) for one in sets]),
        np.array([code for one in sets for code in one], np.float64),
    )


def concatenate(tables: Sequence[SlotTable]) -> SlotTable:
    """The slots of several tables in one."""
    n_sets = np.cumsum([0, *(max(0, len(t.tests.set_start) - 1) for t in tables)])
    lows = []
    for table, shift in zip(tables, n_sets, strict=False):
        is_set = (table.tests.operation & ~np.uint8(NEGATED)) == IN_SET
        lows.append(table.tests.low + np.where(is_set, shift, 0))
    joined = Tests(
        _starts(np.concatenate([np.diff(t.tests.start) for t in tables])),
        np.concatenate([t.tests.operation for t in tables]),
        np.concatenate([t.tests.column for t in tables]),
        np.concatenate(lows),
        np.concatenate([t.tests.high for t in tables]),
        _starts(np.concatenate([np.diff(t.tests.set_start) for t in tables])),
        np.concatenate([t.tests.set_values for t in tables]),
    )
    return SlotTable(
        Constraints(
            _starts(np.concatenate([np.diff(t.constraints.start) for t in tables]), np.int64),
            *(np.concatenate([t.constraints[i] for t in tables]) for i in range(1, 4)),
        ),
        joined,
        np.concatenate([t.row_of_slot for t in tables]),
    )


def _starts(lengths: Any, dtype: Any = np.int32) -> Any:
    starts = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=starts[1:])
    return starts


def no_tests(n_slots: int) -> Tests:
    """The tests of slots that have none."""
    nothing = np.zeros(0, np.float64)
    return Tests(
        np.zeros(n_slots + 1, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int32),
        nothing, nothing, np.zeros(1, np.int32), nothing,
    )  # fmt: skip


def constraints_of_boxes(boxes: Boxes) -> Constraints:
    """The same constraints, slot by slot."""
    n_slots, n_columns = boxes.bounds.shape[:2]
    return Constraints(
        np.arange(n_slots + 1, dtype=np.int64) * n_columns,
        np.tile(boxes.columns, n_slots),
        boxes.bounds[:, :, 0].ravel(),
        boxes.bounds[:, :, 1].ravel(),
    )
