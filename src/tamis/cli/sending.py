"""``tamis send``: a sender of its own, until somebody stops it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tamis.service.sending import SenderSettings, make_sender, read_sender_settings
from tamis.storage import Database
from tamis.storage.figures import read_figures

_PASSWORD = "TAMIS_MAIL_PASSWORD"


def sender_settings(file: Path | None) -> SenderSettings:
    """The settings in a file, or those for everybody; the mail server's password from outside."""
    settings = SenderSettings() if file is None else read_sender_settings(file)
    password = os.environ.get(_PASSWORD)
    if settings.mail is None or password is None:
        return settings
    mail = settings.mail.model_copy(update={"password": password})
    return settings.model_copy(update={"mail": mail})


@dataclass(frozen=True, slots=True)
class SendJob:
    """The options of one run, and what it does with them."""

    database: str
    settings: Path | None = None
    once: bool = False

    def run(self) -> None:
        """Send until SIGTERM or SIGINT; with ``once`` what is due now."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        settings = sender_settings(self.settings)
        database = Database(self.database)
        try:
            database.migrate()
            asyncio.run(self._send(database, settings))
            figures = read_figures(database, datetime.now(UTC))
        finally:
            database.close()
        told = {"sent": figures.sent, "waiting": figures.waiting, "dead": figures.dead}
        print(json.dumps(told))

    async def _send(self, database: Database, settings: SenderSettings) -> None:
        sender = make_sender(database, settings)
        if self.once:
            try:
                await sender.send_due()
            finally:
                await sender.close()
            return
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, sender.stop)
        await sender.run()
