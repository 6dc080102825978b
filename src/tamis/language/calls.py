"""Calls: predicates that are spelt as the call of a word, alike in every notation.

    JSON      {"attribute": "title", "op": "longer_than", "letters": 20}
    SQL       longer_than(title, 20)
    Python    col("title").longer_than(20)

A subclass of ``Call`` is all that the spellings need; CONTRIBUTING.md tells what else there is to
a predicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import ClassVar

from tamis.errors import FilterError
from tamis.language.tree import Predicate, check_attribute, check_literal
from tamis.values import Kind, Value

CALLS: dict[str, type[Call]] = {}
"""The calls there are, by their words."""


class Call(Predicate):
    """A predicate with a word of its own.

    A subclass is a frozen dataclass with slots: ``attribute``, then its operands, which are single
    values. ``kinds``: of attributes that it can hold for, any if none is named.
    """

    __slots__ = ()
    word: ClassVar[str]
    kinds: ClassVar[frozenset[Kind]] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        CALLS[cls.word] = cls

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        for name, value in self.operands.items():
            object.__setattr__(self, name, check_literal(value))
        self.check()

    @property
    def operands(self) -> dict[str, Value]:
        """What stands behind the attribute, by name."""
        return {name: getattr(self, name) for name in self.names()}

    def check(self) -> None:
        """Raise FilterError if an operand makes no sense; each is a value of some kind."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the operands."""
        return tuple(one.name for one in fields(cls)[1:])  # type: ignore[arg-type]

    @classmethod
    def of(cls, attribute: str, values: Sequence[Value]) -> Call:
        """The call of an attribute with these operands."""
        names = cls.names()
        if len(values) != len(names):
            raise FilterError(
                f"{cls.word} takes {', '.join(names) or 'nothing'} behind the attribute; "
                f"{len(values)} values were given"
            )
        return cls(attribute, *values)  # type: ignore[call-arg]
