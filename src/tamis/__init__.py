"""Tamis: content-based publish/subscribe for Python and Spark."""

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
