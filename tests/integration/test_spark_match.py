"""``tamis.spark.match`` finds what the oracle finds, in both modes, for events of any shape."""

from __future__ import annotations

import json
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis import Index
from tamis.errors import InvalidEvent, InvalidSubscription, PipelineError
from tamis.spark import (
    ChangeTable,
    EventMapping,
    SnapshotStore,
    dead_letters,
    match,
    match_to_parquet,
)
from tamis.spark.subscriptions import build
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


def test_the_same_from_an_index_a_path_and_a_store_and_into_files(
    spark: SparkSession, case: dict[str, Any], tmp_path: Path
) -> None:
    index = Index()
    index.add_many(case["index"])
    index.save(tmp_path / "index")
    for given in (index, str(tmp_path / "index")):
        found = match(case["events"], given, mapping=BODY)
        assert set(pairs(found)) == case["expected"]
        assert {row.index_version for row in found.collect()} == {1}
    store = SnapshotStore(tmp_path / "store", n_tokens=3)
    build(store, case["subscriptions"])
    written = match_to_parquet(
        case["events"], store, tmp_path / "out", mapping=BODY, mode="sharded", n_shards=2
    )
    assert written == (150, len(case["expected"]), 0)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    priority_of = {one.id: one.priority for one in case["index"]}
    assert {(r.event_id, r.subscription_id) for r in rows} == case["expected"]
    assert len(rows) == len(case["expected"])
    assert all(row.priority == priority_of[row.subscription_id] for row in rows)
    with pytest.raises(PipelineError, match="exists"):
        match_to_parquet(case["events"], store, tmp_path / "out", mapping=BODY)


def test_columns_of_sparks_types(spark: SparkSession) -> None:
    schema = (
        "ad long, at timestamp, day date, price decimal(10,2), "
        "place struct<lon: double, lat: double>, car struct<mark: string, year: int>, "
        "extra map<string,string>, tag array<string>, x double, y double, raw binary"
    )
    noon, day = datetime(2026, 1, 1, 12), date(2026, 1, 1)
    raw = bytearray(b"\xff")
    events = spark.createDataFrame(
        [
            (1, noon, day, Decimal("7.25"), (1.0, 2.0), ("FORD", 2014), {"fuel": "gas"}, ["a", "b"],
             3.0, 4.0, raw),
            (None, noon, day, None, None, None, None, None, None, None, raw),
            (2, None, None, None, None, None, {}, [], None, None, None),
        ],
        schema,
    )  # fmt: skip
    filters = {
        "time": "at >= TIMESTAMP '2026-01-01T12:00:00Z' AND day < TIMESTAMP '2026-01-02T00:00:00Z'",
        "price": "price = 7.25",
        "place": "place IS NOT NULL AND target IS NOT NULL",
        "car": "car.mark = 'FORD' AND car.year = 2014 AND extra.fuel = 'gas'",
        "tags": "tag = 'a' AND tag = 'b'",
        "nothing": "at IS NULL AND price IS NULL AND car.mark IS NULL AND tag IS NULL",
    }
    subscriptions = spark.createDataFrame(list(filters.items()), "id string, filter string")
    mapping = EventMapping(id="ad", payload="raw", points={"target": ("x", "y")})
    found = match(events, subscriptions, mapping=mapping, columns=["car", "raw"])
    rows = {(row.event_id, row.subscription_id): row for row in found.collect()}
    assert set(rows) == {("1", name) for name in filters if name != "nothing"} | {("2", "nothing")}
    assert rows["1", "car"].car.mark == "FORD"
    assert rows["1", "car"].raw == raw
    assert rows["2", "nothing"].car is None
    (dead,) = dead_letters(events, mapping=mapping).collect()
    assert "no" in dead.reason
    assert json.loads(dead.row)["raw"] == "/w=="


