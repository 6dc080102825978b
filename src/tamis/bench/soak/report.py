"""The page and the picture of a soak, written from its result file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tamis.bench.extras import extra
from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.results import Results
from tamis.bench.tables import Sheet

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
_PANELS = (("memory_mb", "memory, MB"), ("open_files", "open files"), ("disk_mb", "disk, MB"))
_WORDS = {"memory_mb": "memory, MB", "open_files": "open files", "disk_mb": "disk, MB",
          "files": "files on disk"}  # fmt: skip


def write_report(results: Results, path: Path) -> Path:
    """Write the page of the last soak, with its picture beside it."""
    measured = [whole for key, whole in results.all() if key.cell == "soak"]
    if not measured:
        raise NothingMeasured(f"no soak in {results.directory}; run `tamis bench soak` first")
    found = measured[-1]["found"]
    picture = path.parent / "figures" / "soak.png"
    _draw(found, picture)
    parts = [
        _HEAD.format(**{**found, "minutes": round(found["seconds"] / 60), "kills": _kills(found)}),
        _outcome(found).to_markdown(),
        _OUTCOME,
        f"![memory, open files and disk over time](figures/{picture.name})\n",
        _growth(found).to_markdown(),
        _GROWTH,
        describe_machine(measured[-1:]),
    ]
    path.write_text("\n".join(parts))
    return path


def _kills(found: dict[str, Any]) -> str:
    counted = Counter(one["role"] for one in found["kills"])
    names = {"workers": "a Python worker", "java": "Java", "pipeline": "its driver"}
    told = ", ".join(f"{names.get(role, f'the {role}')} {n}×" for role, n in counted.items())
    return f"{len(found['kills'])} times: {told}" if told else "not at all"


def _outcome(found: dict[str, Any]) -> Sheet:
    sheet = Sheet("What came out", ("", "number"))
    latency = found["latency_s"]
    for words, value in (
        ("events published", found["n_events"]),
        ("matches expected, of those that stay", found["n_expected"]),
        ("… lost", found["lost"]),
        ("matches expected, of those that come and go", found["n_expected_of_visitors"]),
        ("… lost", found["lost_by_visitors"]),
        ("matches told that a filter does not accept", found["wrong"]),
        ("matches told in two notifications", found["twice"]),
        ("webhooks received", found["n_requests"]),
        ("… again, with the same id", found["n_repeated"]),
        ("requests repeated by the clients", found["n_asked_again"]),
    ):
        sheet.rows.append((words, f"{value:,}"))
    for name, words in (("p50", "median"), ("p99", "p99"), ("most", "longest")):
        sheet.rows.append((f"event to webhook while calm, {words}", f"{latency[name]:.1f} s"))
    return sheet


def _growth(found: dict[str, Any]) -> Sheet:
    sheet = Sheet(
        "Growth while calm", ("", "of", "first third", "last third", "last / first"), n_names=2
    )
    for kind, by_name in found["growth"].items():
        for name, grown in by_name.items():
            if grown is not None:
                cells = (f"{grown['first']:,.4g}", f"{grown['last']:,.4g}", f"{grown['ratio']:.2f}")
                sheet.rows.append((_WORDS[kind], name, *cells))
    return sheet


def _draw(found: dict[str, Any], path: Path) -> None:
    extra("matplotlib").use("Agg")
    pyplot = extra("matplotlib.pyplot")
    figure, panels = pyplot.subplots(3, 1, figsize=(8.5, 8.5), sharex=True, layout="constrained")
    samples = found["samples"]
    for panel, (kind, words) in zip(panels, _PANELS, strict=True):
        names = list(dict.fromkeys(name for one in samples for name in one[kind]))
        for name, colour in zip(names, _COLOURS, strict=False):
            points = [(one["t"] / 60, one[kind].get(name)) for one in samples]
            panel.plot(*zip(*points, strict=True), color=colour, label=name, linewidth=1.4)
        for kill in found["kills"]:
            panel.axvline(kill["t"] / 60, color="#bbbbbb", linewidth=0.7, zorder=0)
        panel.set_ylabel(words)
        panel.set_ylim(bottom=0)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    panels[-1].set_xlabel("minutes; grey lines: something was killed")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


_HEAD = """\
# Soak

Service, pipeline and sender as three programs on one SQLite database for {minutes} minutes under
load: {n_events:,} events and {n_subscriptions:,} subscriptions, half of them told at once and half
every minute, and one more that comes and one that goes every second ({n_visitors:,} in all). In
the first half something was killed (`SIGKILL`) {kills}. In the second half nothing was killed, so
that what grows can be seen. Everything is kept for five minutes instead of days; so the disk must
become flat within minutes.

Written by `tamis bench soak --report` from its result file. Do it again: `tamis bench soak
--minutes 60`.
"""
_OUTCOME = """\
*Expected* of those that stay is what `tamis.Index` finds over all events; of those that come and
go, what they must hear by the rule that an event published after a subscription was saved is
matched with it, but for the five minutes before it goes. *Wrong* is judged by the oracle. A webhook
may come again with the same id when a sender is killed between sending and taking that down;
receivers know it by its id. A match must never be in two notifications.
"""
_GROWTH = """\
Medians of the first and of the last third of the calm half. Memory is proportional (PSS), so that
what processes share is counted once; a Python process of Spark counts as a worker. Java's heap
stays near what is in use (`spark.driver.memory` not given); beside it there are the classes of
Spark and what Java compiles of them, which is more for half an hour.
"""
