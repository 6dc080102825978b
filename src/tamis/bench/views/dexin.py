"""DEXIN: the low and the high buckets of each step, what it takes of them, and who is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.algorithms.dexin import Dexin
from tamis.algorithms.kernels.dexin import HIGH, LOW
from tamis.algorithms.pipeline import Step
from tamis.bench.views.drawing import LIGHT, TAKEN, VALUE, draw_note, panels
from tamis.bench.views.steps import draw_steps, note_of, title_of
from tamis.bench.views.subject import Subject

N_BUCKETS = 30


def draw_dexin(subject: Subject) -> Any:
    """The picture of one event."""
    dexin = Dexin(subject.names, n_buckets=N_BUCKETS)
    subject.put_into(dexin)
    trace = dexin.trace(subject.event)
    figure, above, below = panels(len(trace.steps), f"DEXIN — {subject.title}")
    for number, (step, panel) in enumerate(zip(trace.steps, above, strict=True), start=1):
        if step.method == "exclude":
            _draw_buckets(panel, dexin, subject.names.index(step.attribute), step, number)
        else:
            draw_note(panel, title_of(step, number), note_of(step))
    draw_steps(below, trace)
    return figure


def _draw_buckets(panel: Any, dexin: Dexin, m: int, step: Step, number: int) -> None:
    """Low bounds upwards, high bounds downwards; what is excluded is coloured."""
    own = dexin.bucket_of(m, step.value)
    places = np.arange(dexin.n_buckets)
    for side, sign, is_taken in ((LOW, 1, places > own), (HIGH, -1, places < own)):
        counts = dexin.bucket_counts(m, side) * sign
        panel.bar(places, counts, width=1.0, color=np.where(is_taken, TAKEN, LIGHT).tolist())
        area = next(a for a in step.areas if a.name == ("low own", "high own")[side == HIGH])
        panel.bar([own], [sign * area.n_entries], width=1.0, color=TAKEN)
    panel.axhline(0, color="black", linewidth=0.8)
    panel.axvline(own, color=VALUE, linewidth=1.0, linestyle=":")
    panel.set_title(title_of(step, number), fontsize=10)
    panel.set_xlabel(f"bucket; {step.attribute} = {step.value:g} is in {own}", fontsize=8)
    panel.set_ylabel("high bounds below, low bounds above", fontsize=8)
    panel.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
