"""Rate caps: which notifications are told, which are held back, and the count of the latter.

A subscription with the cap "5 per hour" is told at most 5 notifications in each hour, counted from
1970 UTC by due time. What comes after them in that hour is held back: not told, but its matches are
counted, and the next notification of the subscription carries the count. If the whole window after
that one passes and nothing is told in it either, a *notice* does: a notification without matches,
due at the end of that window and counted there.

The ledger is what has to be remembered for this from one micro-batch to the next. A new ledger is a
function of the old one, of the notifications, and of the time up to which everything due is among
them, so that a replay decides the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.delivery.notification import NOTIFICATION_SCHEMA, notification_id
from tamis.delivery.settings import parse_settings

__all__ = ["LEDGER_SCHEMA", "apply_caps", "empty_ledger"]

LEDGER_SCHEMA = pa.schema(
    [
        ("subscription_id", pa.string()),
        ("owner", pa.string()),
        ("priority", pa.int8()),
        ("delivery", pa.string()),
        ("window_us", pa.int64()),  # where the window starts in which it was last told or held
        ("period_us", pa.int64()),
        ("told", pa.int64()),  # notifications told in that window
        ("held", pa.int64()),  # matches held back and not yet announced
    ]
)

_ABOUT = ["subscription_id", "owner", "priority", "delivery"]
_Numbers = npt.NDArray[np.int64]


class _Windows(NamedTuple):
    """Of each notification: where its window starts, how long it is, how many it allows."""

    start_us: _Numbers
    period_us: _Numbers
    allowed: _Numbers


def empty_ledger() -> pa.Table:
    """The ledger before anything was told."""
    return LEDGER_SCHEMA.empty_table()


def apply_caps(capped: pa.Table, ledger: pa.Table, now_us: int) -> tuple[pa.Table, pa.Table]:
    """Decide on the notifications of capped subscriptions.

    ``capped`` has the columns of an outbox (``matches`` may also be JSON text), and every row of it
    a rate cap. Requires that every notification due up to ``now_us``
    was given by now, and none later. Returns what is told, and the next ledger.
    """
    import pyarrow.compute as pc  # takes long, and who only reads settings does not need it

    rows = capped.sort_by([(name, "ascending") for name in ("subscription_id", "due", "part")])
    told, touched = _tell(rows, ledger) if rows.num_rows else (rows, empty_ledger())
    quiet = ledger.filter(
        pc.invert(pc.is_in(ledger["subscription_id"], touched["subscription_id"]))
    )
    noticed, kept = _settle(pa.concat_tables([quiet, touched]), now_us, capped.schema)
    return pa.concat_tables([told, noticed]), kept


def _tell(rows: pa.Table, ledger: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Tell what the caps allow; also the new ledger of the subscriptions in ``rows``."""
    import pyarrow.compute as pc

    ids = rows["subscription_id"].combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy()
    first = np.flatnonzero(np.diff(codes, prepend=-1))  # of each subscription
    last = np.append(first[1:], len(codes)) - 1
    windows = _windows_of(rows)
    at = pc.index_in(ids.take(pa.array(first)), ledger["subscription_id"].combine_chunks())
    old = ledger.take(at)

    is_known = _numbers(old, "period_us") > 0
    same = is_known & (_numbers(old, "window_us") == windows.start_us[first])
    same &= _numbers(old, "period_us") == windows.period_us[first]
    before = np.where(same, _numbers(old, "told"), 0)
    position = _position_in_window(codes, windows)
    in_first_window = _spread(windows.start_us[first], first, last) == windows.start_us
    in_first_window &= _spread(windows.period_us[first], first, last) == windows.period_us
    position += np.where(in_first_window, _spread(before, first, last), 0)
    is_told = position < windows.allowed

    sizes = _numbers(rows, "n_matches").astype(np.int64)
    held_back, held = _held_counts(is_told, sizes, codes, first, last, _numbers(old, "held"))
    told_in_last = np.minimum(position[last] + 1, windows.allowed[last])
    index = rows.schema.get_field_index("held_back")
    told = rows.set_column(index, NOTIFICATION_SCHEMA.field("held_back"), pa.array(held_back))
    newest = rows.select(_ABOUT).take(pa.array(last))
    numbers = [windows.start_us[last], windows.period_us[last], told_in_last, held]
    touched = pa.Table.from_arrays(
        [*newest.columns, *(pa.array(one, pa.int64()) for one in numbers)], schema=LEDGER_SCHEMA
    )
    return told.filter(pa.array(is_told)), touched


