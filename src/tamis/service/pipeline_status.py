"""How the pipeline stands, as it writes it down in its state folder, where that can be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamis.settings import read_toml

__all__ = ["PipelineStatus", "read_status"]

_FRESH_S = 15.0
_STATUS_FILE = "status.json"


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """What a pipeline has done since it was started; ``read_until`` is a moment since 1970."""

    time: datetime
    events: int
    matches: int
    match_seconds: float
    notify_seconds: float
    read_until: float

    def is_fresh(self, now: datetime) -> bool:
        """Whether the pipeline runs: it writes its status every second."""
        return (now - self.time).total_seconds() < _FRESH_S


def read_status(settings: Path) -> PipelineStatus | None:
    """The status of the pipeline with a settings file; None where it cannot be read."""
    try:
        state = read_toml(settings)["state"]
        held: dict[str, Any] = json.loads(
            (settings.absolute().parent / state / _STATUS_FILE).read_text(encoding="utf-8")
        )
        return PipelineStatus(
            datetime.fromisoformat(held["time"]).astimezone(UTC),
            int(held["events"]),
            int(held["matches"]),
            float(held["match_seconds"]),
            float(held["notify_seconds"]),
            float(held["read_until"]),
        )
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or of another version
        return None
