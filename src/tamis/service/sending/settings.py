"""The settings of a sender."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tamis.settings import LongSpan, Section, Span, Whole, read_settings_file

__all__ = ["MailSettings", "SenderSettings", "WebhookSettings", "read_sender_settings"]

CHAT_SCHEMAS = ("discord", "gchat", "pbul", "pover", "slack", "tgram", "wxteams")
"""Services of Apprise that talk to one fixed host each, which no address can change."""


class WebhookSettings(Section):
    """What webhooks may reach, and for how long.

    ``allow_networks`` may be reached though they are not public, and ``allow_hosts`` whatever
    their address is (``.example.org`` allows all below it).
    """

    allow_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    timeout: LongSpan = timedelta(seconds=10)
    max_response_bytes: Annotated[Whole, Field(ge=0)] = 65_536
    max_redirects: Annotated[Whole, Field(ge=0, le=10)] = 3


class MailSettings(Section):
    """The mail server, and what mails say of themselves.

    ``public_url`` is where people reach the service: links to unsubscribe begin with it.
    """

    host: str
    port: Annotated[Whole, Field(gt=0, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: Annotated[str | None, Field(repr=False)] = None
    sender: str
    sender_name: str = "Tamis"
    public_url: str | None = None
    timeout: LongSpan = timedelta(seconds=30)
    connections: Annotated[Whole, Field(gt=0)] = 4


class AppriseSettings(Section):
    """Which services of Apprise may be used.

    Most of the others connect to whatever host their address names, which no guard checks.
    """

    schemas: tuple[str, ...] = CHAT_SCHEMAS
    timeout: LongSpan = timedelta(seconds=15)


class SenderSettings(Section):
    """How a sender goes about its work; without ``mail`` none is sent."""

    webhook: WebhookSettings = WebhookSettings()
    mail: MailSettings | None = None
    apprise: AppriseSettings = AppriseSettings()

    concurrency: Annotated[Whole, Field(gt=0)] = 128
    per_destination: Annotated[Whole, Field(gt=0)] = 8
    ahead: Annotated[Whole, Field(gt=0)] = 4
    poll: LongSpan = timedelta(milliseconds=200)
    lease: LongSpan = timedelta(seconds=30)
    stop_within: Span = timedelta(seconds=10)

    first_retry: LongSpan = timedelta(seconds=5)
    retry_factor: Annotated[float, Field(ge=1)] = 3.0
    longest_retry: LongSpan = timedelta(hours=6)
    max_attempts: Annotated[Whole, Field(gt=0)] = 20
    max_attempts_refused: Annotated[Whole, Field(gt=0)] = 3
    max_age: LongSpan = timedelta(days=3)

    circuit_failures: Annotated[Whole, Field(gt=0)] = 5
    circuit_rest: LongSpan = timedelta(seconds=30)
    circuit_longest_rest: LongSpan = timedelta(minutes=10)

    keep: Span = timedelta(days=7)
    keep_dead: Span = timedelta(days=30)


def read_sender_settings(path: Path) -> SenderSettings:
    """Read settings from a TOML file."""
    return read_settings_file(path, SenderSettings)
