"""Drawing: a picture a figure, as PNG, read from result files only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tamis.bench.extras import extra
from tamis.bench.reproduce.figures import OURS, Kind
from tamis.bench.reproduce.reading import Shown

# Colour-blind safe (Okabe and Ito); ours is black in every picture.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#F0E442")
_MARKS = "os^Dv<>P"
_FEW_DECADES = 300  # between the ends of an axis
_OUR_COLOUR, _OUR_MARK = "#000000", "*"


def draw(shown: Shown, directory: Path) -> Path:
    """Draw a figure; return the file."""
    directory.mkdir(parents=True, exist_ok=True)
    extra("matplotlib").use("Agg")
    pyplot = extra("matplotlib.pyplot")
    picture, axes = pyplot.subplots(figsize=(8.4, 4.3), layout="constrained")
    axes.set_title(_title(shown), fontsize=10, loc="left")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    {Kind.LINES: _lines, Kind.LEVELS: _levels, Kind.BARS: _bars}[shown.figure.kind](axes, shown)
    if shown.figure.is_log and any(y > 0 for held in shown.data().values() for y in held.values()):
        _use_logarithms(axes)
    else:
        axes.set_ylim(bottom=0)
    picture.legend(fontsize=8, loc="outside right center")  # beside the lines, never over them
    path = directory / picture_name(shown)
    picture.savefig(path, dpi=110)
    pyplot.close(picture)
    return path


def picture_name(shown: Shown) -> str:
    """The file of a figure."""
    return f"{shown.paper.key}-{shown.figure.number.replace(' ', '-')}.png"


def _title(shown: Shown) -> str:
    scale = "" if shown.scale == 1 else f", at {100 * shown.scale:g} % of the paper's size"
    return f"{shown.paper.key} {shown.figure.name}: {shown.figure.title}{scale}"


def _use_logarithms(axes: Any) -> None:
    """Plain numbers along the axis, also between the powers of ten where these are few."""
    ticker = extra("matplotlib.ticker")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low < _FEW_DECADES else (1.0,)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,.10g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def _look(shown: Shown, at: int, key: str) -> dict[str, Any]:
    if key == OURS:
        return {"color": _OUR_COLOUR, "marker": _OUR_MARK, "markersize": 8, "linewidth": 1.8}
    at %= len(_COLOURS)
    return {"color": _COLOURS[at], "marker": _MARKS[at], "markersize": 4.5, "linewidth": 1.3}


def _lines(axes: Any, shown: Shown) -> None:
    experiment = shown.paper.experiment(shown.figure.experiment)
    for metric, style in zip(shown.figure.metrics, ("-", ":"), strict=False):
        for at, line in enumerate(shown.lines):
            held = shown.numbers(line, metric)
            if held:
                name = line.label if style == "-" else None
                look = _look(shown, at, line.key)
                x = [experiment.at_scale(point, shown.scale) for point in held]
                axes.plot(x, list(held.values()), style, label=name, **look)
    if len(shown.figure.metrics) > 1:
        axes.plot([], [], ":", color="#666666", label=shown.figure.metrics[1].label)
    axes.set_xlabel(experiment.axis)
    axes.set_ylabel(shown.figure.metrics[0].label)
    if not experiment.varies_size and max(experiment.points) >= 100 * min(experiment.points) > 0:
        axes.set_xscale("log")
    points = {x for line in shown.lines for x in shown.cells[line.key]}
    ticks = sorted(experiment.at_scale(point, shown.scale) for point in points)
    axes.set_xticks(ticks, [_short(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(extra("matplotlib.ticker").NullLocator())


def _short(number: float) -> str:
    """A number as a tick shows it."""
    for power, letter in ((1e6, "M"), (1e3, "k")):
        if number >= power:
            return f"{number / power:g}{letter}"
    return f"{number:g}"


def _levels(axes: Any, shown: Shown) -> None:
    for at, line in enumerate(shown.lines):
        held = shown.numbers(line)
        axes.plot(list(held), list(held.values()), label=line.label, **_look(shown, at, line.key))
    axes.set_xticks(range(len(shown.figure.metrics)))
    axes.set_xlabel("priority (0 is the highest)")
    axes.set_ylabel("ms, mean")


def _bars(axes: Any, shown: Shown) -> None:
    width = 0.8 / max(1, len(shown.lines))
    for at, line in enumerate(shown.lines):
        held = shown.numbers(line)
        places = [i + (at - (len(shown.lines) - 1) / 2) * width for i in held]
        colour = _look(shown, at, line.key)["color"]
        axes.bar(places, list(held.values()), width * 0.92, label=line.label, color=colour)
    axes.grid(False, axis="x")
    axes.set_xticks(
        range(len(shown.figure.metrics)), [one.label for one in shown.figure.metrics], fontsize=8
    )
    axes.set_ylabel("ms, mean")
