"""Secrets in texts: what addresses hold beside a scheme and a host is not shown."""

from __future__ import annotations

import re

__all__ = ["without_secrets"]

# In quotes, where it may have spaces, or bare.
_ADDRESS = re.compile(
    r"""(['"])((?:\\.|(?!\1).)*://(?:\\.|(?!\1).)*)\1|[A-Za-z][A-Za-z0-9+.-]*://\S+"""
)


def without_secrets(text: str) -> str:
    """A text whose addresses are cut down to scheme and host; of those of Apprise, to the scheme.

    >>> without_secrets("webhook 'https://zoe:pass word@example.org:8443/hook?token=1' is wrong")
    "webhook 'https://example.org:8443/…' is wrong"
    >>> without_secrets("no answer from slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazk")
    'no answer from slack://…'
    """
    return _ADDRESS.sub(_replacement, text)


def _replacement(found: re.Match[str]) -> str:
    quote, quoted = found[1] or "", found[2]
    return f"{quote}{_cut(found[0] if quoted is None else quoted)}{quote}"


def _cut(address: str) -> str:
    before, _, rest = address.partition("://")
    scheme = before.rpartition(" ")[2]
    if scheme.lower() not in ("http", "https"):
        return f"{scheme}://…"
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    return f"{scheme}://{host}" + ("/…" if len(rest) > len(authority) else "")
