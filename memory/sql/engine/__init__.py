"""The database: opened, migrated, and asked in transactions."""

from memory.sql.engine.database import Database

__all__ = ["Database"]
