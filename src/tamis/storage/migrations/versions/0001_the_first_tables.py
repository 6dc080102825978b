"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the tables forward."""
    op.create_table(
        "attempts",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("delivery", sa.BigInteger(), nullable=False),
        sa.Column("notification_id", sa.Text(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("took_ms", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempts_at"), ["at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_attempts_notification_id"), ["notification_id"], unique=False
        )

    op.create_table(
        "changes",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_changes")),
    )
    op.create_table(
        "circuits",
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("open_until", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("destination", name=op.f("pk_circuits")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "idempotency",
        sa.Column("key_prefix", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key_prefix", "token", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "keys",
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("last_used_at", sa.Text(), nullable=True),
        sa.Column("revoked_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("prefix", name=op.f("pk_keys")),
    )
    op.create_table(
        "notifications",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("subscription_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("due", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("parts", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("n_matches", sa.Integer(), nullable=False),
        sa.Column("held_back", sa.BigInteger(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("matches", sa.Text(), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_notifications")),
        sa.UniqueConstraint("id", name=op.f("uq_notifications_id")),
    )
    with op.batch_alter_table("notifications", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_notifications_due"), ["due"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_notifications_owner_number"), ["owner", "number"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_notifications_subscription_id_number"),
            ["subscription_id", "number"],
            unique=False,
        )

    op.create_table(
        "owners",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("webhook_secret", sa.Text(), nullable=False),
        sa.Column("n_subscriptions", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_owners")),
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("filter", sa.Text(), nullable=False),
        sa.Column("spelling", sa.Text(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("lon", sa.Double(), nullable=True),
        sa.Column("lat", sa.Double(), nullable=True),
        sa.Column("radius_m", sa.Double(), nullable=True),
        sa.Column("area", sa.Text(), nullable=True),
        sa.Column("is_paused", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subscriptions")),
    )
    with op.batch_alter_table("subscriptions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_subscriptions_owner_id"), ["owner", "id"], unique=False
        )

    op.create_table(
        "deliveries",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("notification_id", sa.Text(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.Column("lease_by", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["notification_id"], ["notifications.id"], name=op.f("fk_deliveries_notification_id")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deliveries")),
        sa.UniqueConstraint(
            "notification_id",
            "transport",
            "address",
            name=op.f("uq_deliveries_notification_id_transport_address"),
        ),
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_deliveries_owner_state"), ["owner", "state"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_deliveries_state_priority_next_at_destination"),
            ["state", "priority", "next_at", "destination"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_deliveries_state_updated_at"), ["state", "updated_at"], unique=False
        )


def downgrade() -> None:
    """Take them back."""
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_deliveries_state_updated_at"))
        batch_op.drop_index(batch_op.f("ix_deliveries_state_priority_next_at_destination"))
        batch_op.drop_index(batch_op.f("ix_deliveries_owner_state"))

    op.drop_table("deliveries")
    with op.batch_alter_table("subscriptions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_subscriptions_owner_id"))

    op.drop_table("subscriptions")
    op.drop_table("owners")
    with op.batch_alter_table("notifications", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_notifications_subscription_id_number"))
        batch_op.drop_index(batch_op.f("ix_notifications_owner_number"))
        batch_op.drop_index(batch_op.f("ix_notifications_due"))

    op.drop_table("notifications")
    op.drop_table("keys")
    op.drop_table("idempotency")
    op.drop_table("counters")
    op.drop_table("circuits")
    op.drop_table("changes")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempts_notification_id"))
        batch_op.drop_index(batch_op.f("ix_attempts_at"))

    op.drop_table("attempts")
