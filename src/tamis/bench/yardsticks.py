"""What else could do the work, one event at a time: NumPy, and an R-tree with a recheck."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.bench.extras import extra
from tamis.bench.scan import Rows, closed_bounds, keep_exact, known
from tamis.bench.workloads import Floats, Workload

OUTSIDE = 2.0  # every value and bound of the workloads lies in [0, 1]


class NumpyScan:
    """Plain NumPy: the rows that one attribute leaves are looked at for the next."""

    def __init__(self, workload: Workload) -> None:
        low, high = closed_bounds(workload)
        self._low, self._high = np.ascontiguousarray(low.T), np.ascontiguousarray(high.T)

    def match(self, event: Floats) -> Rows:
        """The rows that accept the event, ascending."""
        values = known(event)
        low, high = self._low[0], self._high[0]
        rows = np.flatnonzero((low <= values[0]) & (values[0] <= high))
        for m in range(1, len(values)):
            if not len(rows):
                break
            low, high = self._low[m, rows], self._high[m, rows]
            rows = rows[(low <= values[m]) & (values[m] <= high)]
        return rows.astype(np.int32)


class RTree:
    """The R*-tree of PyPI's ``rtree`` on the two most selective attributes, then a recheck."""

    def __init__(self, workload: Workload) -> None:
        index = extra("rtree.index")
        self.attributes = most_selective(workload, 2)
        self._bounds = closed_bounds(workload)
        low, high = (bounds[:, self.attributes] for bounds in self._bounds)
        low, high = np.maximum(low, -OUTSIDE), np.minimum(high, OUTSIDE)
        self._tree = index.Index((np.arange(len(low)), low, high))

    def match(self, event: Floats) -> Rows:
        """The rows that accept the event, ascending."""
        place = np.maximum(known(event[self.attributes]), -OUTSIDE)[None, :]
        candidates, _ = self._tree.intersection_v(place, place)
        rows = np.sort(candidates).astype(np.int32)
        n_kept = keep_exact(self._bounds, event, rows, len(rows))
        return rows[:n_kept]


def most_selective(workload: Workload, n: int) -> npt.NDArray[np.intp]:
    """The attributes whose predicates accept the smallest share of values."""
    width = np.where(np.isnan(workload.low), 1.0, workload.high - workload.low)
    return np.argsort(width.mean(axis=0), kind="stable")[:n]
