"""The papers by name."""

from __future__ import annotations

from importlib import import_module

from tamis.bench.reproduce.figures import Figure, Paper
from tamis.errors import TamisError

PAPERS = {
    "gem": "gem",
    "dexin": "dexin",
    "pri-rein": "pri_rein",
    "mo-tree": "mo_tree",
    "yandex": "yandex",
    "cpp": "cpp",
}
ALL = "all"


class UnknownExperiment(TamisError, ValueError):
    """A paper or a figure of this name does not exist."""


def paper_of(name: str) -> Paper:
    """The paper of a name."""
    if name not in PAPERS:
        known = ", ".join((*PAPERS, ALL))
        raise UnknownExperiment(f"no paper {name!r}; expected one of {known}")
    paper: Paper = import_module(f"tamis.bench.reproduce.{PAPERS[name]}").PAPER
    return paper


def chosen(names: tuple[str, ...], figure: str | None) -> list[tuple[Paper, tuple[Figure, ...]]]:
    """The papers that are named, each with all its figures or with the one of a number.

    >>> [(paper.key, len(figures)) for paper, figures in chosen(("gem",), "4")]
    [('gem', 1)]
    """
    papers = [paper_of(name) for name in (PAPERS if ALL in names else dict.fromkeys(names))]
    found = [
        (paper, tuple(one for one in paper.figures if figure in (None, one.number)))
        for paper in papers
    ]
    if not any(figures for _, figures in found):
        known = ", ".join(one.number for paper in papers for one in paper.figures)
        raise UnknownExperiment(f"no figure {figure!r}; expected one of {known}")
    return found
