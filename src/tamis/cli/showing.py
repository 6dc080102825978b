"""``tamis show``: a picture of how an algorithm matches one event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tamis.bench.views.registry import EXAMPLES, VIEWS, View
from tamis.cli.terminal import BadInput, announce_first_use, stderr_console
from tamis.values import load_json

_RESOLUTION = 100


def show(
    algorithm: str,
    event: str,
    n_subscriptions: int | None,
    n_attributes: int | None,
    seed: int,
    output: Path,
) -> None:
    """Draw the picture and say where it is."""
    if algorithm not in VIEWS | EXAMPLES:
        names = ", ".join(sorted(VIEWS | EXAMPLES))
        raise BadInput(f"{algorithm!r} cannot be shown; expected one of {names}")
    if output.suffix not in (".png", ".svg"):
        raise BadInput(f"{output}: expected a name that ends with .png or .svg")
    held = _event(event)
    if algorithm in EXAMPLES:
        if held or n_subscriptions is not None or n_attributes is not None:
            raise BadInput(
                f"{algorithm} is drawn for the example of its paper; leave out --event, "
                "--subscriptions and --attributes"
            )
        figure = EXAMPLES[algorithm]()
    else:
        view = VIEWS[algorithm]
        _check_size(view, algorithm, n_subscriptions, n_attributes)
        announce_first_use()
        figure = view.draw(view.subject(held, seed, n_subscriptions, n_attributes))
    figure.savefig(output, dpi=_RESOLUTION)
    stderr_console().print(f"wrote {output}", soft_wrap=True)


def _check_size(
    view: View, algorithm: str, n_subscriptions: int | None, n_attributes: int | None
) -> None:
    """Whether so much can be drawn legibly."""
    if n_subscriptions is not None and n_subscriptions > view.max_subscriptions:
        raise BadInput(
            f"--subscriptions {n_subscriptions} is more than the picture of {algorithm} can show; "
            f"expected at most {view.max_subscriptions}"
        )
    fewest, most = view.attributes
    if n_attributes is not None and not fewest <= n_attributes <= most:
        expected = f"between {fewest} and {most}" if fewest < most else f"{most} for {algorithm}"
        raise BadInput(f"--attributes {n_attributes} is not {expected}")


def _event(text: str) -> dict[str, Any]:
    try:
        held = load_json(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"--event is not JSON: {error}") from None
    if not isinstance(held, dict):
        raise BadInput('--event: expected a JSON object such as {"a": 0.3}')
    return held
