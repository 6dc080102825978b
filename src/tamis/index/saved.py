"""Saved: the subscriptions of rows, and what is asked of them where numbers do not decide."""

from __future__ import annotations

from tamis.index.archive import Archive
from tamis.index.engine import Engine
from tamis.index.outlines import Outline
from tamis.index.revision import Place
from tamis.language import Filter
from tamis.model import Subscription
from tamis.model.subscription import CIRCLE, SQUARE, area_around
from tamis.slots.columns import Columns
from tamis.slots.lanes import NUMBER
from tamis.slots.texts import Texts
from tamis.values import Point


class Saved:
    """What was saved as each row; those with an outline are made when they are asked for."""

    def __init__(self, engine: Engine, columns: Columns, ids: Texts, archive: Archive) -> None:
        self.engine, self.columns, self.ids, self.archive = engine, columns, ids, archive

    def subscription(self, row: int) -> Subscription:
        """The subscription of a row that lives, at the place where it is now."""
        held = self._held(row)
        if not isinstance(held, Outline):
            return held
        moving = self.engine.moving
        assert moving is not None
        with self.engine.lock:
            place = moving.place_of(row)
        radius_m, is_square, _ = moving.area_of(row)
        return Subscription(
            self.ids.text_of(row),
            self.filter(row),
            self.engine.rows.priority_of(row),
            *self.archive.delivery(row),
            location=place,
            radius_m=radius_m,
            area=SQUARE if is_square else CIRCLE,
        )

    def condition(self, row: int) -> Filter:
        """All that a row without an outline asks for."""
        held = self._held(row)
        assert isinstance(held, Subscription)
        return held.condition

    def filter(self, row: int) -> Filter:
        """What a row asks for beside its area."""
        held = self._held(row)
        if not isinstance(held, Outline):
            return held.filter
        moving = self.engine.moving
        assert moving is not None
        by_column = moving.area_of(row).bounds
        columns = {name: self.columns.column(name, NUMBER) for name in held.names}
        return held.filter({name: by_column[column] for name, column in columns.items()})

    def area(self, row: int, there: Place) -> Filter:
        """What a row with an outline asks of an event's location when it is at a place."""
        moving = self.engine.moving
        assert moving is not None
        radius_m, is_square, _ = moving.area_of(row)
        return area_around(Point(*there), radius_m, SQUARE if is_square else CIRCLE)

    def _held(self, row: int) -> Subscription | Outline:
        recent = self.archive.recent_at(row)
        if recent is not None:
            return recent
        priority = self.engine.rows.priority_of(row)
        return self.archive.held(row, self.ids.text_of(row), priority)
