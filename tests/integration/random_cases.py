"""Random subscriptions and events of all kinds, from the pools of the property tests."""

from __future__ import annotations

import json
import random
from typing import Any

from tamis import Subscription, evaluate
from tamis.language import Filter, to_json
from tamis.language.tree import (
    Equals,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Prefix,
    Present,
    Within,
    all_of,
    any_of,
    is_in,
)
from tamis.values import Range, value_to_json
from tests.property.strategies import ENDS, NAMES, NUMBERS, POINTS, POLYGONS, TEXTS, TIMESTAMPS

SCHEDULES = [{}, {"schedule": "every 15 minutes"}, {"schedule": "daily at 09:00 Europe/Berlin"}]


def _range(rng: random.Random) -> Range:
    pool: list[Any] = rng.choice([NUMBERS, NUMBERS, TIMESTAMPS])
    made = Range(rng.choice(pool), rng.choice(pool), rng.choice(ENDS))
    return Range(made.low, made.low) if made.is_empty else made


def _literal(rng: random.Random) -> Any:
    pools: list[Any] = [NUMBERS, NUMBERS, TEXTS, [True, False], TIMESTAMPS, POINTS]
    return rng.choice(rng.choice(pools))


def _predicate(rng: random.Random) -> Filter:
    name = rng.choice(NAMES)
    place = rng.choice([point for point in POINTS if point.is_place])
    lats = sorted(rng.sample([0.0, 1.0, 4.0, 9.0], 2))
    makers = [
        lambda: Equals(name, _literal(rng)),
        lambda: NotEquals(name, _literal(rng)),
        lambda: is_in(name, [_literal(rng) for _ in range(3)]),
        lambda: InRange(name, _range(rng)),
        lambda: InRange(name, _range(rng)),
        lambda: Prefix(name, rng.choice(TEXTS)),
        lambda: Present(name),
        lambda: Missing(name),
        lambda: Within(name, rng.choice(POLYGONS)),
        lambda: InBox(name, -1, lats[0], 9, lats[1]),
        lambda: Near(name, place, rng.choice([1, 15_724.0, 111_195, 1e7])),
    ]
    return rng.choice(makers)()


def make_filter(rng: random.Random, depth: int = 2) -> Filter:
    if depth == 0 or rng.random() < 0.4:
        return _predicate(rng)
    parts = [make_filter(rng, depth - 1) for _ in range(2)]
    return rng.choice([all_of(parts), any_of(parts), Not(parts[0])])


def make_subscriptions(rng: random.Random, n: int) -> list[Subscription]:
    return [
        Subscription(
            f"s-{number}-é", make_filter(rng), rng.randrange(10), rng.choice(["", "Zoë", "bob"]),
            rng.choice(SCHEDULES),
        )
        for number in range(n)
    ]  # fmt: skip


def make_events(rng: random.Random, n: int) -> list[dict[str, Any]]:
    """Attributes of events: missing, with one value, or with several."""

    def value() -> Any:
        kind = rng.randrange(8)
        return _range(rng) if kind == 0 else rng.choice(POLYGONS) if kind == 1 else _literal(rng)

    def held() -> Any:
        return [value() for _ in range(rng.randrange(4))] if rng.random() < 0.2 else value()

    return [{name: held() for name in rng.sample(NAMES, rng.randrange(5))} for _ in range(n)]


def as_json(attributes: dict[str, Any]) -> str:
    made = {
        name: [value_to_json(one) for one in held]
        if isinstance(held, list)
        else value_to_json(held)
        for name, held in attributes.items()
    }
    return json.dumps(made)


def row_of(subscription: Subscription) -> dict[str, Any]:
    """A subscription as a row of a table of texts."""
    return {
        "id": subscription.id,
        "filter": json.dumps(to_json(subscription.filter)),
        "priority": subscription.priority,
        "owner": subscription.owner,
        "delivery": json.dumps(dict(subscription.delivery)),
    }


def expected(
    events: dict[str, dict[str, Any]], subscriptions: list[Subscription]
) -> set[tuple[str, str]]:
    """What the oracle says."""
    return {
        (event_id, one.id)
        for event_id, attributes in events.items()
        for one in subscriptions
        if evaluate(one.condition, attributes)
    }
