"""What is shown of the cells: a table and a plot an operation, cost against N."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.bench.aims import at_path, number
from tamis.bench.events.suite import WORKLOAD, n_of, size_of
from tamis.bench.extras import extra
from tamis.bench.results import Key, Results
from tamis.bench.tables import Sheet

# Colour-blind safe (Okabe and Ito).
_BLUE, _SKY, _ORANGE, _RED, _GREEN, _GREY = (
    "#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#009E73", "#999999",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A number of a cell, at every size."""

    label: str
    path: str
    colour: str
    mark: str = "o"


@dataclass(frozen=True, slots=True)
class Figure:
    """An operation."""

    cell: str
    title: str
    unit: str
    axis: str
    lines: tuple[Line, ...]
    note: str = ""


_MEDIAN = "median_us"
_MO_TREE = Line("MO-Tree", f"mo_tree.{_MEDIAN}", _ORANGE, "s")
_BEQ_TREE = Line("BEQ-Tree", f"beq_tree.{_MEDIAN}", _RED, "^")
_RTREE = Line("rtree", f"rtree.{_MEDIAN}", _GREEN, "D")

FIGURES = (
    Figure(
        "matching", "Matching an event", "µs, median", "subscriptions",
        (
            Line("Index, subscriptions that move", f"near_me.{_MEDIAN}", _BLUE),
            Line("Index, boxes", f"boxes.{_MEDIAN}", _SKY, "v"),
            _MO_TREE, _RTREE,
            Line("scan", f"scan.{_MEDIAN}", _GREY, "x"),
        ),
        "One event at a time until its rows are there. The others have the boxes: MO-Tree of our "
        "registry with the place and the four most popular attributes indexed, `rtree` with the "
        "place and a kernel that looks at the rest. BEQ-Tree does not match events.",
    ),
    Figure(
        "subscriptions", "The events of a subscription", "µs, median", "events",
        (
            Line("EventStore, boxes", f"boxes.{_MEDIAN}", _BLUE),
            Line("EventStore, boxes, first ten", f"boxes_limited.{_MEDIAN}", _SKY, "v"),
            Line("EventStore, near me", f"near_me.{_MEDIAN}", "#CC79A7", "P"),
            _MO_TREE, _BEQ_TREE, _RTREE,
        ),
        "Newest first as ids; all that are valid unless it says the first ten. The others return "
        "unordered numbers.",
    ),
    Figure(
        "insert", "Inserting an event", "µs an event", "events that are there",
        (
            Line("one by one, median", f"one.{_MEDIAN}", _BLUE),
            Line("one by one, mean", "one.mean_us", _BLUE, "v"),
            Line("Events, 10,000 at once", "events_us", _SKY, "P"),
            Line("Arrow tables of 10,000", "tables.us_per_event", "#CC79A7", "P"),
            _MO_TREE, _BEQ_TREE, _RTREE,
        ),
        "With making segments and merging them, which single calls pay for: hence the mean. The "
        "others insert one by one (median) and keep no ids.",
    ),
    Figure(
        "expiry", "Dropping an event", "µs an event", "events, of which half expire",
        (
            Line("EventStore.expire, amortised", "us_per_event", _BLUE),
            _MO_TREE, _BEQ_TREE, _RTREE,
        ),
        "`expire` 10,000 at a time until all that have expired are gone and their memory is given "
        "back; the others remove one by one (median).",
    ),
    Figure(
        "move", "Moving a subscription", "µs", "subscriptions",
        (
            Line("Index.move, median", f"one.{_MEDIAN}", _BLUE),
            Line("Index.move_many, each", "many_us", _SKY, "v"),
        ),
        "Of the others MO-Tree can give a subscription another box (`update`), which is not "
        "measured here.",
    ),
    Figure(
        "memory", "Memory of N subscriptions and N events", "MB", "N",
        (
            Line("boxes, process", "boxes.rss_mb", _BLUE),
            Line("boxes, counted", "boxes.counted_mb", _SKY, "v"),
            Line("near me, process", "near_me.rss_mb", _RED, "s"),
            Line("near me, counted", "near_me.counted_mb", _ORANGE, "^"),
        ),
        "What a fresh process grows by, and what index and store count themselves. Boxes are given "
        "as arrays (`Index.from_boxes`); near-me subscriptions as objects, 5,000 at a time.",
    ),
)  # fmt: skip


