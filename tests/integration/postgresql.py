"""The server of the benchmarks, as tests need it: it does not wait for the disk."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tamis.bench.service import postgresql
from tamis.bench.service.postgresql import PostgreSQL

__all__ = ["PostgreSQL", "running_postgresql"]


def running_postgresql() -> AbstractContextManager[PostgreSQL]:
    """A server, for as long as it is used."""
    return postgresql.running_postgresql(is_durable=False)
