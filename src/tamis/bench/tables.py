"""Tables of what the result files hold, for the terminal and for the documentation alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tamis.bench.aims import AIMS, Aim, Reached, at_path, number, reached
from tamis.bench.results import Key, Results
from tamis.bench.suite import WORKLOADS


@dataclass(slots=True)
class Sheet:
    """A table of texts; the first columns are names, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_names: int = 1

    def to_markdown(self) -> str:
        """The table with its notes below."""
        lines = [
            "| " + " | ".join(self.columns) + " |",
            "|---" * self.n_names + "|---:" * (len(self.columns) - self.n_names) + "|",
            *("| " + " | ".join(row) + " |" for row in self.rows),
        ]
        return "\n".join(lines + [f"\n{note}" for note in self.notes]) + "\n"


def match_sheet(results: Results, scale: float) -> Sheet:
    """One event at a time: the engine against the scan."""
    sheet = Sheet(
        "One event at a time, µs",
        (
            "workload", "subscriptions", "matches, mean", "Index, median", "with ids", "mean",
            "p90", "p99", "scan, median", "scan / Index",
        ),
    )  # fmt: skip
    for name, found in _found(results, "match", scale):
        sheet.rows.append(
            (
                name,
                f"{found['n_subscriptions']:,}",
                number(found["matches_mean"]),
                number(at_path(found, "rows.median_us")),
                number(at_path(found, "ids.median_us")),
                number(at_path(found, "rows.mean_us")),
                number(at_path(found, "rows.p90_us")),
                number(at_path(found, "rows.p99_us")),
                number(at_path(found, "scan.median_us")),
                number(found["ratio"]) + "×" if "ratio" in found else "–",
            )
        )
    return sheet


OTHER_PATHS = {
    "numpy": "times.median_us", "rtree": "times.median_us",
    "duckdb": "us_per_event", "polars": "us_per_event",
}  # fmt: skip


def others_sheet(results: Results, scale: float) -> Sheet:
    """The engine against everybody: µs an event, and how many times the engine is as fast."""
    sheet = Sheet(
        "Against others, µs an event (times as long as the Index)",
        ("workload", "Index", "scan", "NumPy", "rtree", "DuckDB (batch)", "Polars (batch)"),
    )
    starred: dict[tuple[str, str], int] = {}
    for name, found in _found(results, "match", scale):
        if "scan" not in found:
            continue
        ours, scan = found["rows"]["median_us"], found["scan"]["median_us"]
        row = [name, number(ours), _beside(scan, found["ratio"])]
        for cell, path in OTHER_PATHS.items():
            other = results.read(Key(cell, name, scale))
            us = at_path(other, path)
            if us is not None and other["limited"]:
                starred[cell, name] = other["n_subscriptions"]
                row.append(number(us) + " *")
            else:
                row.append("–" if us is None else _beside(us, found["ratio"] / other["ratio"]))
        sheet.rows.append(tuple(row))
    if starred:
        limits = ", ".join(f"{c} on {w} {n:,}" for (c, w), n in starred.items())
        sheet.notes.append(
            f"\\* on fewer subscriptions than the Index, to stay bearable: {limits}."
        )
    return sheet


def _beside(us: float, times_as_long: float) -> str:
    # Both are against the scan of their own cell: the cells may be from different hours.
    return f"{number(us)} ({number(times_as_long)}×)"


def batch_sheet(results: Results, scale: float) -> Sheet:
    """Batches on one and two threads."""
    sheet = Sheet(
        "Batches of 1,000 events, µs an event",
        (
            "workload", "one by one, mean", "batch, one thread", "batch, two threads",
            "gain of the batch", "gain of the second thread", "events/s on one thread",
        ),
    )  # fmt: skip
    for name, found in _found(results, "batch", scale):
        columns = ("single_us", "one_thread_us", "two_threads_us")
        gains = (f"{found[gain]:.2f}×" for gain in ("batch_gain", "thread_gain"))
        sheet.rows.append(
            (name, *(number(found[c]) for c in columns), *gains, f"{found['events_per_second']:,}")
        )
    return sheet


