"""``tamis explain``: one filter, one event, and why."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from tamis.cli.reading import STDIN, find_subscription, label_of, opened
from tamis.cli.terminal import BadInput, message_of, require_stdout, visible
from tamis.errors import FilterSyntaxError, TamisError
from tamis.language import Explanation, Filter, explain, parse_filter
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
    require_stdout()
    given = _read_event(event)
    wanted = find_subscription(subscriptions, id).condition if id else _parse(text, spelling)
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
        console.print(Text("\n".join(map(visible, told.lines()))), soft_wrap=True)


def _tree(told: Explanation, above: Tree | None = None) -> Tree:
    label = Text.assemble(
        ("✓ ", "bold green") if told.held else ("✗ ", "bold red"), visible(told.reason)
    )
    node = Tree(label, guide_style="dim") if above is None else above.add(label)
    for part in told.parts:
        _tree(part, node)
    return node


def _parse(text: str, spelling: str) -> Filter:
    try:
        return parse_filter(text, spelling)
    except FilterSyntaxError as error:
        if not getattr(error, "__notes__", ()):
            raise
        hint = "if this is HTTP query notation, give --spelling query"
        raise BadInput(f"{error}\n  ({hint})") from None


def _read_event(given: str) -> Event:
    if not given.startswith("@"):
        return Event.from_json(given, default_id="event")
    path = given[1:]
    with opened(path) as stream:
        raw = stream.read()
    try:
        return Event.from_json(raw, default_id="event")
    except TamisError as error:
        raise BadInput(f"{label_of(path)}: {message_of(error)}") from None
