"""The cells of the Spark benchmark, and what is aimed for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.bench.aims import Aim
from tamis.bench.results import Key, Listener, Results, measure_cells
from tamis.bench.spark.join import measure_join
from tamis.bench.spark.parquet import N_TASKS, measure_parquet
from tamis.bench.spark.stream import Tell, measure_stream
from tamis.bench.suite import known
from tamis.index.first_use import use_kernels
from tamis.spark import session

WORKLOAD = "W1"
CELLS = ("parquet", "join", "stream")

AIMS: tuple[Aim, ...] = (
    Aim(
        "Parquet to Parquet, share of two cores of the engine", "parquet", WORKLOAD,
        "share_of_two_cores", 0.7, at_least=True,
    ),
    Aim("as fast as a join", "join", WORKLOAD, "ratio", 100.0, "×", at_least=True),
    Aim("event to match, median", "stream", WORKLOAD, "event_to_match_p50_s", 1.0, "s"),
    Aim("event to match, p99", "stream", WORKLOAD, "event_to_match_p99_s", 3.0, "s"),
    Aim("new subscription to its first match", "stream", WORKLOAD, "newcomer_max_s", 2.0, "s"),
    Aim("private memory of a worker", "stream", WORKLOAD, "worker_private_mb_max", 200.0, "MB"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SparkRun:
    """A run over some cells; each is saved as soon as it is measured."""

    results: Results
    scale: float
    seconds: float
    resume: bool
    listen: Listener
    tell: Tell

    def measure(self, keys: Sequence[Key]) -> None:
        """Measure all; with ``resume`` what has no result file yet."""
        measure_cells(self.results, keys, self._found, self.listen, resume=self.resume)

    def _found(self, key: Key) -> dict[str, Any]:
        for _ in use_kernels():  # a worker that compiles has twice the memory from then on
            self.tell("compiling kernels, once on this machine")
        with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder:
            return self._found_in(Path(folder), key.cell)

    def _found_in(self, folder: Path, cell: str) -> dict[str, Any]:
        settings = {"spark.master": f"local[{N_TASKS}]"}
        if cell != "stream":  # which runs as ``tamis run`` does, with the heap it takes unasked
            settings["spark.driver.memory"] = "2g"
        spark = session("tamis bench", **settings)
        try:
            if cell == "parquet":
                return measure_parquet(spark, folder, self.scale)
            if cell == "join":
                return measure_join(spark, folder, self.scale)
            return measure_stream(spark, folder, self.scale, self.seconds, self.tell)
        finally:
            spark.stop()


def plan(scale: float, only: Sequence[str]) -> list[Key]:
    """The cells of a run; ``only`` names them, none means all.

    >>> [key.file_name for key in plan(0.1, ["join"])]
    ['W1-x0.1-join.json']
    """
    return [Key(cell, WORKLOAD, scale) for cell in known(only, CELLS)]
