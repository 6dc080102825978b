"""The measured part of ``docs/architecture.md``, written from the result file of a walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tamis.bench.measured_part import write_measured_part
from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.results import Results
from tamis.bench.tables import Sheet
from tamis.bench.walk.stages import EVENT_STAGES, EVENT_WHOLE, SUBSCRIPTION_STAGES, Stage
from tamis.bench.walk.work import N_EVENTS


def write_report(results: Results, path: Path) -> Path:
    """Write the part of the page between the marks, at its end if it has none."""
    measured = [whole for key, whole in results.all() if key.cell == "walk"]
    if not measured:
        raise NothingMeasured(f"no walk in {results.directory}; run `tamis bench walk` first")
    found = max(measured, key=lambda whole: float(whole["scale"]))["found"]
    parts = [
        _HEAD.format(**found, n=found["event"]["whole"]["n"], matches=_matches_each(found)),
        stage_sheet(found["event"], (*EVENT_STAGES, EVENT_WHOLE)).to_markdown(),
        _SUBSCRIPTIONS,
        stage_sheet(found["subscription"], SUBSCRIPTION_STAGES).to_markdown(),
        _WORK,
        work_sheet(found["work"]).to_markdown(),
        describe_machine(measured),
    ]
    return write_measured_part(path, "tamis bench walk", "\n".join(parts))


def _matches_each(found: Mapping[str, Any]) -> float:
    """How many searches accept an ad, of those that the steps were measured with."""
    (n_matches,) = (one["n_matches"] for one in found["work"] if "n_matches" in one)
    return float(n_matches / N_EVENTS)


def stage_sheet(found: Mapping[str, Any], stages: Sequence[Stage]) -> Sheet:
    """How long each stage takes."""
    columns = ("stage", "where", "", "median, ms", "p90, ms", "longest, ms")
    sheet = Sheet("Stages", columns, n_names=3)
    for stage in stages:
        if held := found.get(stage.name):
            figures = (f"{held[name]:,.0f}" for name in ("median_ms", "p90_ms", "most_ms"))
            sheet.rows.append((stage.name, stage.where, stage.words, *figures))
    return sheet


def work_sheet(work: Sequence[Mapping[str, Any]]) -> Sheet:
    """What each stage costs alone, and how many bytes it leaves."""
    sheet = Sheet("Work", ("step", "per", "µs", "bytes"), n_names=2)
    for one in work:
        held = f"{one['bytes']:,}" if "bytes" in one else "–"
        sheet.rows.append((one["stage"], one["per"], f"{one['us']:,.1f}", held))
    return sheet


_HEAD = """\
Written by `tamis bench walk --report` from its result file: `tamis serve` as it is, on SQLite, with
{n_subscriptions:,} saved searches. {n} ads were published one at a time, at irregular moments, each
accepted by {matches:,.0f} searches on average, of which one has a webhook.

At the first start both the service and the pipeline index all searches, at the same time on the two
cores: the service was ready after {ready_s:.0f} s, the first event told after {first_told_s:.0f} s.
Started again, the service was ready after {ready_again_s:.0f} s.
"""
_SUBSCRIPTIONS = """\
A subscription that is saved beside them; *version* is when the pipeline, which looks before each
micro-batch, has it:
"""
_WORK = """\
What the steps cost without the waiting, and how large what they leave is: the code of each over a
thousand ads (or 500 notifications) in one process. What Spark itself does in between, reading
files, shuffling and keeping state, is in the stages above only.
"""
