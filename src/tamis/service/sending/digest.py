"""Digest: a notification as people read it, in plain text and in HTML."""

from __future__ import annotations

from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from tamis.service.sending.message import Message

__all__ = ["Digest", "write_digest"]

_LONGEST_PAYLOAD = 1_000


class Digest(NamedTuple):
    """A notification as people read it."""

    headline: str
    text: str
    html: str


def write_digest(message: Message, unsubscribe_url: str | None = None) -> Digest:
    """Write a notification out: what matched, and the filter that it matched."""
    row = message.claim.row
    headline = _headline(message)
    held: dict[str, Any] = {
        "headline": headline,
        "matches": message.matches,
        "held_back": row.held_back,
        "subscription_id": message.subscription_id,
        "filter": message.filter_text,
        "unsubscribe_url": unsubscribe_url,
    }
    text = _TEMPLATES.get_template("digest.txt").render(held)
    html = _TEMPLATES.get_template("digest.html").render(held)
    return Digest(headline, as_text(text), as_text(html))


def as_text(text: str) -> str:
    r"""A text without what UTF-8 cannot write, and without control characters but line ends.

    >>> as_text("a\ud800b\x00c")
    'a?b c'
    """
    writable = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in writable)


def _headline(message: Message) -> str:
    row = message.claim.row
    if not row.parts:
        return f"{row.held_back:,} held back for {message.subscription_id}"
    matches = "match" if row.total == 1 else "matches"
    part = f" (part {row.part} of {row.parts})" if row.parts > 1 else ""
    return f"{row.total:,} {matches} for {message.subscription_id}{part}"


def _excerpt(text: str) -> str:
    return text if len(text) <= _LONGEST_PAYLOAD else text[: _LONGEST_PAYLOAD - 1] + "…"


_TEMPLATES = Environment(
    loader=PackageLoader("tamis.service.sending"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
)
_TEMPLATES.filters["excerpt"] = _excerpt
