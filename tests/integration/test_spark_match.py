"""``tamis.spark.match`` finds what the oracle finds, in both modes, for events of any shape."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tamis.spark import EventMapping, dead_letters, match
from tests.integration.random_cases import (
    as_json,
    expected,
    make_events,
    make_subscriptions,
    row_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

BODY = EventMapping(id="id", json=["body"])


def pairs(found: DataFrame) -> list[tuple[str, str]]:
    return [(row.event_id, row.subscription_id) for row in found.collect()]


@pytest.fixture(scope="module")
def case(spark: SparkSession) -> dict[str, Any]:
    rng = random.Random(2016)
    subscriptions = make_subscriptions(rng, 120)
    attributes = {f"e{number}": one for number, one in enumerate(make_events(rng, 150))}
    rows = [(id, as_json(held)) for id, held in attributes.items()]
    return {
        "subscriptions": spark.createDataFrame([row_of(one) for one in subscriptions]),
        "index": subscriptions,
        "events": spark.createDataFrame(rows, "id string, body string").repartition(2),
        "expected": expected(attributes, subscriptions),
    }


@pytest.mark.parametrize("mode", ["replicated", "sharded"])
def test_events_of_all_kinds_match_as_the_oracle_says(case: dict[str, Any], mode: Any) -> None:
    found = pairs(match(case["events"], case["subscriptions"], mapping=BODY, mode=mode))
    assert len(found) == len(set(found))
    assert set(found) == case["expected"]
    assert len(found) > 500
    assert dead_letters(case["events"], mapping=BODY).count() == 0
