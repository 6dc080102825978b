"""Plots of the result files, as PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamis.bench.aims import at_path
from tamis.bench.extras import extra
from tamis.bench.results import Key, Results
from tamis.bench.sweeps import SWEEPS
from tamis.bench.tables import OTHER_PATHS
from tamis.bench.workloads import FULL_SIZES

# Colour-blind safe (Okabe and Ito); a workload keeps its colour and mark in every plot.
COLOURS = {"W1": "#0072B2", "W2": "#D55E00", "W3": "#009E73", "W4": "#CC79A7", "W5": "#E69F00"}
_MARKS = {"W1": "o", "W2": "s", "W3": "^", "W4": "D", "W5": "v"}


def draw_plots(results: Results, scale: float, directory: Path) -> dict[str, Path]:
    """Every plot there are results for: name to file."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Path] = {}
    for name, draw in _plots().items():
        figure = draw(results, scale)
        if figure is not None:
            drawn[name] = directory / f"engine-{name}.png"
            figure.savefig(drawn[name], dpi=120)
            extra("matplotlib.pyplot").close(figure)
    return drawn


def _plots() -> dict[str, Callable[[Results, float], Any]]:
    sweeps = {name: _sweep_plot(name) for name in SWEEPS}
    return {"others": draw_others, **sweeps, "priorities": _priority_plot}


def new_figure(title: str, n_panels: int = 1) -> tuple[Any, Any]:
    """A figure with one or more panels beside each other, and its axes."""
    matplotlib = extra("matplotlib")
    matplotlib.use("Agg")
    figure, axes = extra("matplotlib.pyplot").subplots(
        1, n_panels, figsize=(7.2 if n_panels == 1 else 10.5, 4.3), layout="constrained"
    )
    figure.suptitle(title, fontsize=12)
    for panel in axes if n_panels > 1 else [axes]:
        panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _sweep_plot(name: str) -> Callable[[Results, float], Any]:
    def draw(results: Results, scale: float) -> Any:
        lines = {
            workload: points
            for workload in SWEEPS[name].makers
            if (points := _points(results, name, workload, scale))
        }
        if not lines:
            return None
        figure, (times, matches) = new_figure(f"{SWEEPS[name].title}, scale {scale:g}", 2)
        for workload, points in lines.items():
            _draw_line(times, matches, workload, points, name)
        for panel in (times, matches):
            panel.set_xlabel(SWEEPS[name].axis, fontsize=8.5)
            panel.set_yscale("log" if panel is times else "symlog")
            if name == "sweep-n":
                panel.set_xscale("log")
        times.set_ylabel("µs an event, median (log)")
        matches.set_ylabel("matches an event, mean (log, linear below 1)")
        times.plot([], [], color="#666666", linestyle=":", label="the scan")
        times.legend(fontsize=8)
        matches.legend(fontsize=8)
        _label_plainly(times, matches, name)
        return figure

    return draw


def _label_plainly(times: Any, matches: Any, name: str) -> None:
    """20, 50, 100 and 10 k, 1 M instead of powers of ten."""
    ticker = extra("matplotlib.ticker")
    low, high = times.get_ylim()
    steps = (1.0,) if high / low > 300 else (1.0, 2.0, 5.0)
    times.yaxis.set_major_locator(ticker.LogLocator(subs=steps))
    times.yaxis.set_minor_locator(ticker.NullLocator())
    for axis in (times.yaxis, matches.yaxis):
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if name == "sweep-n":
        for panel in (times, matches):
            panel.xaxis.set_major_formatter(ticker.EngFormatter())


def _draw_line(
    times: Any, matches: Any, workload: str, points: list[dict[str, Any]], name: str
) -> None:
    x = [p["n_subscriptions"] if name == "sweep-n" else p["point"] for p in points]
    look = {"color": COLOURS[workload], "marker": _MARKS[workload], "markersize": 5}
    times.plot(x, [p["rows"]["median_us"] for p in points], label=f"Index, {workload}", **look)
    scan = [p["scan"]["median_us"] for p in points]
    times.plot(x, scan, color=COLOURS[workload], linestyle=":", linewidth=1.2)
    matches.plot(x, [p["matches_mean"] for p in points], label=workload, **look)


def _points(results: Results, name: str, workload: str, scale: float) -> list[dict[str, Any]]:
    keys = (Key(name, workload, scale, f"{point:g}") for point in SWEEPS[name].points)
    return [results.read(key) for key in keys if key in results]


def draw_others(results: Results, scale: float) -> Any:
    """Bars: µs an event of the engine, the scan and the others on each workload."""
    series: dict[str, dict[str, float]] = {}
    for workload in FULL_SIZES:
        match = results.read(Key("match", workload, scale))
        if not match:
            continue
        series.setdefault("Index", {})[workload] = match["rows"]["median_us"]
        series.setdefault("scan (Numba)", {})[workload] = match["scan"]["median_us"]
        for cell in OTHER_PATHS:
            found = results.read(Key(cell, workload, scale))
            if found and not found["limited"]:
                us = at_path(found, OTHER_PATHS[cell])
                series.setdefault(_NAMES[cell], {})[workload] = us
    if not series:
        return None
    figure, axes = new_figure(f"Time of an event, equal results, scale {scale:g}")
    _draw_bars(axes, series)
    axes.set_ylabel("µs an event (log)")
    axes.legend(fontsize=8, ncols=3)
    return figure


_NAMES = {
    "numpy": "NumPy", "rtree": "rtree", "duckdb": "DuckDB, batch", "polars": "Polars, batch",
}  # fmt: skip
_BARS = {
    "Index": "#0072B2", "scan (Numba)": "#999999", "NumPy": "#56B4E9", "rtree": "#009E73",
    "DuckDB, batch": "#E69F00", "Polars, batch": "#CC79A7",
}  # fmt: skip


def _draw_bars(axes: Any, series: dict[str, dict[str, float]]) -> None:
    workloads = sorted({workload for held in series.values() for workload in held})
    shown = [name for name in _BARS if series.get(name)]
    width = 0.8 / max(1, len(shown))
    for at, name in enumerate(shown):
        held = series[name]
        places = [workloads.index(w) + (at - (len(shown) - 1) / 2) * width for w in held]
        axes.bar(places, list(held.values()), width * 0.92, label=name, color=_BARS[name])
    axes.set_yscale("log")
    axes.set_ylim(1, axes.get_ylim()[1] * 8)  # room for the legend
    axes.grid(False, axis="x")
    axes.set_xticks(range(len(workloads)), workloads)


def _priority_plot(results: Results, scale: float) -> Any:
    found = results.read(Key("priorities", "W3", scale))
    levels = found.get("done_us_of_level")
    if not levels:
        return None
    figure, axes = new_figure("W3: when all matches of a priority are determined")
    axes.bar(range(len(levels)), levels, color=COLOURS["W3"], label="match_iter")
    axes.axhline(found["match_median_us"], color="#666666", linestyle=":", label="match, all ids")
    axes.set_xticks(range(len(levels)))
    axes.set_xlabel("priority (0 is the highest)")
    axes.set_ylabel("µs since the event came, median")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure
