"""Run by Alembic; `memory.sql.engine.schema` hands over the connection, and what the migration calls
after each step."""

from alembic import context

from memory.sql.tables import metadata

given = context.config.attributes
context.configure(connection=given["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
