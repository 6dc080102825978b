"""Boxes: many subscriptions at once as arrays of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import DuplicateSubscription, InvalidSubscription, quoted
from tamis.index.archive import Archive, BoxBase
from tamis.index.building import build_box_blocks
from tamis.index.compaction import Parts
from tamis.index.rows import Rows
from tamis.kernels.scan import Boxes, Constraints
from tamis.kernels.sharing import RawBoxes, lead_boxes
from tamis.model.subscription import DEFAULT_PRIORITY, LOWEST_PRIORITY
from tamis.slots.columns import Columns
from tamis.slots.lanes import NUMBER
from tamis.slots.texts import Counted, Stored, Texts

_EXACT = 2**53
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class CheckedBoxes(NamedTuple):
    """N boxes: their ids and priorities, and of the P different ones the bounds.

    ``leader``: i4[N], of the boxes equal to this one the first of the highest priority; the
    bounds are those of the leaders, in their order. ``opened``: which of them were open.
    """

    bounds: Constraints | Boxes
    opened: npt.NDArray[np.uint8]
    ids: Counted | Stored
    priority: npt.NDArray[np.uint8]
    leader: npt.NDArray[np.int32]


def parts_of_boxes(
    attributes: Sequence[str],
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    ids: Sequence[str] | None,
    low_open: npt.ArrayLike | None,
    high_open: npt.ArrayLike | None,
    priority: npt.ArrayLike | None,
) -> Parts:
    """The parts of an index of boxes; those that are equal share slots."""
    names = list(attributes)
    is_named = all(isinstance(name, str) and name for name in names)
    if isinstance(attributes, str) or not is_named or len(set(names)) < len(names):
        raise InvalidSubscription(
            f"{quoted(attributes)} is not a list of different attribute names"
        )
    boxes = check_boxes(len(names), low, high, ids, low_open, high_open, priority)
    columns = Columns()
    for name in names:
        columns.column(name, NUMBER)
    rows = Rows.of_priorities(boxes.priority, boxes.leader)
    base = BoxBase(tuple(names), boxes.bounds, boxes.opened)
    if rows.n_followers:
        leaders, places = np.unique(boxes.leader, return_inverse=True)
        archive = Archive([base], places.astype(np.int32))
        blocks = build_box_blocks(boxes.bounds, leaders)
    else:
        archive, blocks = Archive([base]), build_box_blocks(boxes.bounds)
    return Parts(columns, rows, blocks, Texts(boxes.ids), archive)


def check_boxes(
    n_attributes: int,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    ids: Sequence[str] | None,
    low_open: npt.ArrayLike | None,
    high_open: npt.ArrayLike | None,
    priority: npt.ArrayLike | None,
) -> CheckedBoxes:
    """Check everything, and turn open ends into closed ones: the next float64 further in."""
    lows, highs, low_opened, high_opened = _arrays(n_attributes, low, high, low_open, high_open)
    n_boxes = len(lows)
    is_free = np.isnan(lows) & np.isnan(highs)
    low_opened, high_opened = low_opened & ~np.isnan(lows), high_opened & ~np.isnan(highs)
    if (low_opened & (lows == np.inf)).any() or (high_opened & (highs == -np.inf)).any():
        raise InvalidSubscription("a box open at its far infinity holds nothing; leave it out")
    np.copyto(lows, -np.inf, where=np.isnan(lows))
    np.copyto(highs, np.inf, where=np.isnan(highs))
    with np.errstate(over="ignore"):  # the float64 after the largest is infinity
        np.nextafter(lows, np.inf, out=lows, where=low_opened)
        np.nextafter(highs, -np.inf, out=highs, where=high_opened)
    checked_ids, levels = _check_ids(ids, n_boxes), _check_priority(priority, n_boxes)
    leader, n_led = _lead(lows, highs, (low_opened, high_opened, is_free), levels)
    if n_led:
        leads = leader == np.arange(n_boxes)
        lows, highs, is_free = lows[leads], highs[leads], is_free[leads]
        low_opened, high_opened = low_opened[leads], high_opened[leads]
    return CheckedBoxes(
        _bounds(lows, highs, is_free),
        _pack(low_opened, high_opened, ~is_free),
        checked_ids,
        levels,
        leader,
    )


def _arrays(
    n_attributes: int,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    low_open: npt.ArrayLike | None,
    high_open: npt.ArrayLike | None,
) -> tuple[Floats, Floats, Flags, Flags]:
    """The bounds and which of them are open, as arrays of the same shape."""
    try:
        lows, highs = (np.array(bounds, np.float64, order="C") for bounds in (low, high))
    except (TypeError, ValueError) as error:
        raise InvalidSubscription(f"the bounds are not arrays of numbers: {error}") from None
    for bounds in (low, high):
        raw = np.asarray(bounds)
        if raw.dtype.kind in "iu" and raw.size and not _EXACT >= raw.max() >= raw.min() >= -_EXACT:
            raise InvalidSubscription(
                "integer bounds beyond 2^53 are not exact; add them as filters"
            )
    shape = (lows.shape[0] if lows.ndim == 2 else -1, n_attributes)
    low_opened, high_opened = _flags(low_open, shape), _flags(high_open, shape)
    given = {"low": lows, "high": highs, "low_open": low_opened, "high_open": high_opened}
    for name, array in given.items():
        if array.shape != shape:
            raise InvalidSubscription(
                f"{name} has shape {array.shape}; expected (N, {n_attributes}), a column an "
                "attribute, the same N for all"
            )
    return lows, highs, low_opened, high_opened


def _lead(
    lows: Floats, highs: Floats, flags: tuple[Flags, ...], priority: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int32], int]:
    """The leader of every box, and how many are led by another."""
    n_boxes = len(lows)
    leader = np.empty(n_boxes, np.int32)
    form = np.zeros(lows.shape, np.uint8)
    for bit, flag in enumerate(flags):
        form |= flag.view(np.uint8) << np.uint8(bit)
    table = np.zeros(1 << (n_boxes + 1).bit_length() + 1, np.int32)
    boxes = RawBoxes(lows.view(np.uint64), highs.view(np.uint64), form)
    return leader, int(lead_boxes(boxes, priority, np.empty(n_boxes, np.uint64), table, leader))


def _flags(given: npt.ArrayLike | None, shape: tuple[int, int]) -> Flags:
    if given is None:
        return np.zeros((max(0, shape[0]), shape[1]), np.bool_)
    return np.asarray(given, np.bool_)


def _bounds(low: Floats, high: Floats, is_free: Flags) -> Constraints | Boxes:
    if not is_free.any():
        columns = np.arange(low.shape[1], dtype=np.int32)
        return Boxes(columns, np.stack([low, high], axis=2))
    kept = ~is_free
    start = np.zeros(len(low) + 1, np.int64)
    np.cumsum(kept.sum(axis=1), out=start[1:])
    return Constraints(start, np.nonzero(kept)[1].astype(np.int32), low[kept], high[kept])


def _pack(low_opened: Flags, high_opened: Flags, kept: Flags) -> npt.NDArray[np.uint8]:
    if not low_opened.any() and not high_opened.any():
        return np.zeros(0, np.uint8)
    return np.packbits(np.stack([low_opened[kept], high_opened[kept]], axis=1).ravel())


def _check_ids(ids: Sequence[str] | None, n_boxes: int) -> Counted | Stored:
    if ids is None:
        return Counted(n_boxes)
    if len(ids) != n_boxes:
        raise InvalidSubscription(f"{len(ids)} ids for {n_boxes} boxes; expected one each")
    if any(not isinstance(id, str) or not id for id in ids):
        raise InvalidSubscription("an id is not a non-empty text; every subscription needs one")
    try:
        return Stored.of(ids)
    except UnicodeEncodeError as error:
        raise InvalidSubscription(f"an id is not valid Unicode: {error}") from None
    except ValueError as error:
        raise DuplicateSubscription(f"the id {quoted(str(error))} is given twice") from None


def _check_priority(priority: npt.ArrayLike | None, n_boxes: int) -> npt.NDArray[np.uint8]:
    if priority is None:
        return np.full(n_boxes, DEFAULT_PRIORITY, np.uint8)
    levels = np.asarray(priority)
    if levels.shape != (n_boxes,) or levels.dtype.kind not in "iu":
        raise InvalidSubscription(
            f"priority has shape {levels.shape} and type {levels.dtype}; expected a whole number "
            f"for each of {n_boxes} boxes"
        )
    if n_boxes and (levels.min() < 0 or levels.max() > LOWEST_PRIORITY):
        raise InvalidSubscription(
            f"priorities from {levels.min()} to {levels.max()}; expected 0 (highest) to "
            f"{LOWEST_PRIORITY}"
        )
    return levels.astype(np.uint8)
