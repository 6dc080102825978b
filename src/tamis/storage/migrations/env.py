"""Run by Alembic, inside the transaction that ``Database.migrate`` has begun."""

from alembic import context

from tamis.storage.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
context.run_migrations()
