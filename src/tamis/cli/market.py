"""A market for the demo: saved searches, a stream of ads, and what became of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tamis.bench.ads import generate_ads, generate_searches
from tamis.cli.terminal import BadInput
from tamis.delivery import NOTIFICATION_SCHEMA
from tamis.language import evaluate, to_json
from tamis.model import Event, Subscription
from tamis.spark.outbox import read_folder
from tamis.values import value_to_json

NEWCOMER = "newcomer"  # saved, changed and deleted while the ads stream
DELIVERIES: tuple[tuple[int, dict[str, Any]], ...] = (
    (70, {}),
    (80, {"rate_cap": "2 per minute"}),
    (95, {"schedule": "every minute"}),
    (100, {"schedule": "daily at 09:00 Europe/Moscow"}),
)
N_COPIES = 4  # people who saved the same search
N_CHECKED = 3
_ADS_A_FILE = 10


@dataclass(slots=True)
class Market:
    """The folders of the demo, and the searches and ads that were written to them."""

    folder: Path
    n_searches: int
    seed: int
    searches: list[Subscription] = field(default_factory=list)
    ads: list[Event] = field(default_factory=list)
    changed_at: dict[str, datetime] = field(default_factory=dict)
    _coming: list[Event] = field(default_factory=list)
    _sequence: int = 0

    def settings(self) -> str:
        """The pipeline file, as TOML."""
        return f"""name = "demo"
state = "state"

[events]                       # a folder that new files of ads are put into
path = "ads"
files_per_batch = 20
[events.columns]
time = "posted"

[subscriptions]                # those to begin with, and a folder for what changes
initial = "searches.parquet"
path = "searches"

[matching]
tokens = 4

[notifications]
outbox = "outbox"

