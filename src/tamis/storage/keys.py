"""API keys: made once, kept as a hash, looked up by a prefix that may be shown."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, insert, select, update

from tamis.errors import InvalidValue, NotAllowed, UnknownKey, quoted
from tamis.storage.database import Database
from tamis.storage.tables import keys, moment

SCOPES = ("subscriber", "publisher", "admin")

_KEY = re.compile(r"tamis_([0-9a-f]{10})_([0-9a-f]{64})", re.ASCII)
_NOBODY = "0" * 64  # compared with where there is no key of that prefix


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret."""

    prefix: str
    owner: str
    scopes: frozenset[str]
    name: str
    limits: Mapping[str, Any]
    created_at: str
    last_used_at: str | None
    revoked_at: str | None
    hash: str

    @property
    def is_admin(self) -> bool:
        """Whether it may do everything, for everybody."""
        return "admin" in self.scopes


class KeyStore:
    """The keys in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(
        self,
        owner: str,
        scopes: Iterable[str],
        name: str = "",
        limits: Mapping[str, Any] | None = None,
    ) -> tuple[Key, str]:
        """Make a key; its text is not kept and cannot be had again."""
        chosen = frozenset(scopes)
        if not chosen or not chosen <= set(SCOPES):
            raise InvalidValue(
                f"the scopes {quoted(sorted(chosen))} are not of {', '.join(SCOPES)}; give some"
            )
        if not owner:
            raise InvalidValue("a key needs an owner")
        prefix, secret = secrets.token_hex(5), secrets.token_hex(32)
        row = {
            "prefix": prefix, "hash": _hash(secret), "owner": owner,
            "scopes": " ".join(sorted(chosen)), "name": name,
            "limits": json.dumps(dict(limits or {})), "created_at": moment(),
        }  # fmt: skip
        with self.database.writing() as connection:
            connection.execute(insert(keys), row)
        return self.get(prefix), f"tamis_{prefix}_{secret}"

    def get(self, prefix: str) -> Key:
        """The key with a prefix."""
        with self.database.reading() as connection:
            row = connection.execute(select(keys).where(keys.c.prefix == prefix)).first()
        if row is None:
            raise UnknownKey(f"there is no key {quoted(prefix)}")
        return _key_of(row)

    def list(self) -> list[Key]:
        """All keys, the oldest first."""
        query = select(keys).order_by(keys.c.created_at, keys.c.prefix)
        with self.database.reading() as connection:
            return [_key_of(row) for row in connection.execute(query)]

    def revoke(self, prefix: str) -> Key:
        """Let a key do nothing any more; revoking it again changes nothing."""
        with self.database.writing() as connection:
            connection.execute(
                update(keys)
                .where(keys.c.prefix == prefix, keys.c.revoked_at.is_(None))
                .values(revoked_at=moment())
            )
        return self.get(prefix)

    def note_use(self, used: Mapping[str, str]) -> None:
        """Write down when keys were last used: a moment for each prefix."""
        with self.database.writing() as connection:
            for prefix, at in used.items():
                connection.execute(
                    update(keys).where(keys.c.prefix == prefix).values(last_used_at=at)
                )


def parse_key(text: str) -> tuple[str, str]:
    """The prefix and the secret of a key's text."""
    found = _KEY.fullmatch(text)
    if found is None:
        raise NotAllowed("this is no key of Tamis; expected tamis_<prefix>_<secret>")
    return found[1], found[2]


def check_secret(key: Key | None, secret: str) -> bool:
    """Whether a secret is that of a key, found out in the same time whatever it is."""
    wanted = _NOBODY if key is None else key.hash
    return hmac.compare_digest(_hash(secret), wanted) and key is not None


def _hash(secret: str) -> str:
    # The secret is 256 random bits: nobody can guess it, so a slow hash would add nothing.
    return sha256(secret.encode()).hexdigest()


def _key_of(row: Row[Any]) -> Key:
    return Key(
        row.prefix, row.owner, frozenset(row.scopes.split()), row.name, json.loads(row.limits),
        row.created_at, row.last_used_at, row.revoked_at, row.hash,
    )  # fmt: skip
