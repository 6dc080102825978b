"""What a database would do: the events of a batch joined to subscriptions on range conditions."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.bench.extras import extra
from tamis.bench.scan import closed_bounds, known
from tamis.bench.workloads import Floats, Workload


class RangeJoin(Protocol):
    """A batch join; ``prepare`` is not timed, ``join`` is."""

    def prepare(self, values: Floats) -> None:
        """Load the events."""

    def join(self) -> npt.NDArray[np.int64]:
        """How many subscriptions accept each event."""


class DuckdbJoin:
    """DuckDB in memory, on all cores."""

    def __init__(self, workload: Workload) -> None:
        self._connection = extra("duckdb").connect()
        self._connection.execute("SET enable_progress_bar = false")
        self._attributes = workload.attributes
        self._load("subscriptions", subscription_table(workload))

    def prepare(self, values: Floats) -> None:
        """Load the events."""
        self._n_events = len(values)
        self._load("events", event_table(self._attributes, values))

    def join(self) -> npt.NDArray[np.int64]:
        """How many subscriptions accept each event; the pairs are made in full."""
        conditions = " AND ".join(
            f"e.{name} BETWEEN s.low_{name} AND s.high_{name}" for name in self._attributes
        )
        query = (
            "SELECT e.event AS event, s.subscription AS subscription "
            f"FROM events e JOIN subscriptions s ON {conditions}"
        )
        pairs = self._connection.execute(query).fetchnumpy()
        return np.bincount(pairs["event"], minlength=self._n_events)

    def _load(self, name: str, table: pa.Table) -> None:
        self._connection.register("given", table)
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        self._connection.unregister("given")


class PolarsJoin:
    """Polars ``join_where``, on all cores."""

    def __init__(self, workload: Workload) -> None:
        self._polars = extra("polars")
        self._attributes = workload.attributes
        self._subscriptions = self._polars.from_arrow(subscription_table(workload)).lazy()

    def prepare(self, values: Floats) -> None:
        """Load the events."""
        self._n_events = len(values)
        self._events = self._polars.from_arrow(event_table(self._attributes, values)).lazy()

    def join(self) -> npt.NDArray[np.int64]:
        """How many subscriptions accept each event; the pairs are made in full."""
        column = self._polars.col
        conditions = [
            condition
            for name in self._attributes
            for condition in (
                column(name) >= column(f"low_{name}"), column(name) <= column(f"high_{name}"),
            )
        ]  # fmt: skip
        joined = self._events.join_where(self._subscriptions, *conditions)
        pairs = joined.select("event", "subscription").collect()
        return np.bincount(pairs["event"].to_numpy(), minlength=self._n_events)


def subscription_table(workload: Workload) -> pa.Table:
    """A row a subscription: its number, and two columns an attribute."""
    low, high = closed_bounds(workload)
    columns = {"subscription": np.arange(len(low), dtype=np.int64)}
    for m, name in enumerate(workload.attributes):
        columns[f"low_{name}"] = np.ascontiguousarray(low[:, m])
        columns[f"high_{name}"] = np.ascontiguousarray(high[:, m])
    return pa.table(columns)


def event_table(attributes: tuple[str, ...], values: Floats) -> pa.Table:
    """A row an event: its number, and a column an attribute."""
    columns = {"event": np.arange(len(values), dtype=np.int64)}
    for m, name in enumerate(attributes):
        columns[name] = np.ascontiguousarray(known(values[:, m]))
    return pa.table(columns)
