"""Tamis: content-based publish/subscribe for Python and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    # Names load when first used, so that `tamis --help` need not wait for Arrow and sqlglot.
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            held = globals()[name] = getattr(import_module(module), name)
            return held
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
