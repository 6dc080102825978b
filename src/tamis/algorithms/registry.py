"""The registry: every algorithm by its name. Modules load when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from tamis.errors import NotSupported
from tamis.matching import Attribute, Matcher


class Algorithm(NamedTuple):
    """Where an algorithm lives (in this package, or a module by its full name), and its paper."""

    module: str
    class_name: str
    paper: str


ALGORITHMS: dict[str, Algorithm] = {
    "be_tree": Algorithm("be_tree", "BETree", "Sadoghi, Jacobsen: BE-Tree, SIGMOD 2011"),
    "beq_tree": Algorithm("beq_tree", "BEQTree", "Guo, Zhang, Li, Tan, Bao: Elaps, SIGMOD 2015"),
    "dexin": Algorithm("dexin", "Dexin", "Fan, Liu, Tang: DEXIN, FGCS 2017"),
    "filter_tree": Algorithm(
        "filter_tree", "FilterTree", "Schitinin, Tsesko: Streaming matching, CEE-SECR 2016"
    ),
    "gem": Algorithm("gem", "Gem", "Fan, Liu, Tang: GEM, INFOCOM 2016"),
    "h_tree": Algorithm("h_tree", "HTree", "Qian, Cao, Zhu, Li, Wang: H-Tree, TPDS 2014"),
    "mo_tree": Algorithm("mo_tree", "MOTree", "Dian, Qian, Cao, Xue, Zhu, Yu, Li: MO-Tree, 2020"),
    "op_index": Algorithm("op_index", "OpIndex", "Zhang, Chan, Tan: OpIndex, PVLDB 2014"),
    "pri_rein": Algorithm("pri_rein", "PriRein", "Qian, Cao, Le Mouël, Li, Wang, DEBS 2015"),
    "pri_rein_s": Algorithm("pri_rein", "PriReinS", "the same paper (DEBS 2015), section 5.3.2"),
    "r_star_tree": Algorithm("r_star_tree", "RStarTree", "Beckmann et al.: R*-tree, SIGMOD 1990"),
    "rein": Algorithm("rein", "Rein", "Qian, Cao, Zhu, Li: REIN, INFOCOM 2014"),
    "siena": Algorithm("siena", "Siena", "Carzaniga, Wolf: Forwarding, SIGCOMM 2003"),
    "simple": Algorithm("simple", "Simple", "the baseline of Qian et al.: Pri-REIN, DEBS 2015"),
    "tama": Algorithm("tama", "Tama", "Zhao, Wu: TAMA, ICDCS 2011"),
    "tama_exact": Algorithm("tama", "ExactTama", "Zhao, Wu: TAMA, ICDCS 2011, with a check"),
    "tamis": Algorithm("tamis.events.matcher", "TamisMatcher", "the engine of this library, 2026"),
}


def load(name: str) -> type[Matcher]:
    """The class of an algorithm."""
    if name not in ALGORITHMS:
        raise NotSupported(f"no algorithm {name!r}; expected one of {', '.join(ALGORITHMS)}")
    entry = ALGORITHMS[name]
    is_elsewhere = entry.module.startswith("tamis.")
    module = entry.module if is_elsewhere else f"tamis.algorithms.{entry.module}"
    found: type[Matcher] = getattr(import_module(module), entry.class_name)
    return found


def make(name: str, attributes: Sequence[Attribute | str], **parameters: Any) -> Any:
    """A new matcher; parameters are those of its class."""
    return load(name)(attributes, **parameters)
