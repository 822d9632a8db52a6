"""Run by Alembic; the connection is handed over by `memory.sql.engine`."""

from alembic import context

from memory.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
