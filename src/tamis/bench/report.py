"""``docs/engine.md``: written from the result files, but for the part between two marks."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from tamis.bench.losses import losses
from tamis.bench.plots import draw_plots
from tamis.bench.results import Results
from tamis.bench.suite import ALL
from tamis.bench.tables import (
    Sheet,
    aim_sheet,
    batch_sheet,
    change_sheet,
    match_sheet,
    others_sheet,
    priority_sheet,
    size_sheet,
)
from tamis.errors import TamisError

KEPT_FROM = "<!-- kept: how the engine works; `tamis bench engine --report` leaves this part -->"
KEPT_TO = "<!-- end of the kept part -->"
_EMPTY_PART = "## How the engine works\n\n*To be written.*"
_ALT_TEXTS = {
    "others": "Time of an event with the Index, the scan, NumPy, rtree, DuckDB and Polars",
    "sweep-n": "Time and matches of an event against the number of subscriptions",
    "sweep-m": "Time and matches of an event against the number of attributes",
    "sweep-theta": "Time and matches of an event against the width of the intervals",
    "sweep-zipf": "Time and matches of an event with uniform and skewed values and attributes",
    "priorities": "When all matches of each priority are determined",
}


class NothingMeasured(TamisError):
    """There are no result files to write about."""


def write_report(results: Results, scale: float, path: Path) -> list[Path]:
    """Write the page and its plots (in ``figures`` beside it); return the files."""
    measured = [whole for key, whole in results.all() if key.scale == scale or key.workload == ALL]
    if not any(whole["scale"] == scale for whole in measured):
        raise NothingMeasured(
            f"no results at scale {scale:g} in {results.directory}; run `tamis bench engine "
            f"--scale {scale:g}` first"
        )
    kept = kept_part(path.read_text()) if path.exists() else _EMPTY_PART
    path.parent.mkdir(parents=True, exist_ok=True)
    plots = draw_plots(results, scale, path.parent / "figures")
    figures = {name: os.path.relpath(file, path.parent) for name, file in plots.items()}
    path.write_text(_page(results, scale, measured, figures, kept))
    return [path, *plots.values()]


def kept_part(page: str) -> str:
    """What stands between the marks.

    >>> kept_part(f"before {KEPT_FROM} by hand {KEPT_TO} after")
    'by hand'
    """
    _, found, rest = page.partition(KEPT_FROM)
    part, ended, _ = rest.partition(KEPT_TO)
    return part.strip() if found and ended else _EMPTY_PART


def _page(
    results: Results,
    scale: float,
    measured: list[dict[str, Any]],
    figures: dict[str, str],
    kept: str,
) -> str:
    def shown(*names: str) -> str:
        return "".join(f"![{_ALT_TEXTS[n]}]({figures[n]})\n\n" for n in names if n in figures)

    sections = [
        "# The engine\n\n"
        "How the index works, what it was measured at, and where it loses. The figures of all "
        "parts are in [performance.md](performance.md).\n\n"
        f"Written by `tamis bench engine --scale {scale:g} --report` from the result files; "
        "do not edit outside the kept part.\n",
        "## The aims, and what was reached\n\n" + _section(aim_sheet(results, scale)),
        "## One event at a time\n\n" + _section(match_sheet(results, scale), _MATCH_NOTE),
        "## Against others\n\n" + _section(others_sheet(results, scale), _OTHERS_NOTE)
        + shown("others"),
        "## Batches\n\n" + _section(batch_sheet(results, scale), _BATCH_NOTE),
        "## Building, memory, files\n\n" + _section(size_sheet(results, scale), _SIZE_NOTE),
        "## Changes while matching\n\n" + _section(change_sheet(results, scale), _CHANGE_NOTE),
        "## Priorities\n\n" + _section(priority_sheet(results, scale), _PRIORITY_NOTE)
        + shown("priorities"),
        "## How it scales\n\n" + (shown(*_SWEEPS) or "*Not measured yet: add `--sweeps`.*\n"),
        "## Where it loses\n\n" + _losses(results, scale),
        f"{KEPT_FROM}\n\n{kept}\n\n{KEPT_TO}\n",
        "## How this was measured\n\n" + _METHOD + describe_machine(measured),
    ]  # fmt: skip
    return "\n".join(section.rstrip() + "\n" for section in sections)


def _section(sheet: Sheet, note: str = "") -> str:
    if not sheet.rows:
        return "*Not measured yet.*\n"
    return sheet.to_markdown() + ("\n" + note + "\n" if note else "") + "\n"


def _losses(results: Results, scale: float) -> str:
    found = losses(results, scale)
    return "\n".join(f"- {one}" for one in found) or "*Nowhere, in what was measured.*"


def describe_machine(measured: list[dict[str, Any]]) -> str:
    """What results were measured on, as a list in Markdown."""
    last = max(measured, key=lambda whole: str(whole["date"]))
    dates = sorted(whole["date"] for whole in measured)
    commits = sorted({whole["commit"] for whole in measured if whole["commit"]})
    machines = Counter(_name_machine(whole["machine"]) for whole in measured).most_common()
    shares = [f"{name} ({n} of {len(measured)} results)" for name, n in machines]
    names = "; ".join(shares) if len(machines) > 1 else machines[0][0]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    loads = [whole["load"] for whole in measured]
    return (
        f"\n- Machine: {names}.\n"
        f"- Versions: {versions}.\n"
        f"- Measured from {dates[0]} to {dates[-1]}, commits {', '.join(commits) or 'unknown'}.\n"
        f"- The load of the machine was {min(loads)} to {max(loads)} during the run: above about "
        "1.5, others used it too.\n"
    )


def _name_machine(held: dict[str, Any]) -> str:
    caches = ", ".join(f"{level} {size}" for level, size in held["caches"].items())
    return f"{held['cpu']}, {held['cores']} cores, {caches}, {held['ram_gb']:.0f} GB"


_SWEEPS = ("sweep-n", "sweep-m", "sweep-theta", "sweep-zipf")
_MATCH_NOTE = """\
Microseconds of one `Index.match_batch([event])`, events handed over as dicts, until the matching
rows are there; *with ids* until their ids are. The scan is timed in the same rounds. W5 has no
scan: its filters hold texts, negations and shapes."""
_OTHERS_NOTE = """\
Every result was compared with the scan's first. In brackets: how many times as long as the Index,
each against the scan timed beside it, as the cells may be from different hours. NumPy, `rtree` and
the scan take one event at a time (median); DuckDB and Polars join a batch of events and may use all
cores. `rtree` holds the two most selective attributes; a kernel verifies its candidates."""
_BATCH_NOTE = """\
The batch is handed over as a dict of arrays (W5: a list of dicts). Two threads match a batch of so
many events each. The gain of the batch is against the mean time of single events in the same
rounds, of which there are seven; the middle gain is shown."""
_SIZE_NOTE = """\
Built from arrays by `Index.from_boxes` (W5: from Subscription objects by `add_many`). The memory
counted is what `Index` says of itself; the growth of the process (RSS) was taken in a fresh one."""
_CHANGE_NOTE = """\
Single changes at full size; that the next match sees them is checked. Then a thread matches batches
of 1,000 events while another changes subscriptions one by one, at 20,000 a second (paced) or as
fast as it can (flat out); the reader's speed is against its own in peace."""
_PRIORITY_NOTE = "Through `match_iter`, on W3 with its ten priorities."
_METHOD = """\
- Workloads: W1 (GEM), W2 (DEXIN), W3 (Pri-REIN), W4 (MO-Tree) as in `tamis.bench.workloads`, W5
  (mixed) as in `tamis.bench.mixed`; 1,000 events each, seeded.
- Results are compared with a reference before anything is timed: for W1 to W4 the scan, which
  itself is compared with NumPy, for W5 the evaluation of each filter. A difference ends the run.
- The scan is a blocked, vectorised columnar scan in Numba over float32 bounds rounded outwards,
  survivors rechecked with the exact bounds.
- `time.perf_counter_ns`, the garbage collector off, other events matched before the clock starts;
  three rounds, of which the one with the middle median is shown. Ratios are taken inside a round.
- One process, one thread unless said otherwise. What needs a fresh process has one.
"""
