"""Which algorithms can be shown, and with how much data a picture reads well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tamis.algorithms import ALGORITHMS
from tamis.bench.views.be_tree import draw_be_tree
from tamis.bench.views.counting import draw_op_index, draw_siena, draw_tama
from tamis.bench.views.dexin import draw_dexin
from tamis.bench.views.engine import draw_tamis
from tamis.bench.views.filter_tree import draw_filter_tree
from tamis.bench.views.gem import draw_gem
from tamis.bench.views.h_tree import draw_h_tree
from tamis.bench.views.mo_tree import draw_mo_tree
from tamis.bench.views.plane import draw_found
from tamis.bench.views.rein import draw_pri_rein, draw_rein
from tamis.bench.views.simple import draw_simple
from tamis.bench.views.space import draw_beq_tree, draw_r_star_tree
from tamis.bench.views.subject import Subject


@dataclass(frozen=True, slots=True)
class View:
    """How an algorithm is drawn, and the subscriptions that are made for it."""

    draw: Callable[[Subject], Any]
    n_subscriptions: int = 24
    max_subscriptions: int = 60
    n_attributes: int = 2
    range_of_attributes: tuple[int, int] | None = None  # as many as ``n_attributes`` if not said
    narrow: float = 1.0
    free: tuple[float, ...] = ()

    @property
    def attributes(self) -> tuple[int, int]:
        """The fewest and the most attributes that can be drawn."""
        return self.range_of_attributes or (self.n_attributes, self.n_attributes)

    def subject(
        self,
        event: Mapping[str, Any],
        seed: int = 0,
        n_subscriptions: int | None = None,
        n_attributes: int | None = None,
    ) -> Subject:
        """What is shown."""
        return Subject.of(
            n_subscriptions or self.n_subscriptions,
            n_attributes or self.n_attributes,
            seed,
            event,
            narrow=self.narrow,
            free=self.free,
        )


def _steps(draw: Callable[[Subject], Any]) -> View:
    """A view that shows steps: many subscriptions, up to six attributes."""
    return View(
        draw,
        n_subscriptions=5_000,
        max_subscriptions=1_000_000,
        n_attributes=4,
        range_of_attributes=(1, 6),
    )


_OWN: dict[str, View] = {
    "be_tree": View(draw_be_tree, n_subscriptions=30, max_subscriptions=40, narrow=0.5),
    "beq_tree": View(
        draw_beq_tree, n_subscriptions=60, max_subscriptions=300, n_attributes=3, narrow=0.3
    ),
    "dexin": _steps(draw_dexin),
    "gem": _steps(draw_gem),
    "h_tree": View(draw_h_tree, n_subscriptions=16, narrow=0.8, free=(0.1, 0.1)),
    "mo_tree": _steps(draw_mo_tree),
    "op_index": View(draw_op_index, n_attributes=3, free=(0.0, 0.4, 0.6)),
    "pri_rein": View(draw_pri_rein, n_subscriptions=40),
    "pri_rein_s": View(draw_pri_rein, n_subscriptions=40),
    "r_star_tree": View(
        draw_r_star_tree, n_subscriptions=300, max_subscriptions=1_000, narrow=0.25
    ),
    "rein": View(draw_rein, n_subscriptions=36),
    "siena": View(draw_siena, n_subscriptions=36),
    "simple": View(draw_simple),
    "tama": View(draw_tama),
    "tama_exact": View(draw_tama),
    "tamis": View(
        draw_tamis, n_subscriptions=8_192, max_subscriptions=16_384, n_attributes=4, narrow=0.6
    ),
}

# Drawn for the example of their paper: nothing is made for them, and no event is chosen.
EXAMPLES: dict[str, Callable[[], Any]] = {"filter_tree": draw_filter_tree}

# An algorithm without a view of its own is shown by what it finds.
VIEWS: dict[str, View] = {
    name: _OWN.get(name, View(partial(draw_found, name)))
    for name in ALGORITHMS
    if name not in EXAMPLES
}