def keys_of(results: Results, cell: str, scale: float) -> list[Key]:
    """The keys of a cell at all sizes there are, ascending."""
    points = {key.point for key, _ in results.all() if (key.cell, key.scale) == (cell, scale)}
    keys = [Key(cell, WORKLOAD, scale, point) for point in points]
    return sorted(keys, key=lambda key: size_of(key.point or "1M"))


def sheet_of(results: Results, scale: float, figure: Figure) -> Sheet:
    """The numbers of a figure, a column a size."""
    keys = keys_of(results, figure.cell, scale)
    columns = (f"{figure.unit}, N =", *(f"{n_of(key):,}" for key in keys))
    sheet = Sheet(figure.title, columns)
    found = [results.read(key) for key in keys]
    for line in figure.lines:
        values = [at_path(one, line.path) for one in found]
        if any(value is not None for value in values):
            sheet.rows.append((line.label, *map(number, values)))
    return sheet


def reader_sheet(results: Results, scale: float) -> Sheet:
    """Moves beside a reader."""
    columns = ("the reader matches", "moves/s", "of a core", "events/s in peace", "beside", "keeps")
    sheet = Sheet("Moves at 50,000 a second while another thread matches", columns)
    found = results.read(Key("move", WORKLOAD, scale))
    for label, name in (("batches", "batches"), ("one by one", "one_by_one")):
        if held := found.get(name):
            shown = [
                held["moves_per_second"], held["writer_cpu_share"],
                held["quiet"]["events_per_second"], held["beside"]["events_per_second"],
            ]  # fmt: skip
            sheet.rows.append((label, *map(number, shown), f"{held['speed_kept']:.0%}"))
    return sheet


def polygon_sheet(results: Results, scale: float) -> Sheet:
    """What polygons cost those who match beside them."""
    columns = (
        "1,000 shapes", "alone, µs", "beside boxes", "beside polygons", "polygons / boxes",
        "polygons / alone", "matches of boxes", "of polygons",
    )  # fmt: skip
    sheet = Sheet("Matching an event beside polygons", columns)
    found = results.read(Key("polygon", WORKLOAD, scale))
    for name, label in (("far", "in another city"), ("near", "around places of events")):
        if held := found.get(name):
            times = (one["median_us"] for one in (found["alone"], held["boxes"], held["polygons"]))
            counts = held["boxes_n_matches"], held["polygons_n_matches"]
            shown = *times, held["ratio"], held["ratio_to_alone"], *counts
            sheet.rows.append((label, *map(number, shown)))
    return sheet


def draw_plots(results: Results, scale: float, directory: Path) -> dict[str, Path]:
    """A plot for each operation that was measured at two sizes or more: cell to file."""
    drawn: dict[str, Path] = {}
    for figure in FIGURES:
        keys = keys_of(results, figure.cell, scale)
        if len(keys) > 1:
            directory.mkdir(parents=True, exist_ok=True)
            drawn[figure.cell] = directory / f"events-{figure.cell}.png"
            _draw(figure, keys, results, drawn[figure.cell])
    return drawn


def _draw(figure: Figure, keys: list[Key], results: Results, path: Path) -> None:
    extra("matplotlib").use("Agg")
    pyplot, ticker = extra("matplotlib.pyplot"), extra("matplotlib.ticker")
    canvas, axes = pyplot.subplots(figsize=(7.2, 4.3), layout="constrained")
    found = [(n_of(key), results.read(key)) for key in keys]
    for line in figure.lines:
        points = [(n, at_path(one, line.path)) for n, one in found]
        shown = [(n, value) for n, value in points if value is not None]
        if shown:
            style: dict[str, Any] = {"linestyle": "--"} if "mean" in line.path else {}
            look = {"color": line.colour, "marker": line.mark, "markersize": 5, **style}
            axes.plot(*zip(*shown, strict=True), label=line.label, **look)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(figure.title, fontsize=12)
    axes.set_xlabel(f"{figure.axis} (log)", fontsize=9)
    axes.set_ylabel(f"{figure.unit} (log)", fontsize=9)
    axes.set_xticks([n for n, _ in found])
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.minorticks_off()
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=120)
    pyplot.close(canvas)
