"""Tamis: content-based publish/subscribe for Python and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from tamis.index import Index, MatchSet
    from tamis.language import Filter, col, evaluate, explain, parse_filter
    from tamis.model import Event, Point, Polygon, Range, Schema, Subscription

__all__ = [
    "Event",
    "Filter",
    "Index",
    "MatchSet",
    "Point",
    "Polygon",
    "Range",
    "Schema",
    "Subscription",
    "col",
    "evaluate",
    "explain",
    "parse_filter",
]

_HOMES = {
    "tamis.index": ("Index", "MatchSet"),
    "tamis.language": ("Filter", "col", "evaluate", "explain", "parse_filter"),
    "tamis.model": ("Event", "Point", "Polygon", "Range", "Schema", "Subscription"),
}

# `tamis --help` need not wait for Arrow and sqlglot.
__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
