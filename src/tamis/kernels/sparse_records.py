"""Records: what decides about a candidate of a sparse part, in two steps.

Its *test* holds two constraints at the precision of a few bits of mass, four bytes in all. Its
*record* holds its slot and up to MAX_RECORD constraints as codes; only where a code ties, the
exact bounds are read. A constraint is axis, low and width (high - low) in one number, so that
one comparison of x - low, without sign, tells whether x is inside. Axis M always holds, axis
M + 1 always ties: it stands for more constraints than a record has room for.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.sparse_axes import axis_bits, code_bits
from tamis.kernels.sparse_groups import N_BUCKETS, POINT
from tamis.kernels.sparse_lines import axis_of_key

MAX_RECORD = 8


def test_layout(n_axes):
    """Bits of an axis, bits of a bound, and shift of the second constraint in a test.

    There is but one constraint (shift 0) where axes would leave a bound less than three bits.
    """
    bits = n_axes.bit_length()
    return (bits, (16 - bits) // 2, 16) if bits <= 10 else (16, 8, 0)


def record_layout(n_axes):
    """Bits of an axis and of a code in a record."""
    return axis_bits(n_axes), code_bits(n_axes)


@kernel
def write_tests(bounds, slot_of_place, lead, lines, n_axes, layout, test):
    """Write test: u4[N]: for each place the constraints that say most after group and lines.

    Masses are cut to the bits of the layout. O(K).
    """
    start, axis, mass = bounds.start, bounds.axis, bounds.mass
    low_at, bits, second = layout
    for place in range(slot_of_place.size):
        slot = slot_of_place[place]
        one, two, v_one, v_two = -1, -1, 1e30, 1e30
        for q in range(start[slot], start[slot + 1]):
            k = bounds.order[q]
            if lead[slot, 0] == POINT and lead[slot, 1] == k:
                continue
            v = bounds.share[k] + 1.0 / (1 << bits)
            if lead[slot, 0] > POINT:
                if k == lead[slot, 1]:
                    v = v / 2 * (1 << lead[slot, 3])
                elif k == lead[slot, 2]:
                    v = v / 2 * (1 << lead[slot, 4])
            for x in range(3):
                if axis_of_key(lines[slot], x) == axis[k]:
                    v = v / (v + 1.0 / N_BUCKETS)
            if v < v_one:
                one, two, v_one, v_two = k, one, v, v_one
            elif v < v_two:
                two, v_two = k, v
        packed = 0
        for x in range(2):
            k = one if x else two
            a, low, width = n_axes, 0, (1 << bits) - 1
            if k >= 0:
                a, low = np.int64(axis[k]), np.int64(mass[k, 0]) >> (16 - bits)
                width = (np.int64(mass[k, 1]) >> (16 - bits)) - low
            item = a | low << low_at | width << (low_at + bits)
            packed = packed << second | item if second else item
        test[place] = packed


@kernel
def write_records(bounds, slot_of_place, lead, n_axes, layout, record):
    """Write record: u4[N, 1 + R]: slot, then R constraints. O(K).

    A point that leads has been compared already.
    """
    start, axis, code = bounds.start, bounds.axis, bounds.code
    low_at, bits = layout
    n_fields = record.shape[1]
    anything = ((1 << bits) - 1) << (low_at + bits)
    for place in range(slot_of_place.size):
        slot = slot_of_place[place]
        record[place] = 0
        if slot < 0:  # nobody
            continue
        record[place, 0] = slot
        x = 1
        for q in range(start[slot], start[slot + 1]):
            k = bounds.order[q]
            if lead[slot, 0] == POINT and lead[slot, 1] == k:
                continue
            if x == n_fields:
                record[place, x - 1] = (n_axes + 1) | anything
                break
            low = np.int64(code[k, 0])
            width = np.int64(code[k, 1]) - low
            record[place, x] = axis[k] | low << low_at | width << (low_at + bits)
            x += 1
        while x < n_fields:
            record[place, x] = n_axes | anything
            x += 1


def build_records(bounds, slot_of_place, n_tested, lead, lines, n_axes):
    """The test of the first places, and the record of all."""
    n = len(slot_of_place)
    n_constraints = int(np.diff(bounds.start).max(initial=0))
    test = np.empty(n_tested, np.uint32)
    record = np.empty((n, 1 + min(MAX_RECORD, max(1, n_constraints))), np.uint32)
    write_tests(bounds, slot_of_place[:n_tested], lead, lines, n_axes, test_layout(n_axes), test)
    write_records(bounds, slot_of_place, lead, n_axes, record_layout(n_axes), record)
    return test, record
