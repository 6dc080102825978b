"""Ranking: found events in the order that was asked for, as ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidSubscription, InvalidValue
from tamis.events.part import Part, Rows
from tamis.kernels.event_ranking import gather_keys, join_ids
from tamis.model import Subscription
from tamis.values import Point, distance_m

ORDERS = ("newest", "nearest")


def check_limit(limit: object) -> None:
    """Raise InvalidValue unless the limit is a whole number from 0."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise InvalidValue(f"limit {limit!r}; expected a whole number, 0 or more")


class _Found(NamedTuple):
    """Events of some parts, as ``kernels.event_ranking`` takes them."""

    where: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    rows: Rows


def ranked(
    found: Sequence[tuple[Part, Rows]], subscription: Subscription, order: str, limit: int | None
) -> list[str]:
    """The ids of what was found, the first ``limit`` of them."""
    if order == "nearest" and subscription.location is None:
        raise InvalidSubscription(
            f"subscription {subscription.id!r} has no location to be near to; give it one, or "
            "take the newest first"
        )
    some = [(part, rows) for part, rows in found if len(rows)]
    if not some:
        return []
    if len(some) == 1 and len(some[0][1]) == 1:
        return some[0][0].ids_of(some[0][1])[:limit]
    parts, rows = zip(*some, strict=True)
    events = _Found(
        np.concatenate([part.where for part in parts]),
        np.array(list(map(len, rows))),
        np.concatenate(rows),
    )
    keys = np.empty((2, len(events.rows)), np.int64)
    gather_keys(*events, keys)
    if order == "nearest":
        assert subscription.location is not None
        chosen = np.lexsort([*keys, -_distances(some, subscription.location)])
    else:
        chosen = np.lexsort(keys)
    return _ids(parts, events, chosen[::-1][:limit].copy())


def _distances(found: Sequence[tuple[Part, Rows]], center: Point) -> npt.NDArray[np.float64]:
    """How far the nearest place of each event is; a subscription with a location asks for one."""
    return np.array(
        [
            min(distance_m(center, one) for one in held if isinstance(one, Point) and one.is_place)
            for part, rows in found
            for held in part.places(rows)
        ]
    )


def _ids(parts: Sequence[Part], events: _Found, chosen: npt.NDArray[Any]) -> list[str]:
    """The ids of the chosen of some events, which are told apart by their positions."""
    ids: list[str] = join_ids(*events, chosen).tobytes().decode().split("\0")
    ids.pop()
    asked = [(p, part) for p, part in enumerate(parts) if not part.has_stored_ids]
    if len(ids) > len(chosen):  # an id has a zero in it
        asked, ids = list(enumerate(parts)), [""] * len(chosen)
    if asked:
        part_of = np.searchsorted(np.cumsum(events.counts), chosen, "right")
    for p, part in asked:
        own = np.flatnonzero(part_of == p)
        for i, id in zip(own.tolist(), part.ids_of(events.rows[chosen[own]]), strict=True):
            ids[i] = id
    return ids
