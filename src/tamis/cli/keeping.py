"""``tamis demo --keep``: a service with the demo's searches, and ads that go on coming."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console

from tamis.bench.ads import generate_ads
from tamis.cli.market import Market
from tamis.cli.serve import ServeJob
from tamis.client import Client
from tamis.errors import TamisError
from tamis.model import Event
from tamis.service.pipeline import write_pipeline
from tamis.service.settings import ServiceSettings
from tamis.storage import Database
from tamis.storage.drafts import Rules
from tamis.storage.imports import Importer, read_many
from tamis.storage.keys import KeyStore

_ADS_AT_ONCE = 10
_EVERY_S = 0.5
_SPARK = """
[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "2g"
"""


def keep_market(market: Market, port: int, console: Console) -> None:
    """Serve the searches of a market, with ads coming in, until SIGTERM or Ctrl-C."""
    with tempfile.TemporaryDirectory(prefix="tamis-demo-service-") as folder:
        settings = ServiceSettings(Path(folder))
        with write_pipeline(settings).open("a", encoding="utf-8") as file:
            file.write(_SPARK)
        key = _fill(settings, market)
        url = f"http://127.0.0.1:{port}"
        console.print("\n[bold]3. A service with these searches[/bold]; ads go on coming\n")
        console.print(f"a key for an admin: {key}\nCtrl-C ends it", soft_wrap=True)
        console.file.flush()
        with _publishing(url, key, market):
            ServeJob(settings.data, port=port).run()


def _fill(settings: ServiceSettings, market: Market) -> str:
    """Save the searches, and make a key."""
    database = Database(settings.database_url)
    try:
        database.migrate()
        importer = Importer(database)
        reader = importer.reader(Rules("demo", may_choose_owner=True))
        for batch in read_many(reader, _lines(market)):
            for result in importer.save(batch):
                if result.error is not None:
                    raise result.error
        return KeyStore(database).create("demo", ["admin"], "demo")[1]
    finally:
        database.close()


def _lines(market: Market) -> Iterator[bytes]:
    file = pq.ParquetFile(market.folder / "searches.parquet")
    for batch in file.iter_batches():
        for row in batch.to_pylist():
            held = {name: json.loads(row[name]) for name in ("filter", "delivery")}
            yield json.dumps({**row, **held}).encode() + b"\n"


@contextmanager
def _publishing(url: str, key: str, market: Market) -> Iterator[None]:
    """Publish ads for as long as it is used; what cannot be published is dropped."""
    stopped = threading.Event()
    thread = threading.Thread(target=_publish, args=(url, key, market, stopped), name="ads")
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _publish(url: str, key: str, market: Market, stopped: threading.Event) -> None:
    number = len(market.ads)
    with Client(url, key) as client:
        while not stopped.wait(_EVERY_S):
            ads = [
                Event(f"ad-{number + n:06}", ad.attributes, location=ad.location)
                for n, ad in enumerate(generate_ads(_ADS_AT_ONCE, market.seed + number), 1)
            ]
            try:
                client.publish(ads)
            except TamisError:  # it is starting, or ending
                continue
            number += len(ads)
