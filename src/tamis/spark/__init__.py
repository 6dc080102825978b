"""Tamis on Spark: needs the extra ``tamis[spark]``, and brings its own Java where there is none."""

from tamis.spark.java import java_home
from tamis.spark.runtime import session

__all__ = ["java_home", "session"]
