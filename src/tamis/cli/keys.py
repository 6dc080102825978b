"""``tamis keys``: API keys in a database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from tamis.cli.terminal import BadInput
from tamis.service.limits import Limits
from tamis.storage import Database
from tamis.storage.drafts import check_name
from tamis.storage.keys import KeyStore


def create_key(
    url: str, owner: str, scopes: Sequence[str], name: str, limits: Sequence[str]
) -> None:
    """Make a key and print it."""
    held = dict(map(_limit, limits))
    Limits().changed(held)
    with _keys(url) as keys:
        _, text = keys.create(check_name(owner, "owner"), scopes, name, held)
    print(text)


def list_keys(url: str, as_json: bool) -> None:
    """Print all keys, without their secrets."""
    with _keys(url) as keys:
        found = keys.list()
    if as_json:
        for key in found:
            told = {n: getattr(key, n) for n in ("prefix", "owner", "name", "created_at")}
            told |= {"scopes": sorted(key.scopes), "limits": dict(key.limits)}
            told |= {n: getattr(key, n) for n in ("last_used_at", "revoked_at")}
            print(json.dumps(told, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("prefix", "owner", "scopes", "name", "last use", "revoked"):
        table.add_column(column)
    for key in found:
        table.add_row(
            key.prefix, key.owner, " ".join(sorted(key.scopes)), key.name,
            key.last_used_at or "never", key.revoked_at or "",
        )  # fmt: skip
    Console().print(table)


def revoke_key(url: str, prefix: str) -> None:
    """Revoke a key, named by its prefix."""
    with _keys(url) as keys:
        keys.revoke(prefix)


@contextmanager
def _keys(url: str) -> Iterator[KeyStore]:
    database = Database(url)
    try:
        database.migrate()
        yield KeyStore(database)
    finally:
        database.close()


def _limit(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        raise BadInput(f"--limit {text!r}: expected name=number, as in burst=50") from None