def test_columns_that_cannot_be_added_are_named(spark: SparkSession) -> None:
    events = spark.createDataFrame([("a", 1)], "id string, x int")
    subscriptions = spark.createDataFrame([("s", "x = 1")], "id string, filter string")
    for columns, part in ((["y"], "'y' cannot"), (["x", "x"], "added twice")):
        with pytest.raises(InvalidEvent, match=part):
            match(events, subscriptions, columns=columns)
    with pytest.raises(InvalidEvent, match="rename yours"):
        match(events.withColumnRenamed("x", "_tamis_shard"), subscriptions, mode="sharded",
              n_shards=2)  # fmt: skip


@pytest.mark.parametrize("mode", ["replicated", "sharded"])
def test_columns_with_dots_in_their_names(spark: SparkSession, mode: Any) -> None:
    rows = [("a", 1.0, 9.0), ("b", 20.0, 9.0), (None, 1.0, 1.0)]
    events = spark.createDataFrame(rows, "id string, `price.eur` double, `a``b` double")
    subscriptions = spark.createDataFrame(
        [(f"s{number}", "price.eur < 10") for number in range(4)], "id string, filter string"
    )
    mapping = EventMapping(attributes=["price.eur"])
    found = match(events, subscriptions, mapping=mapping, columns=["a`b"], mode=mode).collect()
    assert sorted((row.event_id, row.subscription_id, row["a`b"]) for row in found) == [
        ("a", f"s{number}", 9.0) for number in range(4)
    ]
    (dead,) = dead_letters(events, mapping=mapping).collect()
    assert json.loads(dead.row) == {"id": None, "price.eur": 1.0, "a`b": 1.0}


@pytest.mark.parametrize("mode", ["replicated", "sharded"])
def test_columns_whose_names_differ_in_case_only(spark: SparkSession, mode: Any) -> None:
    events = spark.createDataFrame([("a", 1, 9), ("b", 9, 1)], "id string, p int, P int")
    subscriptions = spark.createDataFrame([("s", "p < 5")], "id string, filter string")
    (found,) = match(events, subscriptions, columns=["P"], mode=mode, n_shards=2).collect()
    assert (found.event_id, found.P) == ("a", 9)


def test_a_column_that_spark_cannot_hand_over_is_named(spark: SparkSession) -> None:
    events = spark.sql("SELECT 'a' AS id, 1 AS p, INTERVAL '1' YEAR AS y")
    subscriptions = spark.createDataFrame([("s", "p < 5")], "id string, filter string")
    with pytest.raises(InvalidEvent, match=r"the column 'y' is of type interval year, .* drop it"):
        match(events, subscriptions, mapping=EventMapping(attributes=["p"]))


def test_dead_letters_are_given_once_in_every_mode(spark: SparkSession, tmp_path: Path) -> None:
    texts = ['{"x": 1}', "{", "[]", '{"x": [1, {"$range": [2, 1]}]}', None]
    rows = [(f"e{number}", text) for number, text in enumerate(texts)]
    events = spark.createDataFrame([*rows, (None, "{}")], "id string, body string")
    subscriptions = spark.createDataFrame(
        [(f"s{number}", "TRUE") for number in range(9)], "id string, filter string"
    )
    dead = dead_letters(events, mapping=BODY).collect()
    assert sorted(json.loads(row.row)["body"] for row in dead) == sorted([*texts[1:4], "{}"])
    for mode in ("replicated", "sharded"):
        path = tmp_path / mode
        written = match_to_parquet(events, subscriptions, path, mapping=BODY, mode=mode)  # type: ignore[arg-type]
        assert written == (2, 18, 4)
        again = spark.read.parquet(str(path / "_dead_letters")).collect()
        assert sorted(again) == sorted(dead)
    assert sorted(set(pairs(match(events, subscriptions, mapping=BODY)))) == sorted(
        (id, f"s{number}") for id in ("e0", "e4") for number in range(9)
    )


