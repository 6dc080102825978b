"""Start Spark with the settings Tamis wants."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import MissingExtra
from tamis.spark.class_archive import archive_options
from tamis.spark.java import java_home, own_folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# Workers are forked from a process that has what they need: see tamis.spark.daemon.
_DAEMON = {"spark.python.daemon.module": "tamis.spark.daemon"}
# What Spark remembers of the past, a thousand jobs and more, although nobody can look at it.
_NO_PAST = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "50",
}
# For the heap of a gigabyte that Spark takes unless it is told otherwise: Java's usual collector
# fills all of it before it cleans up, this one keeps it near what is in use.
_SMALL_HEAP = ("-XX:+UseSerialGC", "-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40")
# It gives memory back when it cleans all of the heap. Of itself it would once the heap is full,
# Spark asks for it every half hour; a stream leaves 15 MB a minute behind that is old by then.
_CLEANED = {"spark.cleaner.periodicGC.interval": "2min"}


def session(app_name: str = "tamis", **conf: object) -> SparkSession:
    """Start a Spark session, or return the running one with ``conf`` applied to it.

    Without further settings it runs on all cores of this machine, with as many shuffle partitions
    as cores, reachable from this machine only, in UTC, without the web interface, and prints
    errors only. Every setting of Spark can be given and wins over these::

        session("nightly", **{"spark.driver.memory": "4g", "spark.ui.enabled": True})

    Python workers start from `tamis.spark.daemon`, which spares them memory and time.

    Sets ``JAVA_HOME``, ``PYSPARK_PYTHON`` and ``PYSPARK_DRIVER_PYTHON`` in this process, which is
    where Spark looks for them. Started by ``spark-submit``, the cluster decides on all of these:
    what ``spark-submit`` was given wins over ``conf``, and only the time zone and, unless Tamis
    may have come with ``--py-files``, where workers start from are added to it.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtra(
            f"Spark is not installed ({error}). Install it: pip install 'tamis[spark]'"
        ) from error
    settings = {key: _as_text(value) for key, value in conf.items()}
    if is_submitted():
        settings = _added_settings(settings, _submitted_settings())
    else:
        home = java_home()
        settings = _own_settings(settings, home)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["JAVA_HOME"] = str(home)
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def is_submitted() -> bool:
    """Whether this process was started by ``spark-submit``."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted_settings() -> dict[str, str]:
    """What ``spark-submit`` was told; Spark itself would let the program's settings win."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # connects to the Java that spark-submit runs in
    return dict(SparkConf().getAll())


def _added_settings(conf: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """Of the caller's settings and Tamis's, those that ``spark-submit`` was not given."""
    settings = {"spark.sql.session.timeZone": "UTC", **conf}
    if not given.get("spark.submit.pyFiles"):
        # Modules that come that way are there when a task starts, not when its process does.
        settings = {**_DAEMON, **settings}
    return {key: value for key, value in settings.items() if key not in given}


def _own_settings(conf: dict[str, str], home: Path) -> dict[str, str]:
    """Put Tamis's settings under the caller's."""
    master = conf.get("spark.master", "local[*]")
    given = conf.get("spark.driver.extraJavaOptions", "")
    java_options = [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"]
    if "Archive" not in given and "-Xshare" not in given:
        java_options += archive_options(home, _jars(), next(own_folders()))
    has_small_heap = "spark.driver.memory" not in conf and not re.search(r"-XX:\+Use\w+GC", given)
    if has_small_heap:
        java_options += _SMALL_HEAP
    settings = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **_DAEMON,
        **(_CLEANED if has_small_heap else {}),
    }
    if cores := _local_cores(master):
        # Also lets Spark start on a machine whose own name does not resolve.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings["spark.sql.shuffle.partitions"] = str(cores)
    if conf.get("spark.ui.enabled", "false") == "false":
        settings |= _NO_PAST
    java_options += [given] if given else []
    return {**settings, **conf, "spark.driver.extraJavaOptions": " ".join(java_options)}


def _jars() -> Path:
    """Where Spark's classes are."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")


def _local_cores(master: str) -> int | None:
    """Return how many cores a local master uses; ``None`` for a cluster.

    >>> _local_cores("local[3]"), _local_cores("local"), _local_cores("yarn")
    (3, 1, None)
    """
    if master == "local":
        return 1
    found = re.match(r"local\[(\*|\d+)", master)
    if found is None:
        return None
    return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1])


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
