"""Rows of an Arrow table as dicts; a value that Python cannot hold costs its row, not the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.spark.rows import shown_text

__all__ = ["BadValue", "dicts_of"]

# What Arrow raises for text that is no UTF-8, a year beyond 9999, a time zone that nobody knows, …
_TROUBLE = (ArithmeticError, LookupError, NotImplementedError, ValueError)


@dataclass(frozen=True, slots=True, repr=False)
class BadValue:
    """Stands in the place of a value that Python cannot hold."""

    shown: str
    reason: str

    def __repr__(self) -> str:
        """The value as far as it can be told, and what is wrong with it."""
        return f"{self.shown} cannot be read: {self.reason}"


def dicts_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    r"""The rows of a table, maps as dicts.

    >>> ids = pa.array([b"s1", b"s\xff"]).cast(pa.string(), safe=False)
    >>> first, second = dicts_of(pa.table({"id": ids}))
    >>> first["id"], second["id"]
    ('s1', s\xff cannot be read: it is no UTF-8)
    """
    try:
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        return rows
    except _TROUBLE:
        columns = [[_value(scalar) for scalar in column] for column in table.columns]
    names = table.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except UnicodeDecodeError:
        return BadValue(shown_text(scalar), "it is no UTF-8")
    except _TROUBLE as error:
        return BadValue(shown_text(scalar), str(error))
