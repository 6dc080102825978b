"""Paths as Spark takes them: what would make them patterns is escaped."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["has_pattern", "plain_path"]

_SPECIAL = re.compile(r"[*?\[\]{}\\]")


def plain_path(path: str | Path) -> str:
    r"""A path that Spark's readers take as it is.

    >>> print(plain_path("/ads [1]/events"))
    /ads \[1\]/events
    """
    return _SPECIAL.sub(r"\\\g<0>", str(path))


def has_pattern(path: str | Path) -> bool:
    """Whether Spark would take a path, or a name, for a pattern."""
    return _SPECIAL.search(str(path)) is not None
