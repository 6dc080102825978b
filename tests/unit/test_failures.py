"""What is said of a query that failed: one line that names the cause."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from tamis.spark import pipeline
from tamis.spark.failures import reason_of

HEAD = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach \
batch sink. Reason: An exception was raised by the Python Proxy. Return Message: Traceback \
(most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
TAIL = "\n SQLSTATE: 39000 SQLSTATE: XXKST"
OTHER = "UnicodeEncodeError: 'utf-8' codec can't encode character '\\udc80'"
JAVA = """py4j.protocol.Py4JJavaError: An error occurred while calling o99.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1
MemoryError: no memory

\tat org.apache.spark.Task.run(Task.scala:1)"""
CHAIN = f"""KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "x.py", line 2
{OTHER}"""


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (OTHER, OTHER),
        (CHAIN, OTHER),
        (JAVA, "MemoryError: no memory"),
        ("tamis.errors.SnapshotError: no space", "tamis.errors.SnapshotError: no space"),
        (f"{OTHER}\n[FAILED_READ_FILE.NO_HINT] x.parquet", "[FAILED_READ_FILE.NO_HINT] x.parquet"),
    ],
)
def test_the_cause_is_named(cause: str, said: str) -> None:
    assert reason_of(HEAD + cause + TAIL) == said


def test_what_has_no_cause() -> None:
    assert reason_of("") == "for no known reason"
    assert reason_of("Query stopped\n  at x") == "Query stopped"


def test_a_query_is_left_when_somebody_stops_it() -> None:
    query = Mock(isActive=True, lastProgress=None, status={"isTriggerActive": False})
    query.awaitTermination.return_value = False
    query.exception.return_value = None
    said = iter([False, False, True])
    pipeline._finish(query, lambda: next(said))
    query.stop.assert_called_once()
    assert query.awaitTermination.call_count == 3
