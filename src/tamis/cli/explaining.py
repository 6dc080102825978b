"""``tamis explain``: one filter, one event, and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from tamis.cli.reading import STDIN, find_subscription, label_of
from tamis.cli.terminal import BadInput, message_of
from tamis.errors import TamisError
from tamis.language import Explanation, explain, parse_filter
from tamis.model import Event


def run_explain(
    text: str, event: str, subscriptions: str, id: str, spelling: str, as_json: bool
) -> bool:
    """Print the explanation; whether the filter accepts the event."""
    if bool(text) == bool(id) or bool(id) != bool(subscriptions):
        raise BadInput("give either a FILTER, or --subscriptions FILE with --id ID")
    if not event:
        raise BadInput("""give the event: --event '{"price": 3200}', or --event @FILE""")
    if subscriptions == STDIN and event == "@-":
        raise BadInput("only one of --subscriptions and --event can be stdin")
    given = _read_event(event)
    wanted = find_subscription(subscriptions, id).condition if id else parse_filter(text, spelling)
    told = explain(wanted, given)
    if as_json:
        print(json.dumps(told.to_json(), ensure_ascii=False))
    else:
        print_explanation(told, Console())
    return told.held


def print_explanation(told: Explanation, console: Console) -> None:
    """The tree in colour on a terminal, as plain lines elsewhere."""
    if console.is_terminal:
        console.print(_tree(told), highlight=False)
    else:
        console.print(Text(str(told)), soft_wrap=True)


def _tree(told: Explanation, above: Tree | None = None) -> Tree:
    label = Text.assemble(("✓ ", "bold green") if told.held else ("✗ ", "bold red"), told.reason)
    node = Tree(label, guide_style="dim") if above is None else above.add(label)
    for part in told.parts:
        _tree(part, node)
    return node


def _read_event(given: str) -> Event:
    if not given.startswith("@"):
        return Event.from_json(given, default_id="event")
    path = given[1:]
    raw = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    try:
        return Event.from_json(raw, default_id="event")
    except TamisError as error:
        raise BadInput(f"{label_of(path)}: {message_of(error)}") from None
