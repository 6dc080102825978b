"""The registry: every algorithm by its name. Modules load when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from tamis.errors import NotSupported
from tamis.matching import Attribute, Matcher


class Algorithm(NamedTuple):
    """Where an algorithm lives and which paper it is from."""

    module: str
    class_name: str
    paper: str


ALGORITHMS: dict[str, Algorithm] = {
    "dexin": Algorithm("dexin", "Dexin", "Fan, Liu, Tang: DEXIN, FGCS 2017"),
    "gem": Algorithm("gem", "Gem", "Fan, Liu, Tang: GEM, INFOCOM 2016"),
    "rein": Algorithm("rein", "Rein", "Qian, Cao, Zhu, Li: REIN, INFOCOM 2014"),
    "simple": Algorithm("simple", "Simple", "the baseline of Qian et al.: Pri-REIN, DEBS 2015"),
}


def load(name: str) -> type[Matcher]:
    """The class of an algorithm."""
    if name not in ALGORITHMS:
        raise NotSupported(f"no algorithm {name!r}; expected one of {', '.join(ALGORITHMS)}")
    entry = ALGORITHMS[name]
    found: type[Matcher] = getattr(
        import_module(f"tamis.algorithms.{entry.module}"), entry.class_name
    )
    return found


def make(name: str, attributes: Sequence[Attribute | str], **parameters: Any) -> Any:
    """A new matcher; parameters are those of its class."""
    return load(name)(attributes, **parameters)
