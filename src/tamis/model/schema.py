"""Schema: what is known of attributes beforehand; optional."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.errors import InvalidSchema, SchemaViolation
from tamis.language.tree import (
    And,
    Equals,
    Filter,
    In,
    InBox,
    InRange,
    Near,
    Not,
    NotEquals,
    Or,
    Predicate,
    Prefix,
    Within,
)
from tamis.values import Attributes, Kind, Range


@dataclass(frozen=True, slots=True)
class Attribute:
    """The kind of an attribute, whether it has one value at most, and its domain if known."""

    kind: Kind
    is_single: bool = True
    domain: Range | None = None

    @classmethod
    def from_json(cls, name: str, raw: Any) -> Attribute:
        """Read ``"number"``, or ``{"kind": "number", "single": true, "low": 0, "high": 100}``."""
        held: Any = {"kind": raw} if isinstance(raw, str) else raw
        if not isinstance(held, Mapping) or not set(held) <= {"kind", "single", "low", "high"}:
            raise InvalidSchema(
                f"attribute {name!r}: {raw!r} is not a kind or an object of kind, single, low, high"
            )
        kinds = [kind.value for kind in Kind]
        if held.get("kind") not in kinds:
            raise InvalidSchema(
                f"attribute {name!r}: kind {held.get('kind')!r} is not one of {', '.join(kinds)}"
            )
        bounded = "low" in held or "high" in held
        domain = Range(held.get("low"), held.get("high")) if bounded else None
        return cls(Kind(held["kind"]), held.get("single", True), domain)


class Schema:
    """Attributes by name. What it names it fixes; other attributes stay free.

    >>> schema = Schema({"price": "number", "tag": {"kind": "text", "single": False}})
    >>> schema.is_single("price"), schema.is_single("tag"), schema.is_single("colour")
    (True, False, False)
    """

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes: dict[str, Attribute] = {
            name: raw if isinstance(raw, Attribute) else Attribute.from_json(name, raw)
            for name, raw in attributes.items()
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.attributes == other.attributes

    __hash__ = None  # type: ignore[assignment]

    def is_single(self, attribute: str) -> bool:
        """Whether the schema promises that the attribute has at most one value."""
        known = self.attributes.get(attribute)
        return known is not None and known.is_single

    def check_filter(self, node: Filter) -> None:
        """Raise SchemaViolation if a predicate cannot hold for the kind of its attribute."""
        for predicate in _predicates(node):
            known = self.attributes.get(predicate.attribute)
            if known is None:
                continue
            wanted = _kinds_wanted(predicate)
            if wanted and known.kind not in wanted:
                raise SchemaViolation(
                    f"{predicate!r} never holds: the schema says {predicate.attribute!r} is "
                    f"{known.kind.value}, the predicate is for {_listed(wanted)}"
                )

    def check_event(self, attributes: Attributes) -> None:
        """Raise SchemaViolation if a single-valued attribute has several values."""
        for name, values in attributes.items():
            if len(values) > 1 and self.is_single(name):
                raise SchemaViolation(
                    f"attribute {name!r} has {len(values)} values; the schema says it has one "
                    '(declare it with "single": false)'
                )

    def to_json(self) -> dict[str, Any]:
        """The schema as a JSON object."""
        made: dict[str, Any] = {}
        for name, attribute in self.attributes.items():
            made[name] = {"kind": attribute.kind.value, "single": attribute.is_single}
            if attribute.domain is not None:
                made[name].update(low=attribute.domain.low, high=attribute.domain.high)
        return made


def _predicates(node: Filter) -> Iterator[Predicate]:
    if isinstance(node, And | Or):
        for part in node.parts:
            yield from _predicates(part)
    elif isinstance(node, Not):
        yield from _predicates(node.part)
    elif isinstance(node, Predicate):
        yield node


def _kinds_wanted(predicate: Predicate) -> frozenset[Kind]:
    """The kinds of attribute a predicate can hold for; empty means any."""
    if isinstance(predicate, Equals | NotEquals):
        return frozenset({predicate.kind})
    if isinstance(predicate, In):
        return frozenset(predicate.kinds)
    if isinstance(predicate, InRange):
        if predicate.range.is_of_timestamps:
            return frozenset({Kind.TIMESTAMP, Kind.RANGE})
        return frozenset({Kind.NUMBER, Kind.RANGE})
    if isinstance(predicate, Prefix):
        return frozenset({Kind.TEXT})
    if isinstance(predicate, Within | InBox | Near):
        return frozenset({Kind.POINT})
    return frozenset()


def _listed(kinds: frozenset[Kind]) -> str:
    return " or ".join(sorted(kind.value for kind in kinds))
