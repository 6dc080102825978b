"""The state folder of a pipeline: one pipeline at a time, and small files of what it is to know."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from tamis.errors import PipelineError

STATUS_FILE = "status.json"
_LOCK_FILE = "lock"


class StateFolder:
    """The folder in which a pipeline keeps what it must remember."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: BinaryIO | None = None

    def claim(self) -> bool:
        """Have it alone; False if another pipeline has it. A process that ends lets go of it."""
        if self._lock is not None:
            return True
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / _LOCK_FILE).open("ab")
        except OSError as error:
            raise PipelineError(f"state: {self.path} cannot be used: {error}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock = file
        return True

    def release(self) -> None:
        """Let another pipeline have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write_status(self, status: dict[str, Any]) -> None:
        """Say how the pipeline stands, for whoever can read the folder; old after a crash."""
        told = {"time": datetime.now(UTC).isoformat(), **status}
        aside = self.path / f".{STATUS_FILE}"
        aside.write_text(json.dumps(told))
        aside.replace(self.path / STATUS_FILE)

    def read(self, name: str) -> dict[str, Any] | None:
        """What a small file of the folder holds; None if there is none."""
        file = self.path / name
        try:
            held = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _damaged(file, str(error)) from None
        if not isinstance(held, dict):
            raise _damaged(file, "it holds no object")
        return held

    def keep(self, name: str, held: dict[str, Any]) -> None:
        """Write a small file, which is there whole or not at all, also if the power fails."""
        aside = self.path / f".{name}"
        try:
            with aside.open("w", encoding="utf-8") as file:
                json.dump(held, file, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.path / name)
        except OSError as error:
            raise PipelineError(f"state: cannot write {self.path / name}: {error}") from None


def _damaged(file: Path, reason: str) -> PipelineError:
    return PipelineError(
        f"state: {file} cannot be read: {reason}; restore it from a back-up, or remove it, and the "
        "next start writes it again"
    )
