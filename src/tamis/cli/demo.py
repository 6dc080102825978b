"""``tamis demo``: the car-ad example of seed 4, section 2.7, then thousands of saved searches."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tamis.bench.ads import generate_ads, generate_searches
from tamis.cli.explaining import print_explanation
from tamis.cli.terminal import BadInput, announce_first_use
from tamis.index import Index
from tamis.language import Explanation, evaluate, parse_filter, to_sql
from tamis.model import Event, Subscription

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

_CHUNK = 50
_CHECKED = 20
_SHOWN = 5


def run_demo(n_subscriptions: int, n_events: int, seed: int, as_json: bool) -> None:
    """Show both parts on stdout; progress on stderr if that is a terminal."""
    announce_first_use()
    told, why = _paper()
    console = Console(quiet=as_json, highlight=False)
    _print_paper(console, told, why)
    market = _market(n_subscriptions, n_events, seed, console)
    if as_json:
        paper = {"told": told, "explanation": why.to_json()}
        print(json.dumps({"paper": paper, "generated": market.to_json()}, ensure_ascii=False))
    else:
        _print_market(console, market)


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


@dataclass(frozen=True, slots=True)
class _Market:
    """What the generated part found."""

    index: Index
    ads: Sequence[Event]
    told: Sequence[Sequence[str]]
    build_seconds: float
    us_per_event: Sequence[float]
    n_checked: int

    @property
    def owners(self) -> set[str]:
        return {self.index[id].owner for ids in self.told for id in ids}

    @property
    def broadest(self) -> list[tuple[str, int]]:
        return Counter(id for ids in self.told for id in ids).most_common(_SHOWN)

    @property
    def median_us(self) -> float:
        return sorted(self.us_per_event)[len(self.us_per_event) // 2]

    def first(self) -> Iterator[tuple[Event, Sequence[str]]]:
        told = ((ad, ids) for ad, ids in zip(self.ads, self.told, strict=True) if ids)
        for _ in range(_SHOWN):
            if (one := next(told, None)) is not None:
                yield one

    def to_json(self) -> dict[str, Any]:
        return {
            "subscriptions": len(self.index),
            "events": len(self.ads),
            "matches": sum(map(len, self.told)),
            "subscriptions_told": len({id for ids in self.told for id in ids}),
            "subscribers_told": len(self.owners),
            "build_seconds": round(self.build_seconds, 3),
            "median_us_per_event": round(self.median_us, 1),
            "checked_events": self.n_checked,
            "broadest": [{"id": id, "events": n} for id, n in self.broadest],
            "first": [{"event_id": ad.id, "subscription_ids": list(t)} for ad, t in self.first()],
        }


def _market(n_subscriptions: int, n_events: int, seed: int, console: Console) -> _Market:
    console.print(
        f"[bold]2. A market[/bold]: {n_subscriptions:,} saved searches, {n_events:,} new ads\n"
    )
    columns = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn())
    errors = Console(stderr=True)
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    ) as progress:
        task = progress.add_task("generating", total=None)
        searches, ads = generate_searches(n_subscriptions, seed), generate_ads(n_events, seed)
        index, start = Index(), time.perf_counter()
        progress.update(task, description="saving searches")
        index.add_many(searches)
        build_seconds = time.perf_counter() - start
        told: list[list[str]] = []
        us_per_event: list[float] = []
        progress.update(task, description="matching ads", total=n_events)
        for at in range(0, n_events, _CHUNK):
            chunk, start = ads[at : at + _CHUNK], time.perf_counter()
            told.extend(index.match_batch(chunk))
            us_per_event += [(time.perf_counter() - start) * 1e6 / len(chunk)] * len(chunk)
            progress.advance(task, len(chunk))
        sample = range(0, n_events, max(1, n_events // _CHECKED))
        progress.update(task, description="checking a sample", completed=0, total=len(sample))
        for event in sample:
            _check(searches, ads[event], told[event])
            progress.advance(task)
    return _Market(index, ads, told, build_seconds, us_per_event, len(sample))


def _check(searches: Sequence[Subscription], ad: Event, told: Sequence[str]) -> None:
    expected = {one.id for one in searches if evaluate(one.condition, ad)}
    if set(told) != expected or len(told) != len(expected):
        raise BadInput(f"{ad.id}: the index and the reference disagree; please report this")


def _print_market(console: Console, market: _Market) -> None:
    held = market.to_json()
    counts = Table(box=None, show_header=False, pad_edge=False)
    counts.add_column(style="dim")
    counts.add_column(justify="right")
    for name, text in (
        ("ads", f"{held['events']:,}"),
        ("matches", f"{held['matches']:,}"),
        ("searches that heard of an ad", f"{held['subscriptions_told']:,}"),
        ("subscribers told", f"{held['subscribers_told']:,}"),
        ("time to save all searches", f"{held['build_seconds']:.2f} s"),
        ("time per ad, median", _duration(held["median_us_per_event"])),
    ):
        counts.add_row(name, text)
    console.print(counts)
    equal = f"✓ checked {market.n_checked} events against the reference: equal"
    console.print(Text(equal, "green"))
    console.print()

    table = _table("broadest searches", "ads", "filter")
    for id, n in market.broadest:
        table.add_row(id, str(n), Text(to_sql(market.index[id].condition)))
    console.print(table)
    console.print()

    table = _table("ad", "", "told, highest priority first")
    for ad, ids in market.first():
        more = f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
        table.add_row(ad.id, _describe(ad), "[green]" + ", ".join(ids[:3]) + f"[/green]{more}")
    console.print(table)


def _describe(ad: Event) -> str:
    def of(name: str) -> Any:
        return ad.attributes[name][0]

    if of("kind") == "car":
        what = f"{of('mark')} {of('model')} {of('year')}"
    else:
        what = f"flat, {of('rooms')} rooms, {of('area')} m²"
    return f"{what}, {of('price'):,.0f}, {of('region')}"


def _duration(us: float) -> str:
    return f"{us / 1_000:.1f} ms" if us >= 1_000 else f"{us:.0f} µs"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, justify="right" if name == "ads" else "left", overflow="fold")
    return table
