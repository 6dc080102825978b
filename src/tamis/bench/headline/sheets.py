"""The tables of the headline benchmark: a few numbers of each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tamis.algorithms import ALGORITHMS
from tamis.bench import startup
from tamis.bench.aims import at_path, number
from tamis.bench.events import suite as events
from tamis.bench.headline.parts import Part, rounded
from tamis.bench.headline.plan import MIXED_SHARE, OVERVIEW_SHARE
from tamis.bench.reproduce import overview
from tamis.bench.results import Key, Results
from tamis.bench.service.suite import DATABASES
from tamis.bench.spark.suite import WORKLOAD as SPARK_WORKLOAD
from tamis.bench.suite import ALL, WORKLOADS
from tamis.bench.tables import AIM_COLUMNS, Sheet, aim_notes, aim_row


def aims_of_all(parts: Sequence[Part], root: Path, scale: float) -> Sheet:
    """Every aim of every part that was measured."""
    sheet = Sheet("Aims", ("part", *AIM_COLUMNS), n_names=3)
    sheet.rows = [(part.name, *aim_row(one)) for part in parts for one in part.reached(root, scale)]
    sheet.notes = aim_notes(sheet.rows, scale)
    return sheet


def engine_sheets(results: Results, scale: float) -> list[Sheet]:
    """The index on each workload."""
    sheet = Sheet(
        "One million subscriptions",
        (
            "workload", "subscriptions", "one event, µs", "p99, µs", "as fast as the scan",
            "batch, events/s", "build, µs/sub", "memory, bytes/sub", "add, µs",
        ),
    )  # fmt: skip
    for name in WORKLOADS:
        at = rounded(MIXED_SHARE * scale) if name == "W5" else scale
        match, batch, build, memory, changes = (
            results.read(Key(cell, name, at))
            for cell in ("match", "batch", "build", "memory", "changes")
        )
        if not (match or batch or build):
            continue
        ratio = match.get("ratio")
        sheet.rows.append(
            (
                name,
                f"{(match or batch or build)['n_subscriptions']:,}",
                number(at_path(match, "rows.median_us")),
                number(at_path(match, "rows.p99_us")),
                "–" if ratio is None else f"{number(ratio)}×",
                number(batch.get("events_per_second")),
                number(build.get("us_per_subscription")),
                number(memory.get("counted_per_subscription")),
                number(at_path(changes, "add.median_us")),
            )
        )
    return [sheet]


def algorithm_sheets(results: Results, scale: float) -> list[Sheet]:
    """Every algorithm, the fastest first."""
    columns = ("algorithm", "from", "one event, µs", "add, µs each", "memory, bytes/sub")
    sheet = Sheet("Every algorithm on W1", columns, n_names=2)
    for name, found in algorithms_found(results, scale):
        us = (1e3 * found["match"]["median_ms"], found["insert_us"], found["bytes_each"])
        sheet.rows.append((f"`{name}`", ALGORITHMS[name].paper, *map(number, us)))
    skipped = [
        f"`{name}` {found['skipped']}"
        for name, found in _of_algorithms(results, scale)
        if "skipped" in found
    ]
    if skipped:
        sheet.notes.append(f"Not measured: {', '.join(skipped)}.")
    return [sheet]


def algorithms_found(results: Results, scale: float) -> list[tuple[str, dict[str, Any]]]:
    """What was found of each algorithm, the fastest first."""
    found = [(name, one) for name, one in _of_algorithms(results, scale) if "match" in one]
    return sorted(found, key=lambda pair: float(pair[1]["match"]["median_ms"]))


def _of_algorithms(results: Results, scale: float) -> list[tuple[str, dict[str, Any]]]:
    at = rounded(OVERVIEW_SHARE * scale)
    keys = [Key(name, overview.WORKLOAD, at) for name in overview.NAMES]
    return [(key.cell, results.read(key)) for key in keys if key in results]


EVENT_ROWS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("match an event, near me", "matching", "near_me.median_us", ()),
    ("match an event, boxes", "matching", "boxes.median_us", ("mo_tree", "rtree", "scan")),
    ("events of a subscription, boxes", "subscriptions", "boxes.median_us",
     ("mo_tree", "beq_tree", "rtree")),
    ("events of a subscription, near me", "subscriptions", "near_me.median_us", ()),
    ("insert an event", "insert", "one.median_us", ("mo_tree", "beq_tree", "rtree")),
    ("insert, tables of 10,000", "insert", "tables.us_per_event", ()),
    ("move a subscription", "move", "one.median_us", ()),
)  # fmt: skip
OTHERS = {"mo_tree": "MO-Tree", "beq_tree": "BEQ-Tree", "rtree": "rtree", "scan": "scan"}


def event_sheets(results: Results, scale: float) -> list[Sheet]:
    """Both ways of matching, and changes, beside the others; then moves and memory."""
    times = Sheet("Microseconds each", ("µs", "Tamis", *OTHERS.values()))
    for label, cell, path, others in EVENT_ROWS:
        found = results.read(Key(cell, events.WORKLOAD, scale))
        if (ours := at_path(found, path)) is not None:
            theirs = (at_path(found, f"{o}.median_us") if o in others else None for o in OTHERS)
            times.rows.append((label, number(ours), *map(number, theirs)))
    more = Sheet("Moves and memory", ("", "boxes", "near me"))
    memory = results.read(Key("memory", events.WORKLOAD, scale))
    if memory:
        held = (at_path(memory, f"{kind}.rss_mb") for kind in ("boxes", "near_me"))
        more.rows.append(("memory with as many events, MB", *map(number, held)))
    move = results.read(Key("move", events.WORKLOAD, scale))
    if move:
        rate = at_path(move, "batches.moves_per_second")
        more.rows.append(("moves a second beside a reader of batches", "–", number(rate)))
    return [times, more]


def store_sheets(results: Results, scale: float) -> list[Sheet]:
    """Requests and an import."""
    columns = (
        "database", "requests/s", "p50, ms", "p99, ms", "CPU, ms", "flat out, requests/s",
        "imported", "import, s",
    )  # fmt: skip
    sheet = Sheet("Requests, 300 due a second, and an import", columns)
    for database in DATABASES:
        asked = results.read(Key("requests", database, scale))
        imported = results.read(Key("import", database, scale))
        if asked or imported:
            paths = ("rate", "p50_ms", "p99_ms", "server_cpu_ms", "flat_out_per_s")
            shown = (*map(asked.get, paths), *map(imported.get, ("n_subscriptions", "seconds")))
            sheet.rows.append((database, *map(number, shown)))
    return [sheet]


def delivery_sheets(results: Results, scale: float) -> list[Sheet]:
    """Webhooks of one sender."""
    columns = ("database", "notifications", "webhooks/s", "sent twice")
    sheet = Sheet("Webhooks of one sender to one receiver", columns)
    for database in DATABASES:
        if found := results.read(Key("deliveries", database, scale)):
            paths = ("n_notifications", "per_s", "twice")
            sheet.rows.append((database, *(number(found[path]) for path in paths)))
    return [sheet]


def startup_sheets(results: Results, scale: float) -> list[Sheet]:
    """What a user waits for."""
    columns = ("fresh process", "seconds, median", "least", "most")
    sheet = Sheet("Seconds until it is there", columns)
    for name, cell in startup.CELLS.items():
        if found := results.read(Key(name, ALL, 1.0)):
            rounds = found["seconds_of_rounds"]
            shown = (found["median_s"], min(rounds), max(rounds))
            sheet.rows.append((cell.title, *map(number, shown)))
    return [sheet]


SPARK_ROWS: tuple[tuple[str, str, str], ...] = (
    ("Parquet to Parquet, two cores, events/s", "parquet", "spark_events_per_second"),
    ("the index alone, batches on one core, events/s", "parquet", "engine_events_per_second"),
    ("Parquet to Parquet, subscriptions", "parquet", "n_subscriptions"),
    ("Parquet to Parquet, events/s", "join", "our_events_per_second"),
    ("a join on range conditions, events/s", "join", "join_events_per_second"),
    ("both, subscriptions", "join", "n_subscriptions"),
    ("stream of 2,000 events/s, watched for s", "stream", "seconds"),
    ("event to match, median, s", "stream", "event_to_match_p50_s"),
    ("event to match, p99, s", "stream", "event_to_match_p99_s"),
    ("new subscription to its first match, longest, s", "stream", "newcomer_max_s"),
    ("private memory of a worker, most, MB", "stream", "worker_private_mb_max"),
)


def spark_sheets(results: Results, scale: float) -> list[Sheet]:
    """Batches beside the index and a join, and a stream."""
    sheet = Sheet("Batches and a stream", ("cell", "", "measured"), n_names=2)
    for label, cell, path in SPARK_ROWS:
        found = results.read(Key(cell, SPARK_WORKLOAD, scale))
        if path in found:
            sheet.rows.append((cell, label, number(found[path])))
    return [sheet]


SHEETS: dict[str, Callable[[Results, float], list[Sheet]]] = {
    "engine": engine_sheets,
    "algorithms": algorithm_sheets,
    "events": event_sheets,
    "store": store_sheets,
    "delivery": delivery_sheets,
    "startup": startup_sheets,
    "spark": spark_sheets,
}
"""The tables of each part, by its name."""
