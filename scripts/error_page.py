"""Write docs/errors.md, the catalogue of errors: `python scripts/error_page.py`, by `make docs`.

What an error means, when it is raised and what to do is in its docstring in tamis.errors; its
message is that of an example, which is run here; its status is that of tamis.service.problems.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from inspect import getdoc
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tamis import errors
from tamis.cli.terminal import BAD_INPUT
from tamis.service.problems import STATUS_OF, problem_type

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "errors.md"
ABSTRACT = ("TamisError",)
FOLDER = "/data"  # what stands in messages for the folder of the examples

# What the examples use.
SURROUNDINGS = """\
from contextlib import suppress
from unittest.mock import patch

from tamis import Event, Index, Point, Subscription, col, parse_filter
from tamis.algorithms import make
from tamis.cli.terminal import require_extra
from tamis.delivery import check_delivery
from tamis.events import EventStore
from tamis.matching import Table
from tamis.service.key_ring import Caller
from tamis.service.limits import Limits
from tamis.service.live_index import LiveIndex
from tamis.service.sending.settings import read_sender_settings
from tamis.slots.texts import Texts
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.idempotency import Token, claim
from tamis.storage.inbox import Inbox
from tamis.storage.keys import KeyStore

one = Subscription("s1", "price < 3300", owner="zoe")
index, events = Index(), EventStore()
index.add(one)
events.insert(Event("e1", {"price": 3200}))
database = Database(f"sqlite:///{folder}/tamis.db")
database.migrate()
store = SubscriptionStore(database)
store.create(Saved(one, "price < 3300"))
key, _ = KeyStore(database).create("zoe", ["subscriber"])
with database.writing() as connection:
    claim(connection, Token(key.prefix, "order-7", "a body"))
"""
PIPELINE = """\
state = "state"
[events]
path = "ads"
[subscriptions]
path = "searches"
[notifications]
outbox = "outbox"
"""
# Each has to raise the error.
EXAMPLES = {
    "InvalidValue": 'Point("13.4", 52.5)',
    "InvalidEvent": """Event.from_json('{"price": 3200}')""",
    "InvalidSubscription": 'Subscription("s1", "price < 3300", priority=12)',
    "InvalidDelivery": (
        'check_delivery(Subscription("s1", "price < 3300", delivery={"schedule": "hourly"}))'
    ),
    "InvalidSchema": 'Index(schema={"price": "money"})',
    "InvalidSettings": 'read_sender_settings(folder / "sender.toml")',
    "SchemaViolation": (
        """Index(schema={"price": "number"}).add(Subscription("s1", "price = 'low'"))"""
    ),
    "FilterError": 'col("brand") < "Huawei"',
    "FilterSyntaxError": "parse_filter(\"brand = 'Huawei' AND price <\")",
    "FilterTooComplex": (
        'Index().add(Subscription("s1", " AND ".join(f"(a{n} = 1 OR b = {n})" for n in range(20))))'
    ),
    "DuplicateSubscription": 'index.add(Subscription("s1", "price < 10"))',
    "UnknownSubscription": 'index.remove("s2")',
    "DuplicateEvent": 'events.insert(Event("e1", {"price": 10}))',
    "UnknownEvent": 'events["e2"]',
    "NotSupported": (
        'make("simple", ["price"]).match_subscription(Table.from_boxes([[0], [5]], [[9], [9]]))'
    ),
    "SnapshotError": 'Index.open(folder / "index")',
    "UnfinishedChange": (
        'with suppress(MemoryError), patch.object(Texts, "append", side_effect=MemoryError):\n'
        '    index.add(Subscription("s2", "price < 10"))\n'
        'index.add(Subscription("s3", "price < 10"))'
    ),
    "PipelineError": 'Pipeline(read_settings(folder / "pipeline.toml")).check()',
    "StorageError": 'Database("mysql://zoe:secret@db/tamis")',
    "StorageUnavailable": 'LiveIndex(database).match(Event("e1", {"price": 10}))',
    "VersionConflict": 'store.put("s1", lambda before: before, if_absent=True)',
    "LimitReached": 'store.create(Saved(Subscription("s2", True, owner="zoe"), True), most=1)',
    "NotAllowed": 'Caller(key, Limits()).require("publisher")',
    "TokenReused": (
        "with database.writing() as connection:\n"
        '    claim(connection, Token(key.prefix, "order-7", "another body"))'
    ),
    "UnknownKey": 'KeyStore(database).revoke("0123456789")',
    "UnknownNotification": 'Inbox(database).get("c881a45280b0e4a400c360f994f01aa8")',
    "MissingExtra": 'require_extra("spark", "pyspark")',
}

HEAD = f"""\
# Errors

