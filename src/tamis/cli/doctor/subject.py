"""What is examined, and what is found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What somebody wants to run: where, with which database and which pipeline, if any."""

    data: Path
    host: str
    port: int
    database: str | None = None
    pipeline: Path | None = None
    starts_spark: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    It is *ok*; a *note* where only something optional needs it, or where time will mend it; or
    *wrong*, which is what makes the doctor end with 1. ``to_do`` is empty where nothing is to be
    done, or where what was found says it.
    """

    name: str
    state: State
    found: str
    to_do: str = ""
