"""The steps of GEM and DEXIN in words, and as bars."""

from __future__ import annotations

from typing import Any

from tamis.algorithms.pipeline import Step, Trace
from tamis.bench.views.drawing import GREY, TAKEN, VALUE, draw_candidates

_COLOURS = {"exclude": TAKEN, "select": VALUE, "missing": TAKEN}


def title_of(step: Step, number: int) -> str:
    """What a step does."""
    return f"{number}. {step.method} by {step.attribute}"


def note_of(step: Step) -> list[str]:
    """What there is to say of a step that has no picture."""
    if step.method == "missing":
        return [f"the event has no {step.attribute}:", "who asks for one is excluded"]
    return [f"{step.n_passed:,} candidates are compared", f"with {step.attribute} = {step.value:g}"]


def draw_steps(panel: Any, trace: Trace) -> None:
    """The candidates at the start and after each step, with the reason for it."""
    stages = [("all", trace.n_subscriptions, GREY)]
    for step in trace.steps:
        name = f"{step.method} by {step.attribute}\n{step.n_passed:,} entries passed"
        stages.append((name, step.n_left, _COLOURS[step.method]))
    draw_candidates(panel, stages)
    panel.set_title(
        f"plan: estimated cost {trace.cost:.2f} of all subscriptions, {trace.n_passed:,} entries "
        "passed in all",
        fontsize=10,
    )
