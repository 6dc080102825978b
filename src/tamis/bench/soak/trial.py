"""A soak from its first event to the last word told of it, and what came out."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from time import monotonic, sleep
from typing import Any

from tamis.bench.service.processes import BenchFailed, free_port, new_key
from tamis.bench.service.receiver import Pair, Told, receiving
from tamis.bench.soak.load import N_STAYING, Ledger, Load
from tamis.bench.soak.programs import ROLES, Programs
from tamis.bench.soak.samples import growth, sample
from tamis.language import evaluate, parse_filter

SEED = 7
CALM_SHARE = 0.5  # of the time, at its end, in which nothing is killed
_SAMPLE_S = 10.0
_KILLS_S = (90.0, 150.0)  # between two kills
_DRAIN_S = 600.0
_MARGIN_S = 300.0  # an event published so shortly before a subscription goes may miss it

Listener = Callable[[float, str], None]
"""Told how far a soak is, from 0 to 1, and how it stands."""


@dataclass(slots=True)
class Trial:
    """Programs under load, what is done to them, and what is seen of them."""

    folder: Path
    seconds: float
    events_per_s: float
    listen: Listener
    programs: Programs = field(init=False)
    ledger: Ledger = field(init=False)
    told: Told = field(default_factory=Told, init=False)
    samples: list[dict[str, Any]] = field(default_factory=list, init=False)
    kills: list[dict[str, Any]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.programs = Programs(self.folder, f"sqlite:///{self.folder}/tamis.db", free_port())
        self.ledger = Ledger(SEED)

    def run(self) -> dict[str, Any]:
        """Start all, load, kill and sample; then wait for what is outstanding, and compare."""
        self.programs.write_settings()
        key = new_key(self.programs.database_url)
        self.programs.start()
        try:
            with receiving(self.told) as hook:
                load = Load(self.programs.url, key, hook, self.ledger, self.events_per_s)
                load.save_staying()
                begun = monotonic()
                with load.running():
                    self._watch(begun, load)
                expected = self.ledger.expected()
                visits = self.ledger.expected_of_visitors(_MARGIN_S)
                drained_s = self._drain(expected | visits)
                self.programs.stop()
        except BaseException:
            self.programs.stop()
            raise
        return self._found(expected, visits, drained_s, load.n_again)

    def _watch(self, begun: float, load: Load) -> None:
        chance = random.Random(SEED)
        calm_from = begun + self.seconds * (1 - CALM_SHARE)
        next_kill = begun + min(chance.uniform(*_KILLS_S), self.seconds / 4)
        next_sample = begun
        while (now := monotonic()) < begun + self.seconds:
            if load.failed is not None:
                raise BenchFailed(f"the load ended early: {load.failed!r}") from load.failed
            if next_kill <= now < calm_from:
                self._kill(chance, now - begun)
                next_kill = monotonic() + chance.uniform(*_KILLS_S)
            if now >= next_sample:
                self._sample(now - begun)
                next_sample += _SAMPLE_S
            self.programs.start()
            sleep(0.5)

    def _kill(self, chance: random.Random, t: float) -> None:
        role = ROLES[len(self.kills) % len(ROLES)]
        pid = self.programs.kill(role, chance.randrange(8))
        if pid is not None:
            self.kills.append({"t": round(t, 1), "role": role})

    def _sample(self, t: float) -> None:
        folders = {
            "event log": self.folder / "data" / "events",
            "state of the pipeline": self.folder / "data" / "pipeline",
        }
        taken = sample(self.programs.pids(), folders)
        database = [self.folder / f"tamis.db{end}" for end in ("", "-wal")]
        held = sum(path.stat().st_size for path in database if path.exists())
        taken["disk_mb"]["database"] = round(held / 1e6, 2)
        self.samples.append({"t": round(t, 1), **taken, "told": len(self.told.by)})
        self.listen(
            min(1.0, t / self.seconds),
            f"{len(self.ledger.events):,} events, {len(self.told.by):,} matches told, "
            f"{len(self.kills)} kills",
        )

    def _drain(self, expected: set[Pair]) -> float:
        """Wait until all was told; how long that took."""
        begun = monotonic()
        while not expected <= self.told.by.keys() and monotonic() < begun + _DRAIN_S:
            self.programs.start()
            sleep(0.5)
        return monotonic() - begun

    def _found(
        self, expected: set[Pair], visits: set[Pair], drained_s: float, n_again: int
    ) -> dict[str, Any]:
        told = self.told.by.keys()
        n_visits = sum(who in self.ledger.visitors for _, who in told)
        calm = [one for one in self.samples if one["t"] >= self.seconds * (1 - CALM_SHARE)]
        return {
            "seconds": self.seconds,
            "n_events": len(self.ledger.events),
            "n_subscriptions": N_STAYING,
            "n_visitors": len(self.ledger.visitors),
            "n_expected": len(expected),
            "n_told": len(told) - n_visits,
            "lost": len(expected - told),
            "n_expected_of_visitors": len(visits),
            "n_told_to_visitors": n_visits,
            "lost_by_visitors": len(visits - told),
            "wrong": self._n_wrong(),
            "twice": len(self.told.twice),
            "n_requests": self.told.n_requests,
            "n_repeated": self.told.n_repeated,
            "n_asked_again": n_again,
            "drained_s": round(drained_s, 1),
            "latency_s": self._latency(),
            "kills": self.kills,
            "growth": _growths(calm),
            "samples": self.samples,
            "logs": {name: _faults(self.folder / f"{name}.log") for name in ("service", "sender")},
        }

    def _n_wrong(self) -> int:
        """How many were told what they did not ask for, by the meaning of their filters."""
        held = [*self.ledger.staying, *self.ledger.visitors.values()]
        filters = {one.id: parse_filter(one.filter) for one in held}
        events = self.ledger.events
        return sum(not evaluate(filters[who], events[id]) for id, who in self.told.by)

    def _latency(self) -> dict[str, float]:
        """From the request that publishes to the one that tells, of those told at once, calm."""
        calm_from = min(self.ledger.sent_at.values()) + self.seconds * (1 - CALM_SHARE)
        at_once = {one.id for one in self.ledger.staying[::2]}
        taken = [
            at - self.ledger.sent_at[id] for (id, who), at in self.told.at.items()
            if who in at_once and self.ledger.sent_at[id] >= calm_from
        ]  # fmt: skip
        cuts = quantiles(taken, n=100)
        return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2), "most": round(max(taken), 2)}


def _growths(samples: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By kind and name, what became of a figure while nothing was killed."""
    return {
        kind: {
            name: growth(samples, kind, name) for one in samples[:1] for name in one[kind]
        } for kind in ("memory_mb", "open_files", "disk_mb", "files")
    }  # fmt: skip


def _faults(log: Path) -> int:
    """How many tracebacks a log has."""
    return log.read_text(errors="replace").count("Traceback (most recent call last)")


def soak(
    minutes: float, events_per_s: float, listen: Listener, keep: Path | None
) -> dict[str, Any]:
    """Soak in a folder of its own, or in one that stays."""
    if keep is not None:
        keep.mkdir(parents=True)
        return Trial(keep.absolute(), 60 * minutes, events_per_s, listen).run()
    with tempfile.TemporaryDirectory(prefix="tamis-soak-", ignore_cleanup_errors=True) as folder:
        return Trial(Path(folder), 60 * minutes, events_per_s, listen).run()
