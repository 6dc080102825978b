"""The columns of a table of events that no setting says: learned once, and kept in the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import PipelineError
from tamis.spark.settings import EventSettings
from tamis.spark.state_folder import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.events import EventMapping

__all__ = ["KeptColumns"]

_FILE = "columns.json"


class KeptColumns:
    """What a pipeline knows of the columns of its events; its state folder remembers it."""

    def __init__(self, state: StateFolder, events: EventSettings) -> None:
        self._state, self._events = state, events
        self._learned: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether no file is needed to learn them from."""
        events = self._events
        return not events.is_table or bool(events.columns_ddl or self._kept())

    def open(self, spark: SparkSession) -> tuple[DataFrame, EventMapping]:
        """The stream of events with these columns; raises PipelineError if they are none."""
        from pyspark.errors import ParseException

        from tamis.spark.sources import learned_columns, open_events

        events = self._events
        if events.is_table and events.columns_ddl is None:
            self._learned = self._kept() or learned_columns(spark, events)
            events = events.model_copy(update={"columns_ddl": self._learned})
        try:
            return open_events(spark, events)
        except ParseException as error:
            said = str(error).strip().splitlines()[0]
            given = events.columns_ddl
            raise PipelineError(f"events.schema: Spark cannot read {given!r}: {said}") from None

    def keep(self) -> None:
        """Remember what was learned."""
        if self._learned is not None and self._kept() is None:
            self._state.keep(_FILE, {"schema": self._learned})

    def _kept(self) -> str | None:
        held = self._state.read(_FILE)
        return None if held is None else str(held.get("schema") or "") or None
