"""SlotTable: many slots as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.scan import Boxes, Constraints
from tamis.kernels.tests import FIRST_WITH_LIST, NEGATED, NO_TESTS, Tests
from tamis.slots.slots import Slot

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
            tests._replace(
                start=_starts(np.diff(tests.start)[wanted]),
                operation=tests.operation[kept_tests],
                column=tests.column[kept_tests],
                low=tests.low[kept_tests],
                high=tests.high[kept_tests],
            ),
            self.row_of_slot[wanted],
        )


def tests_of(slots: Sequence[Slot]) -> Tests:
    """The tests of slots as arrays."""
    if not any(slot.tests for slot in slots):
        return no_tests(len(slots))
    tests = [test for slot in slots for test in slot.tests]
    lists = [one for slot in slots for one in slot.lists]
    made = Tests(
        _starts([len(slot.tests) for slot in slots]),
        np.array([test[0] for test in tests], np.uint8),
        np.array([test[1] for test in tests], np.int32),
        np.array([test[2] for test in tests], np.float64),
        np.array([test[3] for test in tests], np.float64),
        _starts([len(one) for one in lists], np.int64),
        np.array([number for one in lists for number in one], np.float64),
    )
    first = np.cumsum([0, *(len(slot.lists) for slot in slots)])[:-1]
    return _renumber(made, np.repeat(first, [len(slot.tests) for slot in slots]))


def _renumber(tests: Tests, first: Any) -> Tests:
    """The tests with their lists numbered from ``first``."""
    has_list = (tests.operation & ~np.uint8(NEGATED)) >= FIRST_WITH_LIST
    return tests._replace(low=np.where(has_list, tests.low + first, tests.low))


def concatenate(tables: Sequence[SlotTable]) -> SlotTable:
    """The slots of several tables in one."""
    n_lists = np.cumsum([0, *(len(table.tests.list_start) - 1 for table in tables)])
    parts = [_renumber(t.tests, first) for t, first in zip(tables, n_lists, strict=False)]
    tests = Tests(
        _starts(np.concatenate([np.diff(part.start) for part in parts])),
        np.concatenate([part.operation for part in parts]),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        _starts(np.concatenate([np.diff(part.list_start) for part in parts]), np.int64),
        np.concatenate([part.lists for part in parts]),
    )
    bounds = [table.constraints for table in tables]
    constraints = Constraints(
        _starts(np.concatenate([np.diff(one.start) for one in bounds]), np.int64),
        np.concatenate([one.column for one in bounds]),
        np.concatenate([one.low for one in bounds]),
        np.concatenate([one.high for one in bounds]),
    )
    return SlotTable(constraints, tests, np.concatenate([t.row_of_slot for t in tables]))


def _starts(lengths: Any, dtype: Any = np.int32) -> Any:
    starts = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=starts[1:])
    return starts


def no_tests(n_slots: int) -> Tests:
    """The tests of slots that have none."""
    return NO_TESTS._replace(start=np.zeros(n_slots + 1, np.int32))


def boxes_of_constraints(constraints: Constraints) -> Boxes:
    """Constraints of slots that all have the same columns, as boxes."""
    n_slots = len(constraints.start) - 1
    columns = np.sort(constraints.column[: constraints.start[1]])
    order = np.argsort(constraints.column.reshape(n_slots, -1), axis=1)
    sides = [
        np.take_along_axis(side.reshape(n_slots, -1), order, axis=1) for side in constraints[2:]
    ]
    return Boxes(columns, np.stack(sides, axis=2))


def constraints_of_boxes(boxes: Boxes) -> Constraints:
    """The same constraints, slot by slot."""
    n_slots, n_columns = boxes.bounds.shape[:2]
    return Constraints(
        np.arange(n_slots + 1, dtype=np.int64) * n_columns,
        np.tile(boxes.columns, n_slots),
        boxes.bounds[:, :, 0].ravel(),
        boxes.bounds[:, :, 1].ravel(),
    )
