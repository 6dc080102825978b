"""What can be seen to be wrong with a pipeline before Spark is started, each in one sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.spark.settings import EventSettings, PipelineSettings

__all__ = ["initial_mistakes", "place_mistakes", "source_mistakes"]


def source_mistakes(settings: PipelineSettings, knows_columns: bool) -> Iterator[str]:
    """Folders to read that are not there, hold other things, or no file to learn columns from."""
    events, subscriptions = settings.events, settings.subscriptions
    for name, path in (("events.path", events.path), ("subscriptions.path", subscriptions.path)):
        if path is not None and not path.is_dir():
            yield f"{name}: there is no folder {path}; make it first"
        elif path is not None and not os.access(path, os.R_OK | os.X_OK):
            yield f"{name}: {path} cannot be read; let your user read it"
    yield from _inside_mistakes(settings)
    if not knows_columns and _has_no_file(events):
        yield (
            f"events.schema: there is no {events.format} file in {events.path} to learn the "
            "columns from; give it, as in schema = 'id string, price double'"
        )
    if subscriptions.source == "store" and subscriptions.url is not None:
        yield from _sqlite_mistakes("subscriptions.url", subscriptions.url)


def place_mistakes(settings: PipelineSettings) -> Iterator[str]:
    """Folders to write to that cannot be used; makes those that are not there."""
    yield from _folder_mistakes("state", settings.state)
    outbox = settings.notifications.outbox
    if "://" in outbox:
        yield from _sqlite_mistakes("notifications.outbox", outbox)
    else:
        yield from _folder_mistakes("notifications.outbox", Path(outbox))


def initial_mistakes(path: Path) -> Iterator[str]:
    """That there is no Parquet file, or folder of them, that can be read."""
    if not path.exists():
        yield f"subscriptions.initial: there is no {path}"
    elif path.is_dir() and not any(path.rglob("*.parquet")):
        yield f"subscriptions.initial: there is no Parquet file (*.parquet) in {path}"
    for file in [path] if path.is_file() else path.glob("*.parquet"):
        try:
            pq.read_metadata(file)
        except (OSError, pa.ArrowException) as error:
            yield f"subscriptions.initial: {file} cannot be read: {error}"


def _inside_mistakes(settings: PipelineSettings) -> Iterator[str]:
    """What stands in the folder of events, where all files are taken for events."""
    folder, subscriptions = settings.events.path, settings.subscriptions
    outbox, url = settings.notifications.outbox, subscriptions.url or ""
    if folder is None or not folder.is_dir():
        return
    places = {
        "state": settings.state,
        "subscriptions.path": subscriptions.path,
        "subscriptions.initial": subscriptions.initial,
        "subscriptions.url": _sqlite_file(url),
        "notifications.outbox": _sqlite_file(outbox) if "://" in outbox else Path(outbox),
    }
    for name, path in places.items():
        if path is not None and _is_inside(path, folder):
            yield (
                f"{name}: {path} is in the folder of events, {folder}, where all files are read "
                "as events; name another place"
            )


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _has_no_file(events: EventSettings) -> bool:
    """Whether the folder of events, where there is one, has no file of their format."""
    path = events.path
    return path is not None and path.is_dir() and not any(path.glob(f"*.{events.format}"))


def _folder_mistakes(name: str, path: Path) -> Iterator[str]:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        yield f"{name}: {path} is a file; expected a folder, name another place"
    except OSError as error:
        yield f"{name}: {path} cannot be made: {error}"
    else:
        if not os.access(path, os.W_OK | os.X_OK):
            yield f"{name}: {path} cannot be written to; let your user write to it"


def _sqlite_mistakes(name: str, url: str) -> Iterator[str]:
    """Nothing for a database on a server: whether it answers is seen when it is used."""
    file = _sqlite_file(url)
    if file is None:
        return
    if file.is_dir():
        yield f"{name}: {file} is a folder; expected a file for the database"
    elif not file.parent.is_dir():
        yield f"{name}: there is no folder {file.parent} for the database; make it first"
    elif not os.access(file if file.exists() else file.parent, os.W_OK):
        yield f"{name}: {file} cannot be written to; let your user write to it"


def _sqlite_file(url: str) -> Path | None:
    """The file of a database of SQLite."""
    scheme, _, rest = url.partition(":///")
    return Path(rest.partition("?")[0]) if scheme == "sqlite" else None
