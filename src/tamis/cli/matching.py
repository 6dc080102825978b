"""``tamis match``: events from a file or a pipe against the subscriptions of another."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from tamis.cli.meter import Meter
from tamis.cli.reading import (
    STDIN,
    Reading,
    events_in,
    label_of,
    subscriptions_in,
    unit_of,
)
from tamis.cli.terminal import (
    BadInput,
    announce_first_use,
    message_of,
    print_error,
    require_stdout,
)
from tamis.cli.writing import STDOUT, Writer, opened_writer
from tamis.errors import TamisError, quoted
from tamis.index import Index
from tamis.model import Event, Subscription

T = TypeVar("T")


@dataclass(slots=True)
class Summary:
    """What a run did."""

    subscriptions: int = 0
    events: int = 0
    events_matched: int = 0
    matches: int = 0
    rejected: int = 0
    load_seconds: float = 0.0
    match_seconds: float = 0.0

    @property
    def events_per_second(self) -> float:
        """Events read, matched and written in a second."""
        return self.events / self.match_seconds if self.match_seconds else 0.0

    def to_json(self) -> dict[str, float]:
        """The summary as a JSON object."""
        made = {**asdict(self), "events_per_second": self.events_per_second}
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in made.items()}


@dataclass(slots=True)
class MatchJob:
    """The options of one run, and what it does with them."""

    subscriptions: str
    events: str
    output: str = STDOUT
    skip_bad: bool = False
    rejects: Path | None = None
    json: bool = False
    summary: Summary = field(default_factory=Summary)
    meter: Meter = field(default_factory=Meter)
    _rejected: IO[str] | None = None

    def run(self) -> None:
        """Read, match, write; then say what was done."""
        self._check()
        announce_first_use()
        with ExitStack() as stack:
            if self.rejects is not None:
                self._rejected = stack.enter_context(self.rejects.open("w", encoding="utf-8"))
            stack.enter_context(self.meter.shown(beside_stdout=self.output == STDOUT))
            index = self._load()
            self._match(index, stack.enter_context(opened_writer(self.output)))
        if self.json:
            print(json.dumps(self.summary.to_json()), file=sys.stderr)
        elif self.meter.is_terminal:
            self.meter.print_summary(self.summary.to_json())

    def _check(self) -> None:
        if self.subscriptions == self.events == STDIN:
            raise BadInput("only one of --subscriptions and --events can be stdin (-)")
        if self.output == STDOUT:
            require_stdout()
        read = [Path(p) for p in (self.subscriptions, self.events) if p != STDIN]
        for path in read:
            path.stat()  # before anything is written
        written = [Path(self.output)] if self.output != STDOUT else []
        written += [self.rejects] if self.rejects is not None else []
        for path in written:
            if path.exists() and any(one.samefile(path) for one in read):
                raise BadInput(f"{path} is read by this run and cannot be written by it")
        if len(written) == 2 and written[0].resolve() == written[1].resolve():
            raise BadInput(f"--output and --rejects are the same file, {written[0]}")

    def _load(self) -> Index:
        index, places = Index(), dict[str, int]()
        with self._timed("load_seconds"):
            for chunk in subscriptions_in(self.subscriptions):
                self._add(index, self._accepted(self.subscriptions, chunk), places)
                self.summary.subscriptions = len(index)
                self.meter.show_loading(len(index))
        return index

    def _add(
        self, index: Index, given: Iterable[tuple[int, Subscription]], places: dict[str, int]
    ) -> None:
        new = []
        for place, one in given:
            if one.id in places:
                where = f"{unit_of(self.subscriptions)} {places[one.id]}"
                self._reject(
                    self.subscriptions,
                    place,
                    BadInput(f"the id {quoted(one.id)} is taken by {where}"),
                )
            else:
                places[one.id] = place
                new.append((place, one))
        try:
            index.add_many([one for _, one in new])
        except TamisError:  # one by one, to tell which; add_many is all or nothing
            for place, one in new:
                try:
                    index.add(one)
                except TamisError as error:
                    self._reject(self.subscriptions, place, error)

    def _match(self, index: Index, writer: Writer) -> None:
        with self._timed("match_seconds"):
            for chunk in events_in(self.events):
                events: list[Event] = []
                failure: BadInput | None = None
                try:
                    for _, one in self._accepted(self.events, chunk):
                        events.append(one)
                except BadInput as error:  # after what came before it
                    failure = error
                matches = index.match_batch(events)
                writer.write([event.id for event in events], matches)
                self.summary.events += len(events)
                self.summary.matches += len(matches.ids)
                self.summary.events_matched += int(
                    (matches.offsets[1:] > matches.offsets[:-1]).sum()
                )
                self.meter.show_matching(self.summary.events, self.summary.matches)
                if failure is not None:
                    raise failure

    def _accepted(self, path: str, chunk: list[Reading[T]]) -> Iterator[tuple[int, T]]:
        for place, held in chunk:
            if isinstance(held, TamisError):
                self._reject(path, place, held)
            else:
                yield place, held

    def _reject(self, path: str, place: int, error: TamisError) -> None:
        message = message_of(error)
        where = f"{label_of(path)}, {unit_of(path)} {place}"
        if not self.skip_bad and self._rejected is None:
            raise BadInput(f"{where}: {message}") from None
        self.summary.rejected += 1
        if self._rejected is None:
            print_error(f"{where}: {message}", "skipped", self.meter.console)
            return
        line = {"file": label_of(path), unit_of(path): place, "error": message}
        self._rejected.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._rejected.flush()

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self.summary, name, time.perf_counter() - start)
