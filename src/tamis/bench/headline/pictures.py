"""The plots of the headline page: at most one a part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamis.bench import startup
from tamis.bench.aims import at_path, number
from tamis.bench.events.suite import WORKLOAD as EVENTS_WORKLOAD
from tamis.bench.events.suite import n_of
from tamis.bench.extras import extra
from tamis.bench.headline.parts import Part
from tamis.bench.headline.sheets import OTHERS, algorithms_found
from tamis.bench.plots import draw_others, new_figure
from tamis.bench.results import Key, Results
from tamis.bench.service.suite import DATABASES, aims_of
from tamis.bench.spark.suite import WORKLOAD as SPARK_WORKLOAD
from tamis.bench.suite import ALL

# Colour-blind safe (Okabe and Ito): ours are blue, what we compare with is grey.
_OURS, _OURS_TOO, _THEIRS, _LIMIT = "#0072B2", "#56B4E9", "#999999", "#D55E00"
_TITLES_WITHOUT_MARKS = str.maketrans("", "", "`")

Bars = dict[str, tuple[float, str]]
"""What the bars are of: how long each is, and its colour."""


def draw_pictures(parts: list[Part], root: Path, scale: float, folder: Path) -> dict[str, Path]:
    """Every plot there are results for: the name of its part to its file."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Path] = {}
    for part in parts:
        draw = PICTURES.get(part.name)
        figure = None if draw is None else draw(part.results(root), scale)
        if figure is not None:
            drawn[part.name] = folder / f"performance-{part.name}.png"
            figure.savefig(drawn[part.name], dpi=120)
            extra("matplotlib.pyplot").close(figure)
    return drawn


def _draw_bars(axes: Any, bars: Bars, label: str) -> None:
    """Bars that lie, the first at the top, each with its number."""
    names = list(bars)
    lengths, colours = zip(*bars.values(), strict=True)
    shown = axes.barh(names, lengths, color=colours, height=0.7)
    axes.bar_label(shown, [number(one) for one in lengths], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.set_xlabel(label, fontsize=9)


def _begin_at_zero(axes: Any, bars: Bars) -> None:
    axes.set_xlim(0, 1.25 * max(length for length, _ in bars.values()))  # room for the numbers
    ticker = extra("matplotlib.ticker")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(4))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _make_logarithmic(axes: Any, bars: Bars) -> None:
    lengths = [length for length, _ in bars.values()]
    axes.set_xscale("log")
    axes.set_xlim(min(lengths) / 3, max(lengths) * 6)  # room for the numbers
    ticker = extra("matplotlib.ticker")
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _algorithms(results: Results, scale: float) -> Any:
    found = algorithms_found(results, scale)
    if not found:
        return None
    n = found[0][1]["n_subscriptions"]
    bars = {
        name: (1e3 * one["match"]["median_ms"], _OURS if name == "tamis" else _THEIRS)
        for name, one in found
    }
    figure, axes = new_figure(f"Time of an event on W1, {n:,} subscriptions")
    _draw_bars(axes, bars, "µs an event, median (log)")
    _make_logarithmic(axes, bars)
    return figure


def _events(results: Results, scale: float) -> Any:
    keys = [Key(cell, EVENTS_WORKLOAD, scale) for cell in ("matching", "subscriptions")]
    found = [results.read(key) for key in keys]
    if not all(found):
        return None
    titles = ("the subscriptions of an event", "the events of a subscription")
    n = n_of(keys[0])
    figure, panels = new_figure(f"Both ways to match, {n:,} subscriptions or events", 2)
    for axes, one, title in zip(panels, found, titles, strict=True):
        bars: Bars = {}
        for name, path in (("near me", "near_me"), ("boxes", "boxes")):
            if (us := at_path(one, f"{path}.median_us")) is not None:
                bars[f"Tamis, {name}"] = (us, _OURS if name == "near me" else _OURS_TOO)
        for name, label in OTHERS.items():
            if (us := at_path(one, f"{name}.median_us")) is not None:
                bars[f"{label}, boxes"] = (us, _THEIRS)
        axes.set_title(title, fontsize=10)
        _draw_bars(axes, bars, "µs, median (log)")
        _make_logarithmic(axes, bars)
    return figure


def _store(results: Results, scale: float) -> Any:
    bars: Bars = {}
    for database, colour in zip(DATABASES, (_OURS, _OURS_TOO), strict=True):
        found = results.read(Key("requests", database, scale))
        if found:
            bars[f"{database}, median"] = (found["p50_ms"], colour)
            bars[f"{database}, p99"] = (found["p99_ms"], colour)
    if not bars:
        return None
    limit = next(aim.limit for aim in aims_of(DATABASES[0]) if aim.path == "p99_ms")
    figure, axes = new_figure("A request, 300 due a second")
    axes.axvline(limit, color=_LIMIT, linestyle=":", label=f"aim for p99: {limit:g} ms")
    _draw_bars(axes, bars, "ms from when it was due to its answer (log)")
    _make_logarithmic(axes, bars | {"aim": (limit, _LIMIT)})
    axes.legend(fontsize=8, loc="upper right")
    return figure


def _startup(results: Results, scale: float) -> Any:
    bars: Bars = {}
    for name, cell in startup.CELLS.items():
        if found := results.read(Key(name, ALL, 1.0)):
            title = cell.title.translate(_TITLES_WITHOUT_MARKS)
            bars[title] = (found["median_s"], _THEIRS if name == "python" else _OURS)
    if not bars:
        return None
    figure, axes = new_figure("How long a fresh process takes, kernels compiled before")
    _draw_bars(axes, bars, "seconds, median")
    _begin_at_zero(axes, bars)
    return figure


def _spark(results: Results, scale: float) -> Any:
    whole, join = (results.read(Key(cell, SPARK_WORKLOAD, scale)) for cell in ("parquet", "join"))
    if not (whole and join):
        return None
    figure, panels = new_figure("Parquet to Parquet on two cores, W1", 2)
    of_whole: Bars = {
        "Spark, two cores": (whole["spark_events_per_second"], _OURS),
        "the index alone,\none core": (whole["engine_events_per_second"], _OURS_TOO),
    }
    of_join: Bars = {
        "Tamis": (join["our_events_per_second"], _OURS),
        "a join on range\nconditions": (join["join_events_per_second"], _THEIRS),
    }
    for axes, found, bars in zip(panels, (whole, join), (of_whole, of_join), strict=True):
        axes.set_title(f"{found['n_subscriptions']:,} subscriptions", fontsize=10)
        _draw_bars(axes, bars, "events a second")
        _begin_at_zero(axes, bars)
    return figure


PICTURES: dict[str, Callable[[Results, float], Any]] = {
    "engine": draw_others,
    "algorithms": _algorithms,
    "events": _events,
    "store": _store,
    "startup": _startup,
    "spark": _spark,
}
ALT_TEXTS = {
    "engine": "Time of an event with the Index, the scan, NumPy, DuckDB and Polars",
    "algorithms": "Time of an event with every algorithm of the registry",
    "events": "Time to match an event and to find the events of a subscription, beside others",
    "store": "Median and p99 of a request on each database",
    "startup": "How long a fresh process takes until it is there",
    "spark": "Events a second on Spark, beside the index alone and a join",
}
