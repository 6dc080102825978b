"""Names of a package that load when first used, so that who needs few of them waits less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from sys import modules
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, from its modules and the names of each."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        held = getattr(import_module(home_of[name]), name)
        setattr(modules[package], name, held)
        return held

    def names() -> list[str]:
        return sorted({*vars(modules[package]), *home_of})

    return get, names
