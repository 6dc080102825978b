"""The load of a soak: events and subscriptions from clients that do not give up."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from tamis import Index, Subscription
from tamis.bench.service.receiver import Pair
from tamis.client import Client
from tamis.client.failures import ServiceError
from tamis.errors import DuplicateSubscription, StorageUnavailable, UnknownSubscription

N_MAKES = 50
N_STAYING = 2_000  # subscriptions that are there from the first event to the last
HIGHEST_PRICE = 10_000
AT_ONCE = 20  # events in a request
COMES_EVERY_S = 1.0  # how often a subscription comes, and another one goes
LIVES_S = 600.0
_AGAIN_S = 0.5

T = TypeVar("T")


@dataclass(slots=True)
class Wish:
    """A subscription; the moments are those at which it was saved, and its deletion begun."""

    id: str
    filter: str
    priority: int = 5
    saved_at: float = 0.0
    deleted_at: float = float("inf")


class Ledger:
    """What was published and saved, and when: what the receiver must have heard by the end."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.events: dict[str, dict[str, Any]] = {}
        self.sent_at: dict[str, float] = {}
        self.staying = [Wish(f"s{n}", self._filter(n % N_MAKES), n % 10) for n in range(N_STAYING)]
        self.visitors: dict[str, Wish] = {}

    def new_filter(self) -> str:
        """What somebody wants to hear about: one event in a thousand."""
        return self._filter(self._random.randrange(N_MAKES))

    def _filter(self, make: int) -> str:
        most = self._random.randrange(HIGHEST_PRICE // 10)
        return f"make = 'm{make}' AND price < {most}"

    def new_events(self) -> list[dict[str, Any]]:
        """The next events of a publisher."""
        first = len(self.events)
        made: list[dict[str, Any]] = [
            {"id": f"e{first + n}", "make": f"m{self._random.randrange(N_MAKES)}",
             "price": self._random.randrange(HIGHEST_PRICE), "note": "x" * 200}
            for n in range(AT_ONCE)
        ]  # fmt: skip
        now = monotonic()
        for event in made:
            self.events[event["id"]] = event
            self.sent_at[event["id"]] = now
        return made

    def expected(self) -> set[Pair]:
        """(event, subscription) of those that stay, as the index finds them."""
        return set(self._found(self.staying))

    def expected_of_visitors(self, margin_s: float) -> set[Pair]:
        """Pairs of those that come and go, but for events published shortly before they went."""
        of, at = self.visitors, self.sent_at
        return {
            (id, who)
            for id, who in self._found(of.values())
            if of[who].saved_at < at[id] < of[who].deleted_at - margin_s
        }

    def _found(self, wishes: Iterable[Wish]) -> Iterator[Pair]:
        index = Index()
        index.add_many(Subscription(one.id, one.filter) for one in wishes)
        for id, event in self.events.items():
            for who in index.match(event):
                yield id, who


class Load:
    """Two clients in threads of their own: a publisher, and people who come and go."""

    def __init__(self, url: str, key: str, hook: str, ledger: Ledger, events_per_s: float) -> None:
        self._client = Client(url, key, timeout_s=20.0)
        self._hook, self._ledger = hook, ledger
        self._pause_s = AT_ONCE / events_per_s
        self._is_over = threading.Event()
        self.n_again = 0
        self.failed: BaseException | None = None

    def save_staying(self) -> None:
        """Save those that stay; every other one hears once a minute."""
        deliveries: list[dict[str, Any]] = [
            {"webhook": self._hook}, {"webhook": self._hook, "schedule": "every minute"}
        ]  # fmt: skip
        given = (
            {"id": one.id, "filter": one.filter, "priority": one.priority,
             "delivery": deliveries[n % 2]}
            for n, one in enumerate(self._ledger.staying)
        )  # fmt: skip
        for result in self._client.import_many(given):
            if result.problem is not None:
                raise ServiceError(f"{result.id} was not imported: {result.problem}")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Load for as long as it is used; then all that was begun is ended."""
        threads = [
            threading.Thread(target=self._repeat, args=what, name=what[0].__name__)
            for what in ((self._publish, self._pause_s), (self._come_and_go, COMES_EVERY_S))
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()
            self._client.close()

    def _repeat(self, act: Callable[[], None], pause_s: float) -> None:
        due = monotonic()
        try:
            while not self._is_over.is_set():
                act()
                due = max(due + pause_s, monotonic() - pause_s)
                self._is_over.wait(max(0.0, due - monotonic()))
        except BaseException as error:
            self.failed = error
            raise

    def _publish(self) -> None:
        events = self._ledger.new_events()
        self._until_done(lambda: self._client.publish(events))

    def _come_and_go(self) -> None:
        visitors = self._ledger.visitors
        id, text = f"v{len(visitors)}", self._ledger.new_filter()
        self._until_done(lambda: self._come(id, text))
        visitors[id] = Wish(id, text, saved_at=monotonic())
        leaving = visitors.get(f"v{len(visitors) - round(LIVES_S / COMES_EVERY_S)}")
        if leaving is not None:
            leaving.deleted_at = monotonic()
            self._until_done(lambda: self._go(leaving.id))

    def _come(self, id: str, text: str) -> None:
        with suppress(DuplicateSubscription):  # the service was killed before it could say so
            self._client.create(text, id=id, delivery={"webhook": self._hook})

    def _go(self, id: str) -> None:
        with suppress(UnknownSubscription):
            self._client.delete(id)

    def _until_done(self, ask: Callable[[], T]) -> T:
        """Ask again until the service answers."""
        while True:
            try:
                return ask()
            except (ServiceError, StorageUnavailable):
                self.n_again += 1
                self._is_over.wait(_AGAIN_S)
