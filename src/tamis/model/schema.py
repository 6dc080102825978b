"""Schema: what is known of attributes beforehand; optional."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.errors import InvalidSchema, InvalidValue, SchemaViolation, quoted
from tamis.language.calls import Call
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
from tamis.values import (
    Attributes,
    Kind,
    Range,
    Value,
    covers,
    value_from_json,
    value_to_json,
)
from tamis.values.coverage import as_bound

_KEYS = ("kind", "single", "low", "high", "ends")


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
        if not isinstance(held, Mapping) or not set(held) <= set(_KEYS):
            raise InvalidSchema(
                f"attribute {quoted(name)}: {quoted(raw)} is not a kind or an object of "
                f"{', '.join(_KEYS)}"
            )
        kinds = [kind.value for kind in Kind]
        if held.get("kind") not in kinds:
            raise InvalidSchema(
                f"attribute {quoted(name)}: kind {quoted(held.get('kind'))} is not one of "
                f"{', '.join(kinds)}"
            )
        is_single = held.get("single", True)
        if not isinstance(is_single, bool):
            raise InvalidSchema(
                f"attribute {quoted(name)}: single {quoted(is_single)} is not true or false"
            )
        kind = Kind(held["kind"])
        return cls(kind, is_single, _domain(name, kind, held))


class Schema:
    """Attributes by name. What it names it fixes; other attributes stay free.

    >>> schema = Schema({"price": "number", "tag": {"kind": "text", "single": False}})
    >>> schema.is_single("price"), schema.is_single("tag"), schema.is_single("colour")
    (True, False, False)
    """

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        if not isinstance(attributes, Mapping):
            raise InvalidSchema(
                f"a schema is a mapping of names to kinds; {type(attributes).__name__} was given"
            )
        for name in attributes:
            if not isinstance(name, str) or not name:
                raise InvalidSchema(f"attribute name {quoted(name)} is not a non-empty text")
        self.attributes: dict[str, Attribute] = {
            name: raw if isinstance(raw, Attribute) else Attribute.from_json(name, raw)
            for name, raw in attributes.items()
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.attributes == other.attributes

    __hash__ = None  # type: ignore[assignment]

    def is_single(self, attribute: str) -> bool:
        """Whether the schema promises at most one value, so that intervals on it may be merged.

        Never so for ranges: one range may meet both of two intervals that do not meet.
        """
        known = self.attributes.get(attribute)
        return known is not None and known.is_single and known.kind is not Kind.RANGE

    def check_filter(self, node: Filter) -> None:
        """Raise SchemaViolation if a predicate cannot hold for its attribute's kind or domain."""
        for predicate in _predicates(node):
            known = self.attributes.get(predicate.attribute)
            if known is None:
                continue
            wanted = _kinds_wanted(predicate)
            if wanted and known.kind not in wanted:
                raise SchemaViolation(
                    f"{quoted(predicate)} never holds: the schema says "
                    f"{quoted(predicate.attribute)} is "
                    f"{known.kind.value}, the predicate is for {_listed(wanted)}"
                )
            if known.domain is not None and not _meets(predicate, known.domain):
                raise SchemaViolation(
                    f"{quoted(predicate)} never holds: the schema says "
                    f"{quoted(predicate.attribute)} lies "
                    f"within {_shown(known.domain)}"
                )

    def check_event(self, attributes: Attributes) -> None:
        """Raise SchemaViolation if an attribute has too many values, or one out of its domain."""
        for name, values in attributes.items():
            known = self.attributes.get(name)
            if known is None:
                continue
            if known.is_single:
                _check_single(name, known, values)
            if known.domain is not None:
                _check_domain(name, known.domain, values)

    def to_json(self) -> dict[str, Any]:
        """The schema as a JSON object."""
        made: dict[str, Any] = {}
        for name, attribute in self.attributes.items():
            made[name] = {"kind": attribute.kind.value, "single": attribute.is_single}
            if attribute.domain is not None:
                for side in ("low", "high"):
                    border = getattr(attribute.domain, side)
                    made[name][side] = None if border is None else value_to_json(border)
                if attribute.domain.ends != "[]":
                    made[name]["ends"] = attribute.domain.ends
        return made


def _domain(name: str, kind: Kind, held: Mapping[str, Any]) -> Range | None:
    low, high, ends = held.get("low"), held.get("high"), held.get("ends", "[]")
    if low is None and high is None:
        if "ends" in held:
            raise InvalidSchema(f"attribute {quoted(name)}: ends without low and high")
        return None
    try:
        domain = Range(value_from_json(low), value_from_json(high), ends)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise InvalidSchema(f"attribute {quoted(name)}: {error}") from None
    if domain.is_empty:
        raise InvalidSchema(
            f"attribute {quoted(name)}: low {quoted(low)} lies above high {quoted(high)}"
        )
    allowed = Kind.TIMESTAMP if domain.is_of_timestamps else Kind.NUMBER
    if kind not in (allowed, Kind.RANGE):
        raise InvalidSchema(
            f"attribute {quoted(name)}: low and high are of kind {allowed.value}, the attribute is "
            f"{kind.value}"
        )
    return domain


def _check_single(name: str, known: Attribute, values: tuple[Value, ...]) -> None:
    if len(values) > 1:
        raise SchemaViolation(
            f"attribute {quoted(name)} has {len(values)} values; the schema says it has one "
            '(declare it with "single": false)'
        )
    if isinstance(values[0], Range) and known.kind is not Kind.RANGE:
        raise SchemaViolation(
            f"attribute {quoted(name)} is a range; the schema says it is {known.kind.value}"
        )


def _check_domain(name: str, domain: Range, values: tuple[Value, ...]) -> None:
    """A value of another kind satisfies nothing and is let be; one of this kind must be inside."""
    border = domain.low if domain.low is not None else domain.high
    assert border is not None
    for value in values:
        if isinstance(value, Range):
            is_of_its_kind = value.is_of_timestamps == domain.is_of_timestamps
        else:
            is_of_its_kind = as_bound(value, like=border) is not None
        if is_of_its_kind and not covers(domain, value):
            raise SchemaViolation(
                f"attribute {quoted(name)}: {quoted(value)} lies outside {_shown(domain)}, which "
                "the schema says it is within"
            )


def _meets(predicate: Predicate, domain: Range) -> bool:
    if isinstance(predicate, InRange):
        return domain.intersects(predicate.range)
    if isinstance(predicate, Equals):
        return covers(domain, predicate.value)
    if isinstance(predicate, In):
        return any(covers(domain, value) for value in predicate.values)
    return True


def _shown(domain: Range) -> str:
    low = "-∞" if domain.low is None else domain.low
    high = "∞" if domain.high is None else domain.high
    return f"{domain.ends[0]}{low}, {high}{domain.ends[1]}"


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
    return predicate.kinds if isinstance(predicate, Call) else frozenset()


def _listed(kinds: frozenset[Kind]) -> str:
    return " or ".join(sorted(kind.value for kind in kinds))
