"""Notification: what is told to one subscription at one time, and its stable id."""

from __future__ import annotations

from hashlib import sha256

import pyarrow as pa

__all__ = ["MATCH_TYPE", "NOTIFICATION_SCHEMA", "notification_id"]

_INSTANT = pa.timestamp("us", "UTC")

MATCH_TYPE = pa.struct(
    [
        ("priority", pa.int8()),
        ("event_time", _INSTANT),
        ("event_id", pa.string()),
        ("matched_at", _INSTANT),
        ("payload", pa.binary()),
    ]
)
"""One match inside a notification. Matches are ordered by these fields, in this order."""

NOTIFICATION_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("subscription_id", pa.string(), nullable=False),
        pa.field("owner", pa.string(), nullable=False),
        pa.field("priority", pa.int8(), nullable=False),
        pa.field("due", _INSTANT, nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("parts", pa.int32(), nullable=False),
        pa.field("total", pa.int32(), nullable=False),
        pa.field("n_matches", pa.int32(), nullable=False),
        pa.field("held_back", pa.int64(), nullable=False),
        pa.field("delivery", pa.string(), nullable=False),
        pa.field("matches", pa.list_(MATCH_TYPE), nullable=False),
    ]
)
"""The columns of an outbox.

``part`` of ``parts`` counts from 1 and says which slice of the digest this is; ``total`` is the
number of matches in the whole digest, ``n_matches`` in this part; ``held_back`` is the number of
matches that a rate cap kept from this subscription since it was last told something; ``delivery``
are its settings as JSON text. A notice, which only says what was held back, is part 0 of 0 and has
no matches.
"""


def notification_id(subscription_id: str, due_us: int, part: int) -> str:
    """The id of a notification: always the same for the same subscription, time and part.

    >>> notification_id("s1", 1_767_225_600_000_000, 1)
    'c881a45280b0e4a400c360f994f01aa8'
    """
    # The numbers come first, so that no id of a subscription can look like another's.
    return sha256(f"{due_us}/{part}/{subscription_id}".encode()).hexdigest()[:32]
