"""The process that Spark's Python workers are forked from, with all in memory that they need.

Spark starts ``python -m pyspark.daemon`` for the tasks of an executor, or another module that the
setting ``spark.python.daemon.module`` names: this one. What it has imported and loaded before a
fork, its workers have at once, and share until they write to it. See
docs/decisions/0015-daemon.md.
"""

from __future__ import annotations

import gc
import sys
import traceback
from contextlib import redirect_stdout
from importlib import import_module

# What Spark calls in a worker, and what of ours it calls then.
_MODULES = ("pyspark.worker", "tamis.spark.match_files", "tamis.spark.first_load")


def main() -> None:
    """Prepare, then do what Spark's own daemon does."""
    from pyspark.daemon import manager

    # Spark reads from stdout where the daemon listens, and nothing else may be there.
    with redirect_stdout(sys.stderr):
        try:
            prepare()
        except Exception:
            # A task that needs what is missing fails with the same error; others need not.
            traceback.print_exc()
    manager()


def prepare() -> None:
    """Import what tasks use, load compiled kernels, and hide all of it from the collector.

    Starts no thread, of which a fork would make a copy that does not run.
    """
    for name in _MODULES:
        import_module(name)
    from tamis.kernels.loading import load_kernels

    load_kernels()
    # The collector writes to every object that it looks at, which would end the sharing.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
