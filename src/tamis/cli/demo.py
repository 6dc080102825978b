"""``tamis demo``: the car-ad example of seed 4, section 2.7, then a market through the pipeline."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli.explaining import print_explanation
from tamis.cli.market import Market, Outcome, counts_of, outcome_of
from tamis.cli.stages import Stages, wait_for
from tamis.cli.terminal import BadInput, announce_first_use, stderr_console
from tamis.index import Index
from tamis.language import Explanation, parse_filter
from tamis.model import Event, Subscription
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings

# As the paper writes them; it calls the values Fixed, so the years are texts.
FILTERS = {
    "F1": "mark=FORD&model=FOCUS&model=MONDEO&year=2016",
    "F2": "year_from=2014&year_to=2016",
    "F3": "mark=FORD&model=MONDEO",
}
ADS = {
    "A1": {"region": "Moscow", "mark": "FORD", "model": "MONDEO", "year": "2016"},
    "A2": {"region": "Saint-Petersburg", "mark": "BMW", "model": "3ER", "year": "2015"},
}
EXPECTED = {"A1": ["F1", "F2", "F3"], "A2": ["F2"]}

_POST_EVERY_S = 0.5
_LONGEST_S = 28.0


def run_demo(
    n_searches: int, seconds: float, seed: int, as_json: bool, keep_on: int | None = None
) -> None:
    """Show both parts on stdout; progress on stderr if that is a terminal.

    With ``keep_on`` a service goes on with the same searches on that port until it is stopped.
    """
    announce_first_use()
    told, why = _paper()
    console = Console(quiet=as_json, highlight=False)
    _print_paper(console, told, why)
    console.print(f"[bold]2. A market[/bold]: {n_searches:,} saved searches, ads through Spark\n")
    stages = Stages(stderr_console())
    with tempfile.TemporaryDirectory(prefix="tamis-demo-") as folder:
        market = Market(Path(folder), n_searches, seed)
        outcome = _run_market(market, seconds, stages)
        if as_json:
            paper = {"told": told, "explanation": why.to_json()}
            found = {"subscriptions": n_searches, "events": len(market.ads), **outcome.to_json()}
            made = {"paper": paper, "market": {**found, "stages": stages.seconds}}
            print(json.dumps(made, ensure_ascii=False))
        else:
            _print_market(console, market, outcome, stages.seconds)
        if keep_on is not None:
            from tamis.cli.keeping import keep_market

            keep_market(market, keep_on, Console(highlight=False))


# -- the example of the paper


def _paper() -> tuple[dict[str, list[str]], Explanation]:
    index = Index()
    index.add_many(
        Subscription(id, parse_filter(text, spelling="query")) for id, text in FILTERS.items()
    )
    told = {id: sorted(index.match(Event(id, ad))) for id, ad in ADS.items()}
    if told != EXPECTED:
        raise BadInput(f"the paper says {EXPECTED}, the index {told}; please report this")
    return told, index.explain("F1", ADS["A2"])


def _print_paper(console: Console, told: dict[str, list[str]], why: Explanation) -> None:
    console.print("[bold]1. The car-ad example of the paper[/bold] (seed 4, section 2.7)\n")
    table = _table("search", "filter, in HTTP query notation")
    for id, text in FILTERS.items():
        table.add_row(id, text)
    console.print(table)
    console.print()
    table = _table("ad", "", "tells")
    for id, ad in ADS.items():
        table.add_row(id, ", ".join(ad.values()), "[green]" + ", ".join(told[id]))
    console.print(table)
    console.print("\nWhy A2 is nothing for F1:")
    print_explanation(why, console)
    console.print()


# -- a market


def _run_market(market: Market, seconds: float, stages: Stages) -> Outcome:
    """Stream ads through the pipeline until some digests were told."""
    market.open()
    pipeline = Pipeline(read_settings(market.folder / "pipeline.toml"))
    try:
        with stages.timed("starting Spark, generating searches"):
            with ThreadPoolExecutor(1) as beside:
                generated = beside.submit(market.generate)
                pipeline.connect()
            generated.result()
        with stages.timed("indexing the searches") as say:
            pipeline.start()
            market.post(1)
            _wait_for_ads(pipeline, 1, say)
        with stages.timed("streaming ads") as say:
            _stream(market, pipeline, seconds, say)
        with stages.timed("waiting for the outbox") as say:
            _wait_for_ads(pipeline, len(market.ads), say)
            wait_for(
                pipeline, lambda _: counts_of(market).is_complete, lambda _: None,
                "a match is neither told nor waiting",
            )  # fmt: skip
    finally:
        with stages.timed("stopping"):
            pipeline.stop()
    with stages.timed("checking"):
        return outcome_of(market)


def _stream(market: Market, pipeline: Pipeline, seconds: float, say: Callable[[str], None]) -> None:
    """Post ads, and let a newcomer save, change and delete a search meanwhile.

    It goes on until a full minute has passed, when digests are due, unless that is far off.
    """
    start = time.time()
    full_minute = (start // 60 + 1) * 60
    end = start + seconds
    if full_minute - start < _LONGEST_S:
        end = max(end, full_minute + 1)
    steps = [
        (0.25, lambda: market.save("saved", "kind = 'car'")),
        (0.5, lambda: market.save("changed", "kind = 'flat' AND price < 50000")),
        (0.75, lambda: market.forget("deleted")),
    ]
    while (now := time.time()) < end and pipeline.is_running():
        if steps and now >= start + steps[0][0] * (end - start):
            steps.pop(0)[1]()
        market.post()
        status = pipeline.status()
        say(f"{status.events:,} ads, {status.matches:,} matches, {status.notifications:,} told")
        time.sleep(max(0.0, now + _POST_EVERY_S - time.time()))


def _wait_for_ads(pipeline: Pipeline, n_ads: int, say: Callable[[str], None]) -> None:
    wait_for(
        pipeline,
        lambda status: status.events >= n_ads,
        lambda status: say(f"{status.events:,} ads"),
        "the pipeline did not come to an end",
    )


def _print_market(
    console: Console, market: Market, outcome: Outcome, stages: Mapping[str, float]
) -> None:
    counts = Table(box=None, show_header=False, pad_edge=False)
    counts.add_column(style="dim")
    counts.add_column(justify="right")
    counts.add_column(style="dim")
    for row in (
        ("ads", f"{len(market.ads):,}", ""),
        ("matches", f"{outcome.counts.n_matches:,}", ""),
        ("notifications", f"{outcome.n_notifications:,}",
         f"to {outcome.n_subscribers:,} subscribers; {outcome.n_digests:,} tell of several ads"),
        ("  matches told", f"{outcome.counts.n_told:,}", ""),
        ("  waiting for their time", f"{outcome.counts.n_waiting:,}", "every minute, or daily"),
        ("  held back", f"{outcome.counts.n_held_back:,}", "by a cap of 2 notifications a minute"),
        ("from ad to match", _span(outcome.match_seconds), "median, 99th percentile"),
        ("from ad to outbox", _span(outcome.outbox_seconds), "where it is due at once"),
        *(("a new search is told of the first ad after", f"{held:.1f} s", "")
          for held in outcome.change_seconds.values()),
    ):  # fmt: skip
        counts.add_row(*row)
    console.print(counts)
    console.print()
    table = _table("stage", "seconds")
    for name, held in stages.items():
        table.add_row(name, f"{held:.1f}")
    console.print(table)
    equal = f"\n✓ {outcome.n_checked} ads checked against the reference: equal; no match is missing"
    console.print(Text(equal, "green"))


def _span(seconds: tuple[float, float]) -> str:
    return f"{seconds[0]:.1f}, {seconds[1]:.1f} s"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, justify="right" if name == "ads" else "left", overflow="fold")
    return table