[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "2g"
"spark.app.name" = "tamis demo, {self.n_searches} searches"
"""

    def open(self) -> None:
        """Make the folders and the pipeline file."""
        for name in ("ads", "searches"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "pipeline.toml").write_text(self.settings())

    def generate(self) -> None:
        """Write the searches; each is saved by a few people, as in life."""
        n_different = -(-self.n_searches // N_COPIES)
        self.searches = generate_searches(n_different, self.seed)
        deliveries = [
            json.dumps(
                next(held for share, held in DELIVERIES if number * 100 < share * n_different)
            )
            for number in range(n_different)
        ]
        filters = [json.dumps(to_json(one.condition)) for one in self.searches]
        copies = range(N_COPIES)
        columns: dict[str, list[Any]] = {
            "id": [f"{one.id}-{copy}" for copy in copies for one in self.searches],
            "filter": filters * N_COPIES,
            "priority": [one.priority for one in self.searches] * N_COPIES,
            "owner": [f"{one.owner}-{copy}" for copy in copies for one in self.searches],
            "delivery": deliveries * N_COPIES,
        }
        table = pa.table({name: held[: self.n_searches] for name, held in columns.items()})
        pq.write_table(table, self.folder / "searches.parquet")

    def ids_of(self, number: int) -> list[str]:
        """The ids of those who saved a search."""
        n_different, id = len(self.searches), self.searches[number].id
        return [
            f"{id}-{copy}"
            for copy in range(N_COPIES)
            if copy * n_different + number < self.n_searches
        ]

    def save(self, when: str, filter: str) -> None:
        """Save the newcomer, or another filter of his."""
        search = Subscription(NEWCOMER, filter, priority=0, owner="you")
        self._write_changes("upsert", [search.to_json()])
        self.changed_at[when] = datetime.now(UTC)

    def forget(self, when: str) -> None:
        """Delete the newcomer."""
        self._write_changes("delete", [{"id": NEWCOMER}])
        self.changed_at[when] = datetime.now(UTC)

    def post(self, n_ads: int = _ADS_A_FILE) -> None:
        """Put a file of ads into their folder; each was posted now."""
        while len(self._coming) < n_ads:
            seed = self.seed + len(self.ads) + len(self._coming)
            self._coming += generate_ads(1_000, seed)
        lines = []
        for ad in self._coming[:n_ads]:
            number = len(self.ads) + 1
            event = Event(
                f"ad-{number:06}", ad.attributes, time=datetime.now(UTC), location=ad.location
            )
            self.ads.append(event)
            held = event.to_json()
            place = {"location": value_to_json(ad.location)} if ad.location else {}
            lines.append(
                json.dumps({"id": event.id, "posted": held["time"], **held["attributes"], **place})
            )
        del self._coming[:n_ads]
        # A name that begins with a dot is passed over until the file is whole.
        aside = self.folder / "ads" / f".{len(self.ads)}"
        aside.write_text("\n".join(lines) + "\n")
        aside.rename(self.folder / "ads" / f"{len(self.ads):08}.jsonl")

    def _write_changes(self, op: str, held: Sequence[dict[str, Any]]) -> None:
        lines = []
        for one in held:
            self._sequence += 1
            lines.append(json.dumps({"sequence": self._sequence, "op": op, **one}))
        file = self.folder / "searches" / f"{self._sequence:08}.jsonl"
        aside = file.with_name(f".{file.name}")
        aside.write_text("\n".join(lines) + "\n")
        aside.rename(file)


@dataclass(frozen=True, slots=True)
class Counts:
    """Where the matches are."""

    n_matches: int
    n_told: int
    n_waiting: int
    n_held_back: int  # by rate caps, or not told yet because of them

    @property
    def is_complete(self) -> bool:
        """Whether every match was told, waits for its time, or was held back."""
        return self.n_matches == self.n_told + self.n_waiting + self.n_held_back


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the ads, from the match log and the outbox."""

    counts: Counts
    n_notifications: int
    n_digests: int
    n_subscribers: int
    match_seconds: tuple[float, float]  # from posting to the match: median, 99th percentile
    outbox_seconds: tuple[float, float]  # from posting to the outbox, where it is due at once
    change_seconds: dict[str, float]
    n_checked: int

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        median, p99 = self.match_seconds
        outbox_median, outbox_p99 = self.outbox_seconds
        return {
            "matches": self.counts.n_matches,
            "matches_told": self.counts.n_told,
            "matches_waiting": self.counts.n_waiting,
            "matches_held_back": self.counts.n_held_back,
            "notifications": self.n_notifications,
            "digests": self.n_digests,
            "subscribers_told": self.n_subscribers,
            "event_to_match_seconds": {"median": round(median, 3), "p99": round(p99, 3)},
            "event_to_outbox_seconds": {
                "median": round(outbox_median, 3), "p99": round(outbox_p99, 3)
            },
            "change_seconds": {name: round(s, 3) for name, s in self.change_seconds.items()},
            "checked_events": self.n_checked,
        }  # fmt: skip


def counts_of(market: Market) -> Counts:
    """Count the matches in the log and in the outbox."""
    log, (outbox, _) = _read_log(market), _read_outbox(market.folder / "outbox")
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
    is_capped, was_capped = (
        pc.match_substring(table[name], "rate_cap")
        for table, name in ((log, "schedule"), (outbox, "delivery"))
    )
    return Counts(
        log.num_rows,
        _sum(outbox["n_matches"]),
        _sum(pc.and_(pc.greater(log["due"], now), pc.invert(is_capped))),
        _sum(is_capped) - _sum(outbox["n_matches"].filter(was_capped)),
    )


def outcome_of(market: Market) -> Outcome:
    """Read the match log and the outbox, and check some ads against the reference."""
    log, (outbox, published) = _read_log(market), _read_outbox(market.folder / "outbox")
    return Outcome(
        counts_of(market),
        outbox.num_rows,
        int((outbox["n_matches"].to_numpy() > 1).sum()),
        len(outbox["owner"].unique()),
        _seconds(log["event_time"], log["matched_at"]),
        _outbox_seconds(outbox, published, pc.equal(outbox["delivery"], "").to_numpy()),
        _change_seconds(market, log),
        _check(market, log),
    )


def _sum(column: Any) -> int:
    return pc.sum(column).as_py() or 0


def _read_log(market: Market) -> pa.Table:
    folder = market.folder / "state" / "matcher" / "matches"
    files = [str(file) for file in sorted(folder.glob("batch=*/matches-*.parquet"))]
    return ds.dataset(files, format="parquet").to_table()


def _read_outbox(folder: Path) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """The notifications, and when the micro-batch of each was published."""
    tables, published = [NOTIFICATION_SCHEMA.empty_table()], list[int]()
    for batch in sorted(folder.glob("batch=*")):
        tables.append(read_folder(batch, NOTIFICATION_SCHEMA))
        published += [batch.stat().st_ctime_ns // 1_000] * tables[-1].num_rows
    return pa.concat_tables(tables), np.array(published, "M8[us]")


def _seconds(since: Any, until: Any) -> tuple[float, float]:
    spans = (until.to_numpy() - since.to_numpy()).astype("m8[us]").astype(float) / 1e6
    return _middle_and_tail(spans)


def _outbox_seconds(
    outbox: pa.Table, published: np.ndarray[Any, Any], at_once: np.ndarray[Any, Any]
) -> tuple[float, float]:
    spans = []
    matches = outbox["matches"].to_pylist()
    for number in np.flatnonzero(at_once):
        moment = published[number].astype(datetime).replace(tzinfo=UTC)
        spans += [(moment - held["event_time"]).total_seconds() for held in matches[number]]
    return _middle_and_tail(np.array(spans))


def _middle_and_tail(spans: np.ndarray[Any, Any]) -> tuple[float, float]:
    if not len(spans):
        return math.nan, math.nan
    return float(np.median(spans)), float(np.percentile(spans, 99))


def _change_seconds(market: Market, log: pa.Table) -> dict[str, float]:
    """How long after it was saved the newcomer had the first match."""
    mine = log.filter(pc.equal(log["subscription_id"], NEWCOMER))
    saved = market.changed_at.get("saved")
    if saved is None or not mine.num_rows:
        return {}
    first = pc.min(mine["matched_at"]).as_py()
    return {"saved": (first - saved).total_seconds()}


def _check(market: Market, log: pa.Table) -> int:
    """Compare some ads with what the reference says of every search."""
    chosen = market.ads[:: max(1, len(market.ads) // N_CHECKED)][:N_CHECKED]
    for ad in chosen:
        rows = log.filter(pc.equal(log["event_id"], ad.id))["subscription_id"].to_pylist()
        found = sorted(id for id in rows if id != NEWCOMER)
        accepted = (n for n, one in enumerate(market.searches) if evaluate(one.condition, ad))
        if found != sorted(id for number in accepted for id in market.ids_of(number)):
            raise BadInput(f"{ad.id}: the pipeline and the reference disagree; please report this")
    return len(chosen)
