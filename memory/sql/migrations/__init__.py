"""Alembic migrations; `memory.sql.engine` applies them."""
