"""The plan of the headline benchmark: which cells of which part, at which size.

The cells are those of the suites, so that ``tamis bench engine`` and the others measure the same.
The seconds are those of a quiet machine of two cores; together they are about half an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tamis.bench import aims, startup
from tamis.bench.engine import Run
from tamis.bench.events import suite as events
from tamis.bench.headline.parts import Part, Planned
from tamis.bench.reproduce import overview
from tamis.bench.results import Key, Listener, Results
from tamis.bench.service import suite as service
from tamis.bench.service.postgresql import find_programs, running_postgresql
from tamis.bench.spark import suite as spark
from tamis.bench.suite import ALL, known

MIXED_SHARE = 0.1  # of W5, whose subscriptions are objects
OVERVIEW_SHARE = 0.1  # of W1, where some of the papers' algorithms take milliseconds an event
STREAM_S = 60.0  # how long a stream is watched
_LEAST_STREAM_S = 10.0  # in which a subscription can still be added and seen


def make_plan() -> tuple[Part, ...]:
    """The parts in the order in which they are measured and shown."""
    return (_engine(), _algorithms(), _events(), _store(), _delivery(), _startup(), _spark())


def chosen(parts: Sequence[Part], names: Iterable[str]) -> list[Part]:
    """The parts of some names; no names mean all.

    >>> [part.name for part in chosen(make_plan(), ["spark", "engine"])]
    ['engine', 'spark']
    """
    wanted = known(names, tuple(part.name for part in parts))
    return [part for part in parts if part.name in wanted]


def _engine() -> Part:
    return Part(
        "engine",
        "The engine",
        "[engine.md](engine.md)",
        "engine",
        tuple(_engine_cells()),
        lambda results, keys, listen: Run(results, True, listen).measure(keys),
        aims.AIMS,
    )


def _engine_cells() -> Iterator[Planned]:
    seconds = {"W1": (10, 6), "W2": (8, 5), "W3": (15, 9), "W4": (10, 13)}
    for workload, (match_s, build_s) in seconds.items():
        yield Planned("match", workload, match_s)
        yield Planned("batch", workload, 2)
        yield Planned("numpy", workload, 7)
        yield Planned("duckdb", workload, 13)
        yield Planned("polars", workload, 13)
        yield Planned("build", workload, build_s)
        yield Planned("memory", workload, 6)
        yield Planned("changes", workload, 4)
        if workload == "W1":
            yield Planned("readers", workload, 18)
            yield Planned("files", workload, 28)
    for cell, mixed_s in {"match": 30, "batch": 3, "build": 15, "changes": 5}.items():
        yield Planned(cell, "W5", mixed_s, MIXED_SHARE)
    yield Planned("first-use", ALL, 60)


def _algorithms() -> Part:
    return Part(
        "algorithms",
        "The papers' algorithms",
        "[algorithms.md](algorithms.md) and [reproduction.md](reproduction.md)",
        "algorithms",
        tuple(Planned(name, overview.WORKLOAD, 9, OVERVIEW_SHARE) for name in overview.NAMES),
        lambda results, keys, listen: overview.OverviewRun(results, listen).measure(keys),
    )


def _events() -> Part:
    seconds = {"matching": 105, "move": 35, "subscriptions": 36, "insert": 34, "memory": 90}
    return Part(
        "events",
        "Space and time",
        "[space-and-time.md](space-and-time.md#what-was-measured)",
        "events",
        tuple(Planned(cell, events.WORKLOAD, seconds[cell]) for cell in seconds),
        lambda results, keys, listen: events.EventsRun(results, True, listen).measure(keys),
        events.AIMS,
    )


def _store() -> Part:
    cells = [Planned("requests", "sqlite", 80), Planned("import", "sqlite", 130)]
    databases = ["sqlite"]
    if find_programs() is not None:
        cells.append(Planned("requests", "postgresql", 90))
        databases.append("postgresql")
    return Part(
        "store",
        "The service and its store",
        "[service.md](service.md)",
        "service",
        tuple(cells),
        _measure_service,
        tuple(aim for database in databases for aim in service.aims_of(database)),
        is_apart=True,
    )


def _delivery() -> Part:
    return Part(
        "delivery",
        "Delivery",
        "[delivery.md](delivery.md)",
        "service",
        (Planned("deliveries", "sqlite", 40),),
        _measure_service,
        is_apart=True,
    )


def _measure_service(results: Results, keys: Sequence[Key], listen: Listener) -> None:
    for key in keys:
        if key.workload == "sqlite":
            service.ServiceRun(results, key.scale, None, True, listen).measure([key])
            continue
        with running_postgresql() as server:
            url = server.new_database()
            service.ServiceRun(results, key.scale, url, True, listen).measure([key])


def _startup() -> Part:
    return Part(
        "startup",
        "Start-up",
        "[cli.md](cli.md)",
        "startup",
        tuple(Planned(cell, ALL, held.seconds) for cell, held in startup.CELLS.items()),
        startup.measure_startup,
    )


def _spark() -> Part:
    seconds = {"parquet": 125, "join": 30, "stream": 110}
    return Part(
        "spark",
        "Spark",
        "[pipeline.md](pipeline.md#how-fast-it-is)",
        "spark",
        tuple(Planned(cell, spark.WORKLOAD, seconds[cell]) for cell in spark.CELLS),
        _measure_spark,
        spark.AIMS,
        is_apart=True,
    )


def _measure_spark(results: Results, keys: Sequence[Key], listen: Listener) -> None:
    for key in keys:
        seconds = max(_LEAST_STREAM_S, STREAM_S * min(1.0, key.scale))
        run = spark.SparkRun(results, key.scale, seconds, True, listen, lambda text: None)
        run.measure([key])
