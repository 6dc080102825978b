"""Question: what a subscription asks of the events in a store."""

from __future__ import annotations

from functools import cached_property

from tamis.index.revision import Check, check_of
from tamis.language import Filter


class Question:
    """A filter on its way to events."""

    def __init__(self, condition: Filter) -> None:
        self.condition = condition

    @cached_property
    def check(self) -> Check:
        """The filter as a function of an event's attributes."""
        return check_of(self.condition)
