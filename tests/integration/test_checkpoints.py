"""Which settings a query is started with, for its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.spark.checkpoints import settings_of_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
ELSEWHERE = {"spark.sql.session.timeZone": "Asia/Tokyo"}


def test_settings_are_those_of_the_query_alone(spark: SparkSession, tmp_path: Path) -> None:
    def held() -> tuple[str | None, str | None]:
        return spark.conf.get(MANAGER, None), spark.conf.get("spark.sql.session.timeZone")

    before = held()
    with settings_of_query(spark, tmp_path, ELSEWHERE):
        manager, zone = held()
        assert manager is not None
        assert manager.endswith("FileSystemBasedCheckpointFileManager")
        assert zone == "Asia/Tokyo"
    assert held() == before
    with pytest.raises(ZeroDivisionError), settings_of_query(spark, tmp_path, ELSEWHERE):
        raise ZeroDivisionError
    assert held() == before == (None, "UTC")


def test_other_file_systems_and_managers_are_left_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    with settings_of_query(spark, "hdfs://127.0.0.1:1/state"):
        assert spark.conf.get(MANAGER, None) is None
    spark.conf.set(MANAGER, "x.Own")
    try:
        with settings_of_query(spark, tmp_path):
            assert spark.conf.get(MANAGER, None) == "x.Own"
        assert spark.conf.get(MANAGER, None) == "x.Own"
    finally:
        spark.conf.unset(MANAGER)
