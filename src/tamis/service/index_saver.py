"""The process that saves an index, told on its stdin what to do, and over when that closes."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from tamis.errors import TamisError
from tamis.service.indexing import caught_up, index_all
from tamis.service.logs import log, set_up_logs
from tamis.service.saved_index import SavedIndex
from tamis.storage import ChangeLog, Database, SubscriptionStore

_NICENESS = 10


def _save(url: str, folder: Path) -> None:
    database = Database(url)
    changes = ChangeLog(database)
    saved = SavedIndex(folder, changes)
    with saved.lock():
        built = saved.open() or index_all(SubscriptionStore(database))
        assert built is not None
        saved.save(caught_up(built, changes))


def _end_with(stdin: int) -> None:
    """End when nobody is there any more who wants to know."""
    while os.read(stdin, 1):
        pass
    os._exit(1)


def main() -> None:
    """Do as stdin says."""
    os.nice(_NICENESS)
    set_up_logs()
    told = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    try:
        _save(told["database"], Path(told["folder"]))
    except (OSError, TamisError) as error:
        log.warning("the index was not saved", problem=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
