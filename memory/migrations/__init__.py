"""Alembic migrations; `memory.database` applies them."""
