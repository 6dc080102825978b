"""Which pipeline a state folder is of: the one with its sources of events and subscriptions.

``pipeline.json`` in the folder says so, from the first start on. A source is its kind and its
place: a folder, a topic, a database. What may change without another meaning (the name of the
pipeline, the servers of Kafka, who asks a database) is not looked at. It also says where the
folder is: Spark knows the files of the match log by their whole paths, and in another place would
take all of them for new ones.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tamis.errors import PipelineError
from tamis.spark.settings import PipelineSettings, SubscriptionSettings
from tamis.spark.state_folder import StateFolder

__all__ = ["check_identity", "keep_identity"]

_FILE = "pipeline.json"
# Spark's checkpoint has the whole paths of files of events, and the names of topics.
_MOVED = {"events": "", "subscriptions": "; if they have only moved, remove {} and start again"}


def check_identity(state: StateFolder, settings: PipelineSettings) -> None:
    """Raise PipelineError if the state says that it is of another pipeline."""
    held = state.read(_FILE)
    if held is None:
        return
    place, was_at = _path(state.path), held.get("state")
    if isinstance(was_at, str) and was_at != place:
        raise PipelineError(
            f"state: {place} was at {was_at} when its pipeline ran last, and matches that it has "
            "told there would be told again. Move it back, or leave a link to it in the old place "
            "and name that"
        )
    for name, own in _sources(settings).items():
        before = held.get(name)
        if isinstance(before, dict) and before != own:
            raise PipelineError(
                f"state: {state.path} is of a pipeline with {name} from {_told(before)}; this one "
                f"has them from {_told(own)}. Name that source, or another folder as state"
                + _MOVED[name].format(state.path / _FILE)
            )


def keep_identity(state: StateFolder, settings: PipelineSettings) -> None:
    """Write down whose the state is."""
    own = {**_sources(settings), "state": _path(state.path)}
    if state.read(_FILE) != own:
        state.keep(_FILE, own)


def _sources(settings: PipelineSettings) -> dict[str, dict[str, Any]]:
    events = settings.events
    place = _path(events.path) if events.source == "files" else events.topic
    return {
        "events": {"source": events.source, "place": place},
        "subscriptions": _subscriptions(settings.subscriptions),
    }


def _subscriptions(subscriptions: SubscriptionSettings) -> dict[str, Any]:
    source, url = subscriptions.source, subscriptions.url or ""
    if source == "files":
        return {"source": source, "place": _path(subscriptions.path)}
    if url.startswith("sqlite:///"):
        return {"source": source, "place": _path(url.removeprefix("sqlite:///").partition("?")[0])}
    table = {"table": subscriptions.table} if source == "jdbc" else {}
    return {"source": source, "place": _address(url), **table}


def _path(path: str | Path | None) -> str:
    return os.path.abspath(path or "")  # noqa: PTH100 - Path.absolute() leaves .. as it is


def _address(url: str) -> str:
    """The server and the name of a database, without who asks and how.

    >>> _address("jdbc:postgresql://zoe:secret@db:5432/tamis?ssl=true")
    '//db:5432/tamis'
    >>> _address("jdbc:oracle:thin:zoe/secret@//db:1521/tamis")
    '//db:1521/tamis'
    >>> _address("jdbc:sqlserver://db:1433;encrypt=true;databaseName=tamis")
    '//db:1433/tamis'
    """
    server, *options = url.removeprefix("jdbc:").split(";")
    parts = urlsplit(server)
    place = f"//{parts.netloc}{parts.path}".rpartition("@")[2].removeprefix("//")
    given = (option.partition("=") for option in options)
    names = [value for name, _, value in given if name.lower() in ("database", "databasename")]
    return "/".join([f"//{place}", *names])


def _told(source: dict[str, Any]) -> str:
    table = f", table {source['table']}" if "table" in source else ""
    return f"{source.get('source')} {source.get('place')}{table}"
