"""What a service was measured with: its database, and the packages it is made of."""

from __future__ import annotations

from importlib.metadata import version

from sqlalchemy import text

from tamis.storage import Database

_PACKAGES = ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "sqlalchemy", "psycopg")


def describe_software(database_url: str) -> dict[str, str]:
    """The database with what decides how durable a commit is, and the versions of packages."""
    database = Database(database_url)
    try:
        with database.reading() as connection:
            asked = _SQLITE if database.is_sqlite else _POSTGRESQL
            found = [connection.execute(text(query)).scalar_one() for query in asked]
    finally:
        database.close()
    told = _SQLITE_TOLD if database.is_sqlite else _POSTGRESQL_TOLD
    return {
        "database": told.format(*found),
        "packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
    }


_SQLITE = ("SELECT sqlite_version()", "PRAGMA journal_mode", "PRAGMA synchronous")
_SQLITE_TOLD = "SQLite {}, journal {}, synchronous {}"
_POSTGRESQL = (
    "SHOW server_version", "SHOW fsync", "SHOW synchronous_commit", "SHOW shared_buffers",
)  # fmt: skip
_POSTGRESQL_TOLD = "PostgreSQL {}, fsync {}, synchronous_commit {}, shared_buffers {}"
