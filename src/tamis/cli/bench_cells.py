"""What the benchmarks of single cells print: each cell, then the aims; or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from tamis.bench.aims import Aim, reached
from tamis.bench.machine import commit, machine, versions
from tamis.bench.results import Key, Results
from tamis.bench.tables import aim_sheet
from tamis.cli.bench import table_of


def print_cells(
    results: Results, keys: Sequence[Key], scale: float, aims: Sequence[Aim], *, as_json: bool
) -> None:
    """Print all that was found in some cells."""
    if as_json:
        print(json.dumps(_summary(results, keys, scale, aims), ensure_ascii=False))
        return
    console = Console(highlight=False)
    for key in keys:
        console.print(f"[bold]{key.title}[/bold]")
        for name, value in results.read(key).items():
            console.print(f"  {name.replace('_', ' ')}: {_shown(value)}", soft_wrap=True)
        console.print()
    sheet = aim_sheet(results, scale, aims)
    console.print(table_of(sheet))
    for note in sheet.notes:
        console.print(note, style="dim")


def _summary(
    results: Results, keys: Sequence[Key], scale: float, aims: Sequence[Aim]
) -> dict[str, Any]:
    return {
        "machine": machine(),
        "versions": versions(),
        "commit": commit(),
        "scale": scale,
        "cells": {key.cell: results.read(key) for key in keys},
        "aims": [one.to_json() for one in reached(results, scale, aims)],
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(held)}" for name, held in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return value if isinstance(value, str) else f"{value:,}"
