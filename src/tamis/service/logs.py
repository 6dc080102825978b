"""The log: one JSON object a line, in which no key is ever spelt out."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

__all__ = ["log", "set_up_logs"]

_KEY = re.compile(r"(tamis_[0-9a-f]{10}_)[0-9a-f]+")
_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")
_NEVER = frozenset({"authorization", "secret", "password", "cookie"})

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=repr)

log = structlog.get_logger("tamis")


def hide_secrets(
    logger: Any, method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Take keys and passwords out of an entry.

    >>> hide_secrets(None, "", {"event": f"got tamis_{'ab' * 5}_{'0' * 64}"})
    {'event': 'got tamis_ababababab_…'}
    """
    for name, held in entry.items():
        if name.lower() in _NEVER:
            entry[name] = "…"
        elif isinstance(held, str):
            if "tamis_" in held:
                entry[name] = held = _KEY.sub(r"\1…", held)
            if "://" in held:
                entry[name] = _PASSWORD.sub(r"\1…@", held)
    return entry


def set_up_logs(level: int = logging.INFO) -> None:
    """Write the log to stderr, that of uvicorn too."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            hide_secrets,
            structlog.processors.JSONRenderer(_spell),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _spell(entry: MutableMapping[str, Any], **asked: Any) -> str:
    """An entry as JSON: one encoder for all of them, as one is made for each otherwise."""
    return _ENCODER.encode(entry)
