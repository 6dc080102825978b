"""``tamis demo --city``: a minute in a city, through the pipeline, and a map of it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli.city import City
from tamis.cli.city_map import draw_map
from tamis.cli.stages import Stages, wait_for
from tamis.cli.terminal import BadInput, announce_first_use, stderr_console
from tamis.language import evaluate
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings

_EVERY_S = 0.5
_PROMOTIONS = 6  # each time
_WALKERS = 25
_COLUMNS = ["event_id", "subscription_id"]


@dataclass(frozen=True, slots=True)
class Told:
    """Who was told of what: pairs of promotion and customer."""

    live: list[tuple[str, str]]
    late: list[tuple[str, str]]

    @property
    def all(self) -> list[tuple[str, str]]:
        """All of them."""
        return self.live + self.late


def run_city(n_customers: int, seconds: float, seed: int, as_json: bool, picture: Path) -> None:
    """Run the demo; table or JSON on stdout, progress on stderr if that is a terminal."""
    announce_first_use()
    stages = Stages(stderr_console())
    with tempfile.TemporaryDirectory(prefix="tamis-city-") as folder:
        city = City(Path(folder), n_customers, seed)
        told = _run(city, seconds, stages)
        n_checked = _check(city, told)
    with stages.timed("drawing the map"):
        draw_map(city, told.live, told.late, picture)
    counts = {
        "customers": len(city.customers),
        "moves": city.n_moves,
        "promotions": len(city.promotions),
        "told_live": len(told.live),
        "told_late": len(told.late),
        "customers_told": len({customer for _, customer in told.all}),
        "checked_customers": n_checked,
    }
    if as_json:
        print(json.dumps({**counts, "map": str(picture), "stages": stages.seconds}))
    else:
        _print(Console(highlight=False), counts, stages, picture)


def _run(city: City, seconds: float, stages: Stages) -> Told:
    city.open()
    pipeline = Pipeline(read_settings(city.folder / "pipeline.toml"))
    try:
        with stages.timed("starting Spark"):
            pipeline.connect()
        with stages.timed("indexing the customers") as say:
            pipeline.start()
            city.promote(1)
            _wait_for_promotions(pipeline, 1, say)
        with stages.timed("a minute in the city") as say:
            _live(city, pipeline, seconds, say)
        with stages.timed("waiting for the last matches") as say:
            _wait_for_promotions(pipeline, len(city.promotions), say)
    finally:
        with stages.timed("stopping"):
            pipeline.stop()
    return Told(*(_read(city, kind) for kind in ("matches-[!l]*", "matches-late-*")))


def _live(city: City, pipeline: Pipeline, seconds: float, say: Callable[[str], None]) -> None:
    end = time.time() + seconds
    while (now := time.time()) < end and pipeline.is_running():
        city.promote(_PROMOTIONS)
        city.walk(_WALKERS)
        status = pipeline.status()
        say(f"{status.events:,} promotions, {city.n_moves:,} moves, {status.matches:,} matches")
        time.sleep(max(0.0, now + _EVERY_S - time.time()))


def _wait_for_promotions(pipeline: Pipeline, n: int, say: Callable[[str], None]) -> None:
    wait_for(
        pipeline,
        lambda status: status.events >= n,
        lambda status: say(f"{status.events:,} promotions"),
        "the pipeline did not take up every promotion",
    )


def _read(city: City, names: str) -> list[tuple[str, str]]:
    log = city.folder / "state" / "matcher" / "matches"
    tables = [pq.read_table(file, columns=_COLUMNS) for file in log.glob(f"batch=*/{names}")]
    if not tables:
        return []
    whole = pa.concat_tables(tables, promote_options="permissive")
    return list(zip(*(whole[name].to_pylist() for name in _COLUMNS), strict=True))


def _check(city: City, told: Told) -> int:
    """Nobody is told twice; and those who stay are told what the reference says, and no more."""
    pairs = told.all
    if len(set(pairs)) < len(pairs):
        raise BadInput("somebody was told twice of the same promotion; please report this")
    # Whether one that nobody was told of at once had expired on arrival, only the pipeline knows.
    valid = {id for id, _ in told.live}
    promotions = [one for one in city.promotions if one.id in valid]
    staying = [one for one in city.customers.values() if one.id not in city.paths][:300]
    for customer in staying:
        condition = customer.condition
        expected = {one.id for one in promotions if evaluate(condition, one.attributes)}
        if {event for event, id in pairs if id == customer.id} != expected:
            raise BadInput(f"{customer.id}: the pipeline and the reference disagree; report this")
    return len(staying)


def _print(console: Console, counts: dict[str, int], stages: Stages, picture: Path) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(style="dim")
    notes = {
        "moves": "of walkers, each a change of a subscription",
        "promotions": "valid for 4 to 40 seconds",
        "told_live": "when the promotion came",
        "told_late": "when the customer came by",
    }
    for name, count in counts.items():
        table.add_row(name.replace("_", " "), f"{count:,}", notes.get(name, ""))
    console.print(table)
    console.print()
    times = Table(box=None, pad_edge=False, header_style="dim")
    times.add_column("stage")
    times.add_column("seconds", justify="right")
    for name, held in stages.seconds.items():
        times.add_row(name, f"{held:.1f}")
    console.print(times)
    console.print(f"\nmap: {picture}")
    checked = f"✓ {counts['checked_customers']} customers checked against the reference"
    console.print(Text(f"{checked}; nobody was told twice", "green"))
