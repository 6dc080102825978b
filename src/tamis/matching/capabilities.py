"""Capabilities: what an algorithm declares it can do. They are read, never probed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag

from tamis.kernels import constraints as bits


class Kinds(Flag):
    """Kinds of constraints, subscriptions and events.

    >>> Kinds.POINT in Kinds.INTERVALS
    True
    """

    RANGE = bits.RANGE
    """An interval with two bounds."""
    OPEN = bits.OPEN
    """An end that is itself outside."""
    ONE_SIDED = bits.ONE_SIDED
    """A bound on one side only, or none: any value will do."""
    POINT = bits.POINT
    """One value: equality."""
    NOT_EQUAL = bits.NOT_EQUAL
    """Every value but one."""
    TEXT = 32
    """Texts: equality and, with NOT_EQUAL, inequality."""
    PARTIAL = 64
    """A subscription that leaves some attributes free."""
    MISSING = 128
    """An event that lacks some attributes."""

    INTERVALS = RANGE | OPEN | ONE_SIDED | POINT
    ALL = INTERVALS | NOT_EQUAL | TEXT | PARTIAL | MISSING


class Order(Enum):
    """The order of the ids found for one event."""

    ASCENDING = "ascending"
    PRIORITY = "priority"
    """Highest priority (0) first; the algorithm says what decides inside a level."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an algorithm accepts and promises.

    ``is_exact``: finds the subscriptions that match and no other; without it a superset.
    ``can_remove``: subscriptions can be removed.
    ``matches_subscriptions``: holds events too and finds those a subscription accepts
    (``EventMatcher``).
    """

    kinds: Kinds = Kinds.ALL
    is_exact: bool = True
    can_remove: bool = True
    order: Order = Order.ASCENDING
    matches_subscriptions: bool = False