def size_sheet(results: Results, scale: float) -> Sheet:
    """Building, memory and files."""
    sheet = Sheet(
        "Building, memory, files",
        (
            "workload", "build, µs/sub", "memory counted, bytes/sub", "RSS growth, bytes/sub",
            "peak while building, bytes/sub", "save, s", "open, s", "on disk, MB",
        ),
    )  # fmt: skip
    for name in WORKLOADS:
        build, memory, files = (
            results.read(Key(cell, name, scale)) for cell in ("build", "memory", "files")
        )
        if not (build or memory or files):
            continue
        on_disk = files.get("bytes_on_disk")
        sheet.rows.append(
            (
                name,
                number(build.get("us_per_subscription")),
                *(
                    number(memory.get(f"{kind}_per_subscription"))
                    for kind in ("counted", "rss_growth", "peak_growth")
                ),
                number(files.get("save_seconds")),
                number(files.get("open_seconds")),
                number(None if on_disk is None else on_disk / 1e6),
            )
        )
    return sheet


def change_sheet(results: Results, scale: float) -> Sheet:
    """Single changes, and changes beside a reader."""
    sheet = Sheet(
        "Changes",
        (
            "workload", "add, µs median (p99)", "update", "remove", "changes/s, paced",
            "reader keeps", "changes/s, flat out", "reader keeps then",
        ),
    )  # fmt: skip
    for name in WORKLOADS:
        changes, readers = (results.read(Key(cell, name, scale)) for cell in ("changes", "readers"))
        if not (changes or readers):
            continue
        sheet.rows.append(
            (
                name,
                *(_median_and_tail(changes.get(kind)) for kind in ("add", "update", "remove")),
                *(
                    text
                    for mode in ("paced", "flat_out")
                    for text in (
                        number(at_path(readers, f"{mode}.changes_per_second")),
                        _percent(at_path(readers, f"{mode}.speed_kept")),
                    )
                ),
            )
        )
    return sheet


def _median_and_tail(times: dict[str, float] | None) -> str:
    return f"{number(times['median_us'])} ({number(times['p99_us'])})" if times else "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def priority_sheet(results: Results, scale: float) -> Sheet:
    """When the matches of each level are out."""
    found = results.read(Key("priorities", "W3", scale))
    levels = found.get("done_us_of_level", [])
    columns = ("W3", "first match", *(f"level {level}" for level in range(len(levels))))
    sheet = Sheet("All matches of a level determined, µs, median", columns)
    if levels:
        cells = (found["first_match_us"], *levels)
        sheet.rows.append(("match_iter", *(number(us) for us in cells)))
    return sheet


AIM_COLUMNS = ("workload", "aim", "wanted", "reached", "share of the aim", "met")


def aim_sheet(results: Results, scale: float, aims: Sequence[Aim] = AIMS) -> Sheet:
    """Every aim that was measured."""
    sheet = Sheet("Aims", AIM_COLUMNS, n_names=2)
    sheet.rows = [aim_row(one) for one in reached(results, scale, aims)]
    sheet.notes = aim_notes(sheet.rows, scale)
    return sheet


def aim_row(one: Reached) -> tuple[str, ...]:
    """An aim as the tables of aims show it."""
    share = one.share if one.is_full else None
    return (
        one.aim.workload,
        one.aim.what,
        one.aim.wanted,
        number(one.value),
        "–" if share is None else f"{share:.2f}",
        one.verdict,
    )


def aim_notes(rows: Sequence[tuple[str, ...]], scale: float) -> list[str]:
    """What a reader of some rows of aims must know; their last column is whether it is met."""
    notes = []
    if scale != 1.0 and rows:
        notes.append(
            f"The aims are for full size; this is scale {scale:g}, at which they are not judged."
        )
    if any(row[-1].endswith("?") for row in rows):
        notes.append(
            "? others used the core while this was timed, which lengthens long calls more than "
            "short ones; ratios above all are not to be trusted."
        )
    return notes


def all_sheets(results: Results, scale: float) -> list[Sheet]:
    """Every table that has a row."""
    makers = (
        match_sheet, others_sheet, batch_sheet, size_sheet, change_sheet, priority_sheet, aim_sheet,
    )  # fmt: skip
    return [sheet for sheet in (make(results, scale) for make in makers) if sheet.rows]


def _found(results: Results, cell: str, scale: float) -> Sequence[tuple[str, dict[str, Any]]]:
    return [
        (name, results.read(Key(cell, name, scale)))
        for name in WORKLOADS
        if Key(cell, name, scale) in results
    ]
