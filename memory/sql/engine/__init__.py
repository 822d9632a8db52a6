"""Open and migrate the database, and run transactions on it.

SQLAlchemy's INSERT for PostgreSQL serves both databases, because SQLite has the same ON CONFLICT clause.
"""

from memory.sql.engine.database import Database

__all__ = ["Database"]
