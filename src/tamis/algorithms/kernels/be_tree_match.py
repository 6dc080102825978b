"""BE-Tree: the nodes an event visits."""

from __future__ import annotations

import numpy as np

from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import kernel
from tamis.kernels.constraints import accepts


@kernel
def visit(tree, stored, domains, event, n_cells, n_waiting, max_nodes, out, n_out):
    """Visit at most max_nodes nodes; append the slots that accept the event to out[:n_out].

    The nodes still to be visited are tree.waiting[:n_waiting]. Of a part whose attribute the
    event has, these are the nodes whose range holds the value. Returns the new n_waiting and
    n_out. O(nodes + constraints looked at).
    """
    while n_waiting > 0 and max_nodes > 0:
        max_nodes -= 1
        n_waiting -= 1
        node = tree.waiting[n_waiting]
        slot = tree.head[node]
        while slot >= 0:
            if accepts(stored, slot, event):
                out[n_out] = slot
                n_out += 1
            slot = tree.after[slot]
        part = tree.parts[node]
        while part >= 0:
            value = event[tree.attribute[part]]
            if not np.isnan(value):
                cell = cell_of(domains, tree.attribute[part], value, n_cells)
                below = tree.top[part]
                while below >= 0:
                    tree.waiting[n_waiting] = below
                    n_waiting += 1
                    middle = (tree.first[below] + tree.last[below]) // 2
                    below = tree.halves[below, 0 if cell <= middle else 1]
            part = tree.sibling[part]
    return n_waiting, n_out