Written by `make docs` from the docstrings in `src/tamis/errors/`; do not edit. Messages are those
of examples, which are run when this page is made.

Every error Tamis raises on purpose is a `TamisError`. A message says what was given, what was
expected and what to do; what was given is cut where it is long. On the command line it is one
`error:` on stderr, and the exit code is {BAD_INPUT} ([cli.md](cli.md#exit-codes)). Over HTTP it is
`application/problem+json`, whose `type` is the stable name in the table
([service.md](service.md#errors)); one without a status is not the caller's doing, and is answered
with 500 where it happens nonetheless. `tamis.client` raises the same classes again.
"""


def page() -> str:
    """The page."""
    return "\n".join([HEAD, *_table(), "", *_sections(), *_of_the_service()])


def _table() -> Iterator[str]:
    yield "| error | also a | over HTTP | `type` |"
    yield "|---|---|---|---|"
    for kind in _kinds():
        also = [f"`{base.__name__}`" for base in kind.__bases__ if base is not errors.TamisError]
        status = _status(kind)
        name = f"`{problem_type(kind)}`" if status else ""
        yield (
            f"| [{kind.__name__}](#{kind.__name__.lower()}) | {', '.join(also)} "
            f"| {status or ''} | {name} |"
        )


def _sections() -> Iterator[str]:
    messages = dict(_messages())
    for kind in _kinds():
        yield f"## {kind.__name__}\n"
        yield from (f"{_linked(' '.join(part.split()))}\n" for part in _paragraphs(kind))
        if kind.__name__ not in ABSTRACT:
            message = messages[kind.__name__]
            yield f"```text\n{EXAMPLES[kind.__name__]}\n\n{kind.__name__}: {message}\n```\n"


def _of_the_service() -> Iterator[str]:
    yield "## Of the service alone\n"
    yield "Kinds of the above that only requests over HTTP meet; they have a `type` of their own.\n"
    yield "| `type` | status | |"
    yield "|---|---|---|"
    for kind, status in STATUS_OF:
        if not hasattr(errors, kind.__name__):
            summary = (getdoc(kind) or "").partition("\n")[0]
            yield f"| `{problem_type(kind)}` | {status} | {summary} |"
    yield ""


def _kinds() -> list[type[Exception]]:
    """The classes, those of a kind after what they are a kind of."""
    return [getattr(errors, name) for name in re.findall(r"── (\w+)", errors.__doc__ or "")]


def _paragraphs(kind: type[Exception]) -> list[str]:
    return (getdoc(kind) or "").split("\n\n")


def _linked(text: str) -> str:
    """A paragraph of a docstring as Markdown."""
    text = re.sub(r"docs/(\S+?\.md)", r"[\1](\1)", text)
    return text.replace("``", "`")


def _status(kind: type[Exception]) -> int | None:
    return next((status for known, status in STATUS_OF if issubclass(kind, known)), None)


def _messages() -> Iterator[tuple[str, str]]:
    """The message of every example."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sender.toml").write_text("concurency = 7\nlease = 45\n")
        (folder / "pipeline.toml").write_text(PIPELINE)
        around: dict[str, Any] = {"folder": folder}
        exec(SURROUNDINGS, around)
        for kind, code in EXAMPLES.items():
            yield kind, _message(kind, code, around).replace(name, FOLDER)
        around["database"].close()


def _message(kind: str, code: str, around: dict[str, Any]) -> str:
    is_bare = patch("importlib.util.find_spec", return_value=None)
    try:
        with is_bare if kind == "MissingExtra" else nullcontext():
            exec(code, around)
    except getattr(errors, kind) as error:
        return str(error)
    raise ValueError(f"{code} raises nothing")


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
