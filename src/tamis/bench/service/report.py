"""The measured part of ``docs/service.md``, written from the result files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.bench.aims import number
from tamis.bench.measured_part import write_measured_part
from tamis.bench.report import NothingMeasured, describe_machine
from tamis.bench.results import Key, Results
from tamis.bench.service.suite import DATABASES, aims_of
from tamis.bench.tables import Sheet, aim_sheet


def write_report(results: Results, scale: float, path: Path) -> Path:
    """Write the part of the page between the marks, at its end if it has none."""
    measured = [whole for key, whole in results.all() if key.scale == scale]
    if not measured:
        raise NothingMeasured(
            f"no results at scale {scale:g} in {results.directory}; run `tamis bench service "
            f"--scale {scale:g}` first"
        )
    aims = [aim for database in DATABASES for aim in aims_of(database)]
    parts = [
        f"Written by `tamis bench service --scale {scale:g} --report` from the result files.\n",
        aim_sheet(results, scale, aims).to_markdown(),
    ]
    for sheet, note in (
        (_request_sheet(results, scale), _REQUESTS),
        (_kind_sheet(results, scale), _KINDS),
        (_import_sheet(results, scale), _IMPORT),
        (_delivery_sheet(results, scale), _DELIVERIES),
    ):
        if sheet.rows:
            parts += [f"**{sheet.title}**\n", sheet.to_markdown(), note]
    parts.append(_METHOD + _software(measured) + describe_machine(measured))
    return write_measured_part(path, "tamis bench service", "\n".join(parts))


def _found(results: Results, cell: str, scale: float) -> Iterator[tuple[str, dict[str, Any]]]:
    for database in DATABASES:
        key = Key(cell, database, scale)
        if key in results:
            yield database, results.read(key)


def _request_sheet(results: Results, scale: float) -> Sheet:
    columns = ("database", "a second", "p50, ms", "p99, ms", "slowest, ms", "CPU, ms", "flat out")
    sheet = Sheet("Requests, 300 due a second", columns)
    paths = ("rate", "p50_ms", "p99_ms", "max_ms", "server_cpu_ms", "flat_out_per_s")
    for database, found in _found(results, "requests", scale):
        sheet.rows.append((database, *(number(found[path]) for path in paths)))
    return sheet


def _kind_sheet(results: Results, scale: float) -> Sheet:
    held = dict(_found(results, "requests", scale))
    kinds = list(next(iter(held.values()))["p99_by_kind_ms"]) if held else []
    sheet = Sheet("p99 of each kind of request, ms", ("database", *kinds))
    for database, found in held.items():
        sheet.rows.append((database, *(number(found["p99_by_kind_ms"].get(k)) for k in kinds)))
    return sheet


def _import_sheet(results: Results, scale: float) -> Sheet:
    columns = ("database", "subscriptions", "by", "file, MB", "seconds", "µs each", "can match, s")
    sheet = Sheet("Import", columns)
    for cell, way in (("import", "`tamis import`"), ("upload", "HTTP")):
        for database, found in _found(results, cell, scale):
            paths = ("file_mb", "seconds", "us_each", "indexed_s")
            shown = (number(found.get(path)) for path in paths)
            sheet.rows.append((database, f"{found['n_subscriptions']:,}", way, *shown))
    return sheet


def _delivery_sheet(results: Results, scale: float) -> Sheet:
    sheet = Sheet("Webhooks of one sender", ("database", "notifications", "a second", "sent twice"))
    for database, found in _found(results, "deliveries", scale):
        shown = (number(found[path]) for path in ("per_s", "twice"))
        sheet.rows.append((database, f"{found['n_notifications']:,}", *shown))
    return sheet


def _software(measured: list[dict[str, Any]]) -> str:
    told = [whole["found"].get("software") for whole in measured]
    databases = sorted({one["database"] for one in told if one})
    packages = sorted({one["packages"] for one in told if one})
    return "".join(f"\n- {one}." for one in (*databases, *packages))


_REQUESTS = """\
A quarter of the requests create a subscription, 30 % read one, 20 % change one, 20 % delete one,
5 % list 20. *CPU* is what the service itself uses for one; *flat out* is how many are answered a
second if 16 users ask again at once.
"""
_KINDS = """\
From the moment a request was due until its answer was read.
"""
_IMPORT = """\
Into an empty database: `tamis import` from its start to its end, over HTTP from the first byte
sent until the result of the last line was read. *Can match* is when the last one is in the index of
the service.
"""
_DELIVERIES = """\
`tamis send` to one receiver on the same machine.
"""
_METHOD = """\
- The service, its database and the client share the machine. The client is the standard library's,
  16 threads with a connection each.
- What is there at the end is compared with what was asked for before anything counts."""