def _windows_of(rows: pa.Table) -> _Windows:
    coded = rows["delivery"].combine_chunks().dictionary_encode()
    caps = [parse_settings(text).rate_cap for text in coded.dictionary.to_pylist()]
    limits = np.array([(cap.count, cap.minutes) for cap in caps if cap], np.int64)
    allowed, minutes = limits[coded.indices.to_numpy()].T
    period = minutes * 60_000_000
    due = _microseconds(rows["due"])
    return _Windows(due // period * period, period, allowed)


def _position_in_window(codes: npt.NDArray[np.integer], windows: _Windows) -> _Numbers:
    """How many notifications of the same subscription and window come before each."""
    changes = np.diff(codes, prepend=-1) != 0
    changes |= np.diff(windows.start_us, prepend=-1) != 0
    changes |= np.diff(windows.period_us, prepend=-1) != 0
    starts = np.flatnonzero(changes)
    numbers = np.arange(len(codes))
    return numbers - _spread(starts, starts, np.append(starts[1:], len(codes)) - 1)


def _held_counts(
    is_told: npt.NDArray[np.bool_],
    sizes: _Numbers,
    codes: npt.NDArray[np.integer],
    first: _Numbers,
    last: _Numbers,
    held_before: _Numbers,
) -> tuple[_Numbers, _Numbers]:
    """What each told notification has to announce, and what each subscription still has to."""
    running = np.cumsum(np.where(is_told, 0, sizes))
    running -= _spread(running[first] - np.where(is_told[first], 0, sizes[first]), first, last)
    running += _spread(held_before, first, last)
    told_at = np.flatnonzero(is_told)
    follows = np.diff(codes[told_at], prepend=-1) == 0
    announced = np.zeros(len(codes), np.int64)
    announced[told_at] = running[told_at] - np.where(follows, np.roll(running[told_at], 1), 0)
    total = np.add.reduceat(announced, first)
    return announced, running[last] - total


def _settle(ledger: pa.Table, now_us: int, schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """Give notice of what nobody announced, and forget what no longer matters."""
    window, period = _numbers(ledger, "window_us"), _numbers(ledger, "period_us")
    held = _numbers(ledger, "held")
    next_end = window + 2 * period
    notified = (held > 0) & (next_end <= now_us)
    kept = (window + period > now_us) | ((held > 0) & ~notified)
    # Due in the last millisecond of the next window, so that it belongs to that one.
    noticed = _notices(ledger.filter(pa.array(notified)), next_end[notified] - 1_000, schema)
    return noticed, ledger.filter(pa.array(kept))


def _notices(entries: pa.Table, due_us: _Numbers, schema: pa.Schema) -> pa.Table:
    ids = entries["subscription_id"].to_pylist()
    n = len(ids)
    made = {
        "id": [notification_id(id, due, 0) for id, due in zip(ids, due_us.tolist(), strict=True)],
        "due": pa.array(due_us).cast(pa.timestamp("us", "UTC")),
        "part": [0] * n,
        "parts": [0] * n,
        "total": [0] * n,
        "n_matches": [0] * n,
        "held_back": entries["held"],
        "matches": ["[]" if pa.types.is_string(schema.field("matches").type) else []] * n,
        **{name: entries[name] for name in _ABOUT},
    }
    return pa.table([made[name] for name in schema.names], schema)


def _numbers(table: pa.Table, name: str) -> _Numbers:
    made: _Numbers = table[name].fill_null(0).to_numpy()
    return made


def _microseconds(times: pa.ChunkedArray) -> _Numbers:
    made: _Numbers = times.cast(pa.int64()).to_numpy()
    return made


def _spread(values: _Numbers, first: _Numbers, last: _Numbers) -> _Numbers:
    """One value a run becomes one value a row."""
    return np.repeat(values, last - first + 1)
