"""Draw docs/figures/walk.png, how an event and a subscription walk: by `make docs`.

The stages are those of docs/architecture.md, which says more of each.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "figures" / "walk.png"

# Light tints of the colours of Okabe and Ito.
COLOURS = {
    "browser": "#f3e3ee",
    "service": "#d6e8f4",
    "pipeline, Python": "#d5efe5",
    "pipeline, Spark's own": "#fbe9c8",
    "on disk": "#ececec",
    "sender": "#fadccb",
}
WIDTH, HEIGHT, GAP = 2.6, 1.0, 0.75


class Stage(NamedTuple):
    """A station: what happens, where in the code, where it runs, in what form it goes on."""

    title: str
    module: str
    place: str
    form: str = ""


EVENT = (
    (
        Stage("let in", "tamis.service.gate", "service", "bytes"),
        Stage("read and checked", "tamis.service.published", "service", "Event"),
        Stage("written and synced", "tamis.service.event_log", "service", "JSON line"),
        Stage("file of events", "events/*.jsonl", "on disk", "text"),
        Stage("read as lines", "tamis.spark.sources", "pipeline, Spark's own", "Arrow"),
    ),
    (
        Stage("JSON read again", "tamis.spark.rows", "pipeline, Python", "attributes"),
        Stage("numbers, once a layer", "tamis.slots.columns", "pipeline, Python", "float64"),
        Stage("matched", "tamis.kernels.dense_match", "pipeline, Python", "rows"),
        Stage("written", "tamis.spark.match_files", "pipeline, Python", "Parquet"),
        Stage("match log", "state/matcher/matches", "on disk", "columns"),
    ),
    (
        Stage("told once, grouped", "tamis.spark.digests", "pipeline, Spark's own", "Parquet"),
        Stage("rate caps", "tamis.spark.notifier", "pipeline, Python", "rows"),
        Stage("outbox", "tamis.storage.outbox", "on disk", "JSON, base64"),
        Stage("leased", "tamis.storage.deliveries", "sender", "Message"),
        Stage("mail", "tamis.service.sending.transports.mail", "sender"),
    ),
)
SUBSCRIPTION = (
    (
        Stage("written", "page/filter_view.js", "browser", "JSON"),
        Stage("parsed, bounded", "tamis.storage.drafts", "service", "tree"),
        Stage("saved and logged", "tamis.storage.subscriptions", "service", "JSON"),
        Stage("change log", "tamis.storage.changes", "on disk", "rows"),
        Stage("followed", "tamis.service.live_index", "service"),
    ),
    (
        Stage("followed", "tamis.spark.follower", "pipeline, Python", "tree"),
        Stage("slots", "tamis.slots.slots", "pipeline, Python", "intervals"),
        Stage("block built", "tamis.kernels.dense_build", "pipeline, Python", "arrays"),
        Stage("version", "tamis.spark.snapshots", "on disk", "mmap"),
        Stage("opened by workers", "tamis.spark.versions", "pipeline, Python"),
    ),
)


def draw() -> Figure:
    """The picture: three lines for the event, two for the subscription."""
    n_across = max(map(len, EVENT))
    lines = len(EVENT) + len(SUBSCRIPTION)
    figure = Figure(figsize=(n_across * (WIDTH + GAP) * 0.82, lines * 1.25 + 0.75))
    panel = figure.add_axes((0, 0, 1, 1))
    panel.set_xlim(-0.3, n_across * (WIDTH + GAP))
    panel.set_ylim(-lines * 1.6 - 0.1, 1.75)
    panel.axis("off")
    _title(panel, 1.35, "an event, from POST /v1/events to the mail")
    for number, line in enumerate(EVENT):
        _draw_line(panel, line, -1.6 * number, is_last=line is EVENT[-1])
    first = -1.6 * len(EVENT) - 0.75
    _title(panel, first + 1.35, "a subscription, from the page to the kernel")
    _draw_line(panel, SUBSCRIPTION[0], first, is_last=True)
    _draw_line(panel, SUBSCRIPTION[1], first - 1.6, is_last=True)
    _draw_turn(panel, 3, first, 0, first - 1.6)
    patches = [Patch(facecolor=colour, edgecolor="#999999") for colour in COLOURS.values()]
    panel.legend(
        patches, list(COLOURS), loc="lower center", ncols=len(COLOURS), frameon=False, fontsize=9
    )
    return figure


def _title(panel: Any, y: float, text: str) -> None:
    panel.text(0, y, text, fontsize=12, fontweight="bold", va="center")


def _draw_line(panel: Any, line: tuple[Stage, ...], y: float, is_last: bool) -> None:
    for number, stage in enumerate(line):
        x = number * (WIDTH + GAP)
        panel.add_patch(
            FancyBboxPatch(
                (x, y), WIDTH, HEIGHT, boxstyle="round,pad=0,rounding_size=0.12",
                facecolor=COLOURS[stage.place], edgecolor="#999999", linewidth=0.8,
            )
        )  # fmt: skip
        middle = x + WIDTH / 2
        panel.text(middle, y + 0.63, stage.title, ha="center", va="center", fontsize=10)
        panel.text(
            middle, y + 0.3, stage.module.removeprefix("tamis."), ha="center", va="center",
            fontsize=7.5, family="monospace", color="#444444",
        )  # fmt: skip
        if number + 1 < len(line):
            _draw_arrow(panel, (x + WIDTH, y + 0.5), (x + WIDTH + GAP, y + 0.5))
            panel.text(
                x + WIDTH + GAP / 2, y + 0.62, stage.form.replace(", ", ",\n"), ha="center",
                va="bottom", fontsize=7.5,
            )  # fmt: skip
    if not is_last:
        _draw_turn(panel, len(line) - 1, y, 0, y - 1.6)


def _draw_arrow(panel: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    panel.annotate(
        "", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": "#555555"}
    )  # fmt: skip


def _draw_turn(panel: Any, from_x: int, from_y: float, to_x: int, to_y: float) -> None:
    """From below one box to above another, in the gap between the lines."""
    a = from_x * (WIDTH + GAP) + WIDTH / 2
    b = to_x * (WIDTH + GAP) + WIDTH / 2
    level = from_y - 0.3
    panel.plot([a, a, b], [from_y, level, level], color="#555555", linewidth=1)
    _draw_arrow(panel, (b, level), (b, to_y + HEIGHT))


def main() -> int:
    """Draw it."""
    draw().savefig(PICTURE, dpi=110)
    print(f"drew {PICTURE.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
