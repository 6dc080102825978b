"""The libraries of the ``bench`` extra, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tamis.errors import MissingExtra


def extra(module: str) -> Any:
    """The module, or MissingExtra with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{module.partition('.')[0]} is not installed, and this benchmark compares with it; "
            "run: pip install tamis[bench]"
        ) from error
