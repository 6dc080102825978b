"""Failures of Spark's queries, told in one line: what happened, without the stacks of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamis.errors import PipelineError

__all__ = ["is_loss", "reason_of", "told_in_a_line"]

# What Spark says when it gives a micro-batch up as part of the cluster was lost. The next may do.
_LOST = re.compile(r"cannot rollback the ResultStage|ExecutorLostFailure|FetchFailed")
# As in "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file …"; these two only say
# that there is another.
_SPARK_ERROR = re.compile(r"\[(?!STREAM_FAILED|FOREACH_BATCH)[A-Z_]{5,}(\.[A-Z_]+)*\] .+")
_TRACEBACK = "Traceback (most recent call last):"
_CALL_OF_JAVA = "py4j."  # only says that Java raised something, which stands elsewhere


def is_loss(failure: Any) -> bool:
    """Whether Spark gave a micro-batch up as part of the cluster was lost."""
    return _LOST.search(str(failure)) is not None


def reason_of(failure: Any) -> str:
    """What happened: our own error, a loss, Spark's innermost, or Python's innermost."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    own = [line for line in lines if "tamis.errors." in line]
    lost = [line for line in lines if _LOST.search(line)]
    spark = [found[0] for line in lines for found in [_SPARK_ERROR.search(line)] if found]
    python = [line for line in _raised(lines) if not line.startswith(_CALL_OF_JAVA)]
    found = own or lost or spark or python or lines[:1] or ["for no known reason"]
    return found[-1].strip()


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Raise what Spark refuses, when a query is made or started, as a PipelineError."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise PipelineError(reason_of(error)) from error


def _raised(lines: list[str]) -> Iterator[str]:
    """The lines that end Python's tracebacks: the first after each that is not set in."""
    is_inside = False
    for line in lines:
        if _TRACEBACK in line:
            is_inside = True
        elif is_inside and not line[0].isspace():
            is_inside = False
            yield line
