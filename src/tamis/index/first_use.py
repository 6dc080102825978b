"""First use: the kernels of an index that is changed and matched, called before they are needed.

A kernel is compiled, or taken from the disk, when it is first called with arguments of some types;
some are first called when there are thousands of subscriptions, or one of a rare kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tamis.index.building import FEW_SLOTS, MIN_DENSE
from tamis.index.dense_block import MIN_BY_LINE
from tamis.index.engine import MANY_BURIED
from tamis.index.head import HEAD_SLOTS
from tamis.index.index import Index
from tamis.index.moving import MIN_DELTA
from tamis.index.reader import MIN_BATCH
from tamis.kernels.compiled import IS_COMPILED, cache_directory, name_of_processor
from tamis.kernels.sparse_batch import GROUP
from tamis.language import Filter, col
from tamis.model import Event, Subscription
from tamis.values import Point, Polygon, Range

_AREA = Polygon([(n / 40, 0.0) for n in range(41)] + [(1.0, 1.0), (0.5, 0.5), (0.0, 1.0)])
_PLAIN = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5, "brand": "x", "price": 5, "is_new": True}
_RARE = {**_PLAIN, "a": 1.9, "b": 1.9, "c": 1.9, "d": 1.9}  # that few of the dense boxes hold
_EVENTS: tuple[dict[str, Any], ...] = (
    _PLAIN,
    {**_PLAIN, "brand": ["x", "y"], "price": [5, 7]},
    {**_PLAIN, "price": Range(1, 9)},
    {**_PLAIN, "a": [0.4, 0.6]},
    {**_PLAIN, "spot": Point(0.2, 0.2)},
    {**_PLAIN, "spot": [Point(0.2, 0.2), Point(0.6, 0.2)]},
    {"year": 2000},
)


def use_kernels() -> Iterator[None]:
    """Call every kernel that an index uses for what a service does with it, step by step.

    All steps take a minute; the caller may stop between them. Where that was done before, nothing
    is left to do: what they compiled is on the disk, where ``load_kernels`` finds it.
    """
    done = cache_directory() / f"used-{name_of_processor()}"
    if not IS_COMPILED or done.exists():
        return
    yield from _use([*_dense(MIN_DENSE), *_sparse(FEW_SLOTS), *_movers(MIN_DELTA + MIN_DELTA // 8)])
    yield from _use([*_dense(2 * FEW_SLOTS)])  # of one priority, and nothing has to be tested
    with suppress(OSError):  # a disk that cannot be written to has no kernels either
        done.touch()


def _use(subscriptions: list[Subscription]) -> Iterator[None]:
    index = Index()
    index.add_many(subscriptions)
    for one in _dense(HEAD_SLOTS, width=2):  # one by one, until the head is sealed
        index.add(one)
    yield from _match(index)
    for event, n_events in ((_RARE, MIN_BY_LINE), (_PLAIN, 2 * GROUP)):  # by line, by record
        index.match_batch([event] * n_events)
        yield
    some = [*subscriptions[: 2 * MANY_BURIED], *subscriptions[2 * MANY_BURIED :][-8:]]
    for one in some:
        index.update(one)
    for one in some:
        index.remove(one.id)
    index._engine.wait_for_merging()
    yield from _match(index)
    index.stats()
    yield


def _match(index: Index) -> Iterator[None]:
    for place in (None, Point(0.2, 0.2)):
        events = [Event(f"e{n}", one, location=place) for n, one in enumerate(_EVENTS)]
        for event in events:
            index.match(event)
            yield
        for batch in (events[:1] * MIN_BATCH, events + events[:2], events[:2]):
            index.match_batch(batch)
            yield
    index.match(_PLAIN)
    yield


def _dense(n_subscriptions: int, width: int = 1) -> Iterator[Subscription]:
    """Boxes of the same attributes; enough of them are a block of their own."""
    for n in range(n_subscriptions):
        low = n / n_subscriptions
        ranges = [col(name).between(low - 1, low + width) for name in "abcd"]
        yield Subscription(f"dense {width} {n}", ranges[0] & ranges[1] & ranges[2] & ranges[3])


def _sparse(n_subscriptions: int) -> Iterator[Subscription]:
    """Filters of every kind, with different priorities; some are the same."""
    for n in range(n_subscriptions):
        some = _filters(n - n % 3)
        yield Subscription(f"sparse {n}", some[n % len(some)], priority=n % 10)


def _filters(n: int) -> list[Filter]:
    brand, price, spot = col("brand"), col("price"), col("spot")
    return [
        (brand == "x") & (price < 10 + n),
        brand.is_in("x", "y") & price.between(0, 10 + n, "()"),
        ((brand == "x") & (price > n)) | ((brand == "z") & (col("year") == 2000)),
        brand.starts_with("x") & ~col("tag").is_in("u", "v") & (price != n),
        col("is_new").is_true() & col("year").is_null() & (price >= n),
        spot.within(_AREA) & (price < 10 + n),
        (spot.distance(0.2, 0.2) < 1_000 + n) & (col("year").is_not_null() | (price < n)),
        spot.in_box(0, 0, 1, 1) & ~(price == n) & ~col("sold").is_true(),
        ~(spot.within(_AREA) & (price < n)),
    ]


def _movers(n_subscriptions: int) -> Iterator[Subscription]:
    """Subscriptions with a place, near and far; enough of them are merged."""
    for n in range(n_subscriptions):
        some = _filters(n % 7)
        filter = some[n % len(some)] if n % 50 == 0 else col("a").between(n / MIN_DELTA - 1, 1)
        radius_m = 100_000 if n % 20 == 0 else (500, 5_000)[n % 2]
        area = "square" if n % 2 else "circle"
        place = (0.2 + n * 1e-6, 0.2)
        yield Subscription(
            f"mover {n}", filter, n % 10, location=place, radius_m=radius_m, area=area
        )
