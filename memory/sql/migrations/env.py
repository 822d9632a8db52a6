"""Run by Alembic; `memory.sql.engine.migrate` hands over the connection."""

from alembic import context

from memory.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
