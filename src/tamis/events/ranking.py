"""Ranking: found events in the order that was asked for, as ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidSubscription, InvalidValue
from tamis.events.part import Part, Rows
from tamis.model import Subscription
from tamis.values import Point, distance_m

ORDERS = ("newest", "nearest")

Found = Sequence[tuple[Part, Rows]]


def check_limit(limit: object) -> None:
    """Raise InvalidValue unless the limit is a whole number from 0."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise InvalidValue(f"limit {limit!r}; expected a whole number, 0 or more")


def ranked(found: Found, subscription: Subscription, order: str, limit: int | None) -> list[str]:
    """The ids of what was found, the first ``limit`` of them."""
    if order == "nearest" and subscription.location is None:
        raise InvalidSubscription(
            f"subscription {subscription.id!r} has no location to be near to; give it one, or "
            "take the newest first"
        )
    some = [(part, rows) for part, rows in found if len(rows)]
    if not some:
        return []
    keys: list[npt.NDArray[Any]] = [
        _joined([part.sequence[rows] for part, rows in some]),
        _joined([part.moment[rows] for part, rows in some]),
    ]
    if order == "nearest":
        assert subscription.location is not None
        keys.append(-_distances(some, subscription.location))
    return _ids(some, np.lexsort(keys)[::-1][:limit])


def _joined(arrays: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _distances(found: Found, center: Point) -> npt.NDArray[np.float64]:
    """How far the nearest place of each event is; a subscription with a location asks for one."""
    return np.array(
        [
            min(distance_m(center, one) for one in held if isinstance(one, Point) and one.is_place)
            for part, rows in found
            for held in part.places(rows)
        ]
    )


def _ids(found: Found, chosen: npt.NDArray[np.intp]) -> list[str]:
    if len(found) == 1:
        ((part, rows),) = found
        return list(part.ids_of(rows[chosen]))
    if len(chosen) == sum(len(rows) for _, rows in found):
        ids = [id for part, rows in found for id in part.ids_of(rows)]
        return [ids[i] for i in chosen.tolist()]
    made, first = [""] * len(chosen), 0
    for part, rows in found:
        own = np.flatnonzero((chosen >= first) & (chosen < first + len(rows)))
        for i, id in zip(own.tolist(), part.ids_of(rows[chosen[own] - first]), strict=True):
            made[i] = id
        first += len(rows)
    return made
