"""Tokens: the links in mails that end these mails, without a key (RFC 8058).

A token says which subscription is no longer to write to which address. It is signed with a key
that is derived from the secret of the subscription's owner: only service and owner can make it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import NamedTuple

__all__ = ["PATH", "Wish", "is_signed", "make_token", "read_token", "unsubscribe_url"]

PATH = "/v1/unsubscribe"
_PURPOSE = b"tamis unsubscribe"
_LONGEST_TOKEN = 4_000


class Wish(NamedTuple):
    """Which subscription is no longer to write to which address."""

    subscription_id: str
    address: str


def make_token(wish: Wish, secret: str) -> str:
    """A token that says who wishes what; ``secret`` is the webhook secret of the owner.

    >>> token = make_token(Wish("s1", "a@b.example"), "whsec_x")
    >>> read_token(token), is_signed(token, "whsec_x"), is_signed(token, "whsec_y")
    (Wish(subscription_id='s1', address='a@b.example'), True, False)
    """
    said = _encode(json.dumps(list(wish), separators=(",", ":")).encode())
    return f"{said}.{_signature(said, secret)}"


def read_token(token: str) -> Wish | None:
    """What a token says, whoever made it; None if it says nothing."""
    said, dot, _ = token.partition(".")
    if not dot or len(token) > _LONGEST_TOKEN:
        return None
    try:
        held = json.loads(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    # The id is looked up before the signature can be checked, which is that of its owner.
    is_wish = (
        isinstance(held, list)
        and len(held) == 2
        and all(isinstance(one, str) and one.isprintable() for one in held)
    )
    return Wish(*held) if is_wish else None


def is_signed(token: str, secret: str) -> bool:
    """Whether a token was made with a secret."""
    said, _, signature = token.partition(".")
    return hmac.compare_digest(_signature(said, secret).encode(), signature.encode())


def unsubscribe_url(public_url: str, subscription_id: str, address: str, secret: str) -> str:
    """The link in a mail."""
    token = make_token(Wish(subscription_id, address), secret)
    return f"{public_url.rstrip('/')}{PATH}?token={token}"


def _signature(said: str, secret: str) -> str:
    key = hmac.new(secret.encode(), _PURPOSE, hashlib.sha256).digest()
    return _encode(hmac.new(key, said.encode(), hashlib.sha256).digest())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
