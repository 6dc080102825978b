"""A sender in a process of its own: ``sender_job.py URL SETTINGS``, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
import sys

from tamis.service.sending import Sender, SenderSettings
from tamis.service.sending.transports.webhook import WebhookTransport
from tamis.storage import Database


async def send(url: str, settings: SenderSettings) -> None:
    sender = Sender(Database(url), settings, {"webhook": WebhookTransport(settings)})
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, sender.stop)
    print("started", flush=True)
    await sender.run()


if __name__ == "__main__":
    asyncio.run(send(sys.argv[1], SenderSettings.model_validate_json(sys.argv[2])))
