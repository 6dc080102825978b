"""Checks of what Tamis uses and does not bring: folders, a port, a database, a pipeline's file."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tamis.cli.doctor.subject import Finding, State
from tamis.cli.terminal import require_extra

_LITTLE_BYTES, _TOO_LITTLE_BYTES = 2_000_000_000, 100_000_000
_ANSWER_S = 1.0


def check_folders() -> Iterator[Finding]:
    """Whether the folders every use of Tamis writes to can be written to, and have space."""
    from tamis.kernels.compiled import cache_directory

    yield check_folder("cache", cache_directory(), "Set TAMIS_CACHE_DIR to another folder.")
    yield check_folder("temporary files", Path(tempfile.gettempdir()), "Set TMPDIR to another.")


def check_folder(name: str, path: Path, otherwise: str) -> Finding:
    """Whether a folder, or the one it would be made in, can be written to and has space."""
    there = next(one for one in (path, *path.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding(
            name, "wrong", f"{there} cannot be written to",
            f"Let your user write to it. {otherwise}",
        )  # fmt: skip
    free = shutil.disk_usage(there).free
    found = f"{free / 1e9:,.1f} GB free in {path}"
    if free >= _LITTLE_BYTES:
        return Finding(name, "ok", found)
    state: State = "wrong" if free < _TOO_LITTLE_BYTES else "note"
    return Finding(name, state, f"only {found}", f"Make space. {otherwise}")


def check_service(data: Path, host: str, port: int) -> Iterator[Finding]:
    """Whether a service has its folder and its port; nothing where it is not installed."""
    if find_spec("uvicorn") is not None:
        yield check_folder("data", data.absolute(), "Name another folder: --data DIR.")
        yield check_port(host, port)


def check_port(host: str, port: int) -> Finding:
    """Whether somebody could listen on a port, or a service does so already."""
    name = f"port {port}"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            return Finding(name, "ok", f"free on {host}")
    except OSError as error:
        if _has_service(host, port):
            return Finding(name, "ok", f"a service runs at http://{host}:{port}/")
        return Finding(
            name, "wrong", f"{host}:{port} cannot be used: {error.strerror}",
            "End what listens there, or choose another: tamis serve --port N.",
        )  # fmt: skip


def _has_service(host: str, port: int) -> bool:
    """Whether a service says that it is well."""
    try:
        with urlopen(f"http://{host}:{port}/healthz", timeout=_ANSWER_S) as answer:
            return bool(json.loads(answer.read(1_000)) == {"status": "ok"})
    except (URLError, OSError, ValueError):
        return False


def check_database(url: str) -> Iterator[Finding]:
    """Whether a database answers, and whether its tables are of this version."""
    require_extra("service", "sqlalchemy", "alembic")
    from sqlalchemy.exc import DatabaseError

    from tamis.storage import Database

    with closing(Database(url, keep=False)) as database:
        name = f"database {database.name}"
        if database.is_sqlite and not Path(str(database.url.database)).exists():
            yield Finding(name, "note", "not there", "Nothing: the first start makes it.")
            return
        try:
            state = database.state()
        except DatabaseError as error:
            yield Finding(name, "wrong", f"is no database: {error.orig}", "Name another.")
            return
    if state == "current":
        yield Finding(name, "ok", "answers, and its tables are of this version")
    elif state == "newer":
        yield Finding(
            name, "wrong", "was made by a newer version of Tamis",
            "Use that version, or another database.",
        )  # fmt: skip
    else:
        found = "has no tables yet" if state == "empty" else "has tables of an older version"
        yield Finding(
            name, "note", found,
            "Nothing: every command that opens it makes them. Back it up first if it is in use.",
        )  # fmt: skip


def check_pipeline(path: Path) -> Iterator[Finding]:
    """Whether the settings of a pipeline can be used, and what they name is there."""
    require_extra("spark", "pyspark", "pydantic")
    from tamis.spark.pipeline import Pipeline
    from tamis.spark.settings import read_settings

    settings = read_settings(path)
    pipeline = Pipeline(settings)
    pipeline.check_sources()
    pipeline.spark_settings()
    yield Finding("pipeline", "ok", f"{path} can be used")
    yield check_folder("state", settings.state, "Name another in the file: state = …")
    store = settings.subscriptions.url if settings.subscriptions.source == "store" else None
    outbox = settings.notifications.outbox
    for url in dict.fromkeys([store, outbox if "://" in outbox else None]):
        if url is not None:
            yield from check_database(url)
    if settings.metrics_port:
        yield check_port("127.0.0.1", settings.metrics_port)
