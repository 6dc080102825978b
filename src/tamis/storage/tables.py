"""The tables of the database, in SQLite and in PostgreSQL.

Times are texts such as ``2026-01-01T09:00:00.000000Z``: they sort as the moments do, in both
databases, and nobody's time zone has a say in them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)
# SQLite counts rows by itself only in a column of this very type.
_NUMBER = BigInteger().with_variant(Integer, "sqlite")


def _required(name: str, kind: type | BigInteger) -> Column[object]:
    return Column(name, kind, nullable=False)


owners = Table(
    "owners",
    METADATA,
    Column("owner", Text, primary_key=True),
    _required("webhook_secret", Text),  # signs what is sent to the webhooks of this owner
    _required("n_subscriptions", BigInteger),
    _required("created_at", Text),
)

keys = Table(
    "keys",
    METADATA,
    Column("prefix", Text, primary_key=True),  # shown, and what a key is looked up by
    _required("hash", Text),  # SHA-256 of the secret part, in hexadecimal
    _required("owner", Text),
    _required("scopes", Text),  # separated by spaces
    _required("name", Text),
    _required("limits", Text),  # JSON; what is not in it is as for everybody
    _required("created_at", Text),
    Column("last_used_at", Text),
    Column("revoked_at", Text),
)

subscriptions = Table(
    "subscriptions",
    METADATA,
    Column("id", Text, primary_key=True),
    _required("owner", Text),
    _required("filter", Text),  # its JSON spelling, which the pipeline reads
    _required("spelling", Text),  # as it was given, which its owner reads; JSON
    _required("priority", SmallInteger),
    _required("delivery", Text),  # JSON
    Column("lon", Double),
    Column("lat", Double),
    Column("radius_m", Double),
    Column("area", Text),
    _required("is_paused", Boolean),
    _required("version", BigInteger),  # 1, and one more with every change
    _required("created_at", Text),
    _required("updated_at", Text),
    Index(None, "owner", "id"),
)

changes = Table(
    "changes",
    METADATA,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    _required("id", Text),  # of the subscription; how it is now stands in its own table
    _required("at", Text),
)

counters = Table(
    "counters",
    METADATA,
    Column("name", Text, primary_key=True),
    _required("last", BigInteger),
)

idempotency = Table(
    "idempotency",
    METADATA,
    Column("key_prefix", Text, primary_key=True),
    Column("token", Text, primary_key=True),  # the header Idempotency-Key
    _required("request", Text),  # a hash of what was asked for
    Column("status", Integer),  # none while the first request is at work
    Column("answer", Text),  # JSON: headers and body
    _required("created_at", Text),
)

notifications = Table(
    "notifications",
    METADATA,
    Column("number", _NUMBER, primary_key=True),  # in the order they became visible
    Column("id", Text, nullable=False, unique=True),
    _required("subscription_id", Text),
    _required("owner", Text),
    _required("priority", SmallInteger),
    _required("due", Text),
    _required("part", Integer),
    _required("parts", Integer),
    _required("total", Integer),
    _required("n_matches", Integer),
    _required("held_back", BigInteger),
    _required("delivery", Text),
    _required("matches", Text),  # JSON
    _required("batch", BigInteger),
    Index(None, "owner", "number"),
    Index(None, "subscription_id", "number"),
    Index(None, "due"),
)

deliveries = Table(
    "deliveries",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("notification_id", Text, ForeignKey("notifications.id"), nullable=False),
    _required("transport", Text),  # webhook, mail, apprise; none where it was skipped at once
    _required("address", Text),  # a URL, a mail address
    _required("destination", Text),  # what fails together: a host, a mail server
    _required("owner", Text),
    _required("priority", SmallInteger),
    _required("state", Text),  # waiting, sending, sent, dead, skipped
    _required("attempts", Integer),
    _required("next_at", Text),  # not before
    _required("expires_at", Text),  # not after
    Column("lease_by", Text),
    Column("lease_until", Text),
    Column("problem", Text),  # of the last attempt
    _required("created_at", Text),
    _required("updated_at", Text),
    UniqueConstraint("notification_id", "transport", "address"),
    # With the destination, those of a full one are passed over without looking at their rows.
    Index(None, "state", "priority", "next_at", "destination"),
    Index(None, "state", "updated_at"),
    Index(None, "owner", "state"),
)

attempts = Table(
    "attempts",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    _required("delivery", BigInteger),  # its number
    _required("notification_id", Text),
    _required("transport", Text),
    _required("attempt", Integer),
    _required("at", Text),
    _required("took_ms", Integer),
    _required("outcome", Text),  # sent, failed, refused, lost
    Column("status", Integer),  # of HTTP or SMTP
    Column("problem", Text),
    Index(None, "notification_id"),
    Index(None, "at"),
)

circuits = Table(
    "circuits",
    METADATA,
    Column("destination", Text, primary_key=True),
    _required("failures", Integer),  # in a row
    Column("open_until", Text),
    _required("updated_at", Text),
)

COUNTERS = ("changes", "fanned_out")
"""The rows of ``counters`` that must be there: the last change, the last notification that became
deliveries. Others come as they are counted: see `tamis.storage.figures`."""


def moment(at: datetime | None = None) -> str:
    """A moment as the tables have it; without one, now.

    >>> moment(datetime(2026, 1, 1, 9, tzinfo=UTC))
    '2026-01-01T09:00:00.000000Z'
    """
    at = at or datetime.now(UTC)
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