def test_subscriptions_that_cannot_be_indexed_are_named(spark: SparkSession) -> None:
    events = spark.createDataFrame([("e", 1)], "id string, x int")
    rows = [("a", "x <"), ("b", "x < 1"), ("b", "x < 2"), (None, "x < 3"), ("c", "x < 1")]
    subscriptions = spark.createDataFrame(rows, "id string, filter string")
    with pytest.raises(InvalidSubscription, match="3 subscriptions cannot be indexed") as caught:
        match(events, subscriptions)
    assert "'b': the id is there twice" in str(caught.value)
    with pytest.raises(InvalidSubscription, match="no column 'filter'"):
        match(events, subscriptions.select("id"))
    with pytest.raises(InvalidSubscription, match="holds no subscriptions"):
        match(events, 7)
    with pytest.raises(InvalidEvent, match="cannot be added"):
        match(events, subscriptions, columns=["y"])


def test_changes_in_a_database(spark: SparkSession) -> None:
    url = "jdbc:derby:memory:changes;create=true"
    driver = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    columns = "SEQUENCE long, OP string, ID string, FILTER string, PRIORITY int, DELIVERY string"

    def commit(*rows: tuple[Any, ...]) -> None:
        frame = spark.createDataFrame(list(rows), columns)
        frame.write.jdbc(url, "CHANGES", mode="append", properties=driver)

    commit(
        (1, None, "s1", "x < 5", 3, '{"schedule": "every hour"}'),
        (2, "upsert", "s2", "x <", 0, None),
    )
    source = ChangeTable.jdbc(spark, url, "CHANGES", **driver)
    first, bad = source.after(0)
    assert (first.sequence, first.id, first.problem) == (1, "s1", "")
    assert first.subscription is not None
    assert first.subscription.delivery == {"schedule": "every hour"}
    assert bad.sequence == 2
    assert bad.problem
    assert source.after(2) == []
    commit((3, "delete", "s1", None, None, None))
    assert [(change.id, change.subscription) for change in source.after(2)] == [("s1", None)]
    # What has no sequence is told, whatever was applied.
    commit(*((number, None, f"no {number}", "x < 1", 0, None) for number in (None, 0, -1)))
    bad = {change.id: change for change in source.after(3)}
    assert bad.keys() == {"no None", "no 0", "no -1"}
    assert all(change.sequence == 0 for change in bad.values())
    assert all("is not a whole number" in change.problem for change in bad.values())


def test_changes_with_decimal_sequences(spark: SparkSession) -> None:
    """As databases have them whose numbers are all decimals."""
    frame = spark.sql(
        "SELECT cast(s AS decimal(20, 2)) AS sequence, 's' AS id, 'x < 1' AS filter, "
        "map('schedule', if(s = 3, cast(X'FF' AS string), 'every hour')) AS delivery "
        "FROM VALUES (1), (2), (2.5), (3), (4) AS t(s)"
    )
    first, half, bad, last = ChangeTable(lambda: frame).after(1)
    assert [one.sequence for one in (first, half, bad, last)] == [2, 0, 3, 4]
    assert first.subscription is not None
    assert first.subscription.delivery == {"schedule": "every hour"}
    assert "2.50" in half.problem
    assert "delivery: " in bad.problem
    assert last.problem == ""


@pytest.mark.parametrize(
    ("id", "filter", "delivery", "told"),
    [
        ("cast(X'73FF' AS string)", "'x < 1'", "NULL", "id: s\\xff cannot be read"),
        ("'s1'", "cast(X'FF' AS string)", "NULL", "'s1': filter: \\xff cannot be read"),
        ("'s1'", "'x < 1'", "struct(DATE'+10000-01-01' AS until)", "'s1': delivery: "),
        ("'s1'", "'x < 1'", "array('a')", "'s1': the delivery settings are a list"),
    ],
)
def test_values_that_python_cannot_hold(
    spark: SparkSession, id: str, filter: str, delivery: str, told: str
) -> None:
    subscriptions = spark.sql(f"SELECT {id} AS id, {filter} AS filter, {delivery} AS delivery")
    events = spark.createDataFrame([("e1", 1)], "id string, x int")
    with pytest.raises(InvalidSubscription) as caught:
        match(events, subscriptions)
    assert told in str(caught.value)
