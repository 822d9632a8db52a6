"""The database: opened, migrated, and asked in transactions.

Where a row may exist, PostgreSQL's INSERT serves both databases: SQLite spells ON CONFLICT alike.
"""

from memory.sql.engine.database import Database

__all__ = ["Database"]
