"""Message: a notification as transports send it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tamis.storage.deliveries import Claim

__all__ = ["Match", "Message"]


@dataclass(frozen=True, slots=True)
class Match:
    """One match of a notification, with its payload as text where it is text."""

    event_id: str
    event_time: str | None
    matched_at: str | None
    priority: int
    payload: bytes

    @property
    def text(self) -> str:
        """The payload for people to read."""
        try:
            return self.payload.decode()
        except UnicodeDecodeError:
            return f"({len(self.payload):,} bytes)"

    def to_json(self) -> dict[str, Any]:
        """The match in a webhook: its payload as JSON, as text, or as base64 if it is neither."""
        made: dict[str, Any] = {
            "event_id": self.event_id,
            "event_time": self.event_time,
            "matched_at": self.matched_at,
            "priority": self.priority,
        }
        if not self.payload:
            return made
        try:
            text = self.payload.decode()
        except UnicodeDecodeError:
            return {**made, "payload_base64": base64.b64encode(self.payload).decode()}
        try:
            return {**made, "payload": json.loads(text, parse_constant=_refuse)}
        except (ValueError, RecursionError):
            return {**made, "payload": text}


@dataclass(frozen=True)
class Message:
    """What a claim is to send."""

    claim: Claim

    @property
    def id(self) -> str:
        """The id of the notification: the same in every attempt."""
        return str(self.claim.row.id)

    @property
    def address(self) -> str:
        """Where it goes."""
        return str(self.claim.row.address)

    @property
    def subscription_id(self) -> str:
        """The subscription that is told."""
        return str(self.claim.row.subscription_id)

    @cached_property
    def matches(self) -> list[Match]:
        """The matches that are told."""
        return [_match(one) for one in json.loads(self.claim.row.matches)]

    @cached_property
    def filter(self) -> Any:
        """The filter as its owner wrote it."""
        return json.loads(self.claim.row.spelling)

    @property
    def filter_text(self) -> str:
        """The filter for people to read."""
        held = self.filter
        return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False, indent=2)

    def to_json(self) -> dict[str, Any]:
        """The body of a webhook."""
        row = self.claim.row
        return {
            "type": "subscription.matched" if row.parts else "subscription.held_back",
            "timestamp": row.due,
            "data": {
                "id": row.id,
                "subscription": {"id": row.subscription_id, "filter": self.filter},
                "priority": row.priority,
                "part": row.part,
                "parts": row.parts,
                "total": row.total,
                "held_back": row.held_back,
                "matches": [one.to_json() for one in self.matches],
            },
        }


def _match(held: Mapping[str, Any]) -> Match:
    try:
        payload = base64.b64decode(held.get("payload") or "")
    except binascii.Error:
        payload = b""
    return Match(
        str(held.get("event_id")),
        held.get("event_time"),
        held.get("matched_at"),
        held.get("priority", 9),
        payload,
    )


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
