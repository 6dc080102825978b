"""What is told of a database: to people without its password, to clients nothing."""

from __future__ import annotations

import pytest

from tamis.errors import StorageUnavailable
from tamis.service.problems import problem_of
from tamis.storage import Database

URLS = [
    "postgresql://zoe:hunter2@db.example/ads",
    "postgresql://zoe@db.example/ads?password=hunter2&sslpassword=hunter2",
    "postgresql:///ads?host=/run/postgresql&user=zoe&password=hunter2&port=5433",
]


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_not_told_wherever_it_stands(url: str) -> None:
    database = Database(url)
    try:
        assert "hunter2" not in database.name
        assert "ads" in database.name
        assert "zoe" in database.name
    finally:
        database.close()
    assert "host=%2Frun%2Fpostgresql" in database.name or "db.example" in database.name


def test_clients_are_not_told_where_the_database_is() -> None:
    error = StorageUnavailable("the database postgresql://zoe@db.example/ads cannot be used now")
    error.__cause__ = OSError("connection to db.example refused")
    told = problem_of(error)
    assert (told["status"], told["detail"]) == (503, "the database cannot be used now; try again")
    loading = StorageUnavailable("the subscriptions are still being loaded; try again")
    assert problem_of(loading)["detail"] == str(loading)
