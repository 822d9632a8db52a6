"""Run by Alembic; the connection is handed over by `memory.database`."""

from alembic import context

from memory.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
