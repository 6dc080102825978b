"""The report: all checks in turn, as a table or as a JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli.doctor import installation, surroundings
from tamis.cli.doctor.subject import Finding, Subject
from tamis.cli.terminal import message_of, visible
from tamis.errors import TamisError

_MARKS = {"ok": ("✓", "green"), "note": ("–", "yellow"), "wrong": ("✗", "bold red")}


def run_doctor(subject: Subject, as_json: bool) -> bool:
    """Examine, tell what was found, and return whether all that is needed is there."""
    findings = list(examine(subject))
    is_well = all(one.state != "wrong" for one in findings)
    if as_json:
        print(json.dumps({"ok": is_well, "checks": [asdict(one) for one in findings]}))
    else:
        _print(findings)
    return is_well


def examine(subject: Subject) -> Iterator[Finding]:
    """Everything there is to find."""
    needed = {"spark"} if subject.pipeline or subject.starts_spark else set()
    yield from _outlive("Python", installation.check_python)
    yield from _outlive("packages", partial(installation.check_packages, needed))
    yield from _outlive("Java", installation.check_java)
    if subject.starts_spark:
        yield from _outlive("Spark", installation.check_spark)
    yield from _outlive("kernels", installation.check_kernels)
    yield from _outlive("folders", surroundings.check_folders)
    service = partial(surroundings.check_service, subject.data, subject.host, subject.port)
    yield from _outlive("service", service)
    if subject.database is not None:
        yield from _outlive("database", partial(surroundings.check_database, subject.database))
    if subject.pipeline is not None:
        yield from _outlive("pipeline", partial(surroundings.check_pipeline, subject.pipeline))
    yield from _outlive("tools", installation.check_tools)


def _outlive(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a check finds; where it fails itself, that is a finding, and the others go on."""
    try:
        yield from check()
    except TamisError as error:
        yield Finding(name, "wrong", message_of(error))
    except Exception as error:  # a broken package may raise anything when it is imported
        yield Finding(
            name, "wrong", f"this check failed: {type(error).__name__}: {error}",
            "Install Tamis anew. If that does not help, it is a fault of Tamis: please report it.",
        )  # fmt: skip


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=1)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for one in findings:
        mark, style = _MARKS[one.state]
        told = Text(_shown(one.found))
        if one.to_do:
            told.append(f"\n{_shown(one.to_do)}", style="" if one.state == "wrong" else "dim")
        table.add_row(Text(mark, style=style), Text(_shown(one.name)), told)
    console = Console()
    console.print(table)
    n_wrong = sum(one.state == "wrong" for one in findings)
    console.print(
        Text(f"{n_wrong} to be mended", "bold red") if n_wrong
        else Text("all that is needed is there", "green")
    )  # fmt: skip


def _shown(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))
