"""``tamis show``: a picture of how an algorithm matches one event."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamis.bench.views.dexin import draw_dexin
from tamis.bench.views.gem import draw_gem
from tamis.bench.views.mo_tree import draw_mo_tree
from tamis.bench.views.subject import Subject
from tamis.cli.terminal import BadInput, announce_first_use, stderr_console

VIEWS: dict[str, Callable[[Subject], Any]] = {
    "gem": draw_gem,
    "dexin": draw_dexin,
    "mo_tree": draw_mo_tree,
}
_MAX_ATTRIBUTES = 6


def show(
    algorithm: str, event: str, n_subscriptions: int, n_attributes: int, seed: int, output: Path
) -> None:
    """Draw the picture and say where it is."""
    if algorithm not in VIEWS:
        raise BadInput(f"{algorithm!r} cannot be shown; expected one of {', '.join(VIEWS)}")
    if output.suffix not in (".png", ".svg"):
        raise BadInput(f"{output}: expected a name that ends with .png or .svg")
    if not 1 <= n_attributes <= _MAX_ATTRIBUTES:
        raise BadInput(f"--attributes {n_attributes} is not between 1 and {_MAX_ATTRIBUTES}")
    announce_first_use()
    subject = Subject.of(n_subscriptions, n_attributes, seed, _event(event))
    figure = VIEWS[algorithm](subject)
    figure.savefig(output, dpi=120)
    stderr_console().print(f"wrote {output}", soft_wrap=True)


def _event(text: str) -> dict[str, Any]:
    try:
        held = json.loads(text)
    except ValueError as error:
        raise BadInput(f"--event is not JSON: {error}") from None
    if not isinstance(held, dict):
        raise BadInput('--event: expected a JSON object such as {"a": 0.3}')
    return held
