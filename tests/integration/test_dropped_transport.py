"""A transport that is one file: the sender delivers by it."""

from __future__ import annotations

import sys
from pathlib import Path

from tamis.service.sending.transports import make_transports
from tamis.storage import Database
from tests.integration.dropped_transport import dropped
from tests.integration.sending import Clock, notify, outcomes, send_due, settings, states, subscribe


def test_the_sender_delivers_by_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/tamis.db")
    database.migrate()
    with dropped(tmp_path):
        subscribe(database, "s1", {"pager": ["17", "4"]})
        (id,) = notify(database, "s1")
        given = settings()
        assert send_due(database, given, Clock(), make_transports(given)) == 2
        assert states(database) == {id: "sent"}
        assert [outcome for outcome, _ in outcomes(database)] == ["sent", "sent"]
        beeps = sys.modules["tamis.service.sending.transports.pager"].BEEPS
    assert sorted(beeps[:2]) == [("17", "s1"), ("4", "s1")]
    assert beeps[2:] == ["closed"]
    database.close()
