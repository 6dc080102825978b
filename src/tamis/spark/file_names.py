r"""Names of files that Spark cannot read as it should: their micro-batch is refused.

A name with one of ``* ? [ ] { } \`` makes Spark read the other files of the micro-batch once more,
a name with ``:`` it cannot open on a local disk. By then Spark has written the names down for the
micro-batch, which it repeats until it is done; so at the next start they are taken out of its
logs. What has been given another name is found like any new file.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from urllib.parse import unquote

from tamis.errors import PipelineError
from tamis.spark.passed import files_of_batch, logs_after_commit
from tamis.spark.paths import has_pattern
from tamis.spark.source_logs import rewrite_log

__all__ = ["check_names", "forget_refused"]

_logger = logging.getLogger(__name__)

_N_SHOWN = 5


def check_names(checkpoint: Path, batch: int) -> None:
    """Raise PipelineError if a micro-batch of a query has files whose names cannot be read."""
    try:
        refused = [path for path in files_of_batch(checkpoint, batch) if _is_refused(path)]
    except (OSError, ValueError, PipelineError) as error:
        _logger.warning("the names of the files of batch %s are not checked: %s", batch, error)
        return
    if not refused:
        return
    # On one line: of an error in a query only that is shown.
    shown = ", ".join(unquote(path).removeprefix("file://") for path in refused[:_N_SHOWN])
    more = f" and {len(refused) - _N_SHOWN} more" if len(refused) > _N_SHOWN else ""
    raise PipelineError(
        f"files of events with one of * ? [ ] {{ }} \\ : in their names cannot be read: {shown}"
        f"{more}; give them other names, or take them out of the folder, and start again: "
        "nothing of the micro-batch was matched, and nothing is lost"
    )


def forget_refused(checkpoint: Path) -> None:
    """Take such names out of what a query is to read next; it must not run meanwhile."""
    for log, offset in logs_after_commit(checkpoint):
        version, *lines = log.read_text(errors="surrogateescape").split("\n")
        kept = [line for line in lines if not _is_pending(line, offset)]
        if version == "v1" and len(kept) < len(lines):
            rewrite_log(log, [version, *kept])


def _is_pending(line: str, offset: int) -> bool:
    """Whether a line of a log tells of such a file after an offset.

    Sources of other kinds have logs beside it, with an offset of Kafka, or a time.
    """
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    number = entry.get("batchId") if isinstance(entry, dict) else None
    return isinstance(number, int) and number > offset and _is_refused(str(entry.get("path")))


def _is_refused(path: str) -> bool:
    """Whether the name at the end of a path, as in a URL, cannot be read."""
    name = unquote(path.rpartition("/")[2])
    return ":" in name or has_pattern(name)
