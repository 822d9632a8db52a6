"""Run SQLite on the event loop, and set up its connections."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import await_only

from memory.process.pace import pause
from memory.sql.engine.migrate import OURS

ROWS_AT_ONCE = 200
"""Rows that are written before other tasks may run: some 5 ms, with their triggers."""
FOREIGN = f"SELECT count(*) > 0 AND sum(name = '{OURS}') = 0 FROM sqlite_master WHERE type = 'table'"
"""Selects whether the file has tables, and none of Hachi's."""

registry.register("sqlite.loop", "memory.sql.engine.loop_sqlite", "LoopSQLite")


def set_up(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # `begin` sends BEGIN
    cursor = connection.cursor()
    cursor.execute("PRAGMA case_sensitive_like=ON")  # as on PostgreSQL: "ACME/secret" is not inside "acme"
    if connection.read_only:
        cursor.close()
        return
    if not cursor.execute("PRAGMA page_count").fetchone()[0]:
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")  # works only for a new file
    elif cursor.execute(FOREIGN).fetchone()[0]:
        cursor.close()
        return  # leave it unchanged: reading its revision raises the error
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # 0.3 ms a commit, and it survives a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA secure_delete=ON")  # overwrites what is deleted; not every SQLite does by itself
    cursor.execute("PRAGMA mmap_size=1073741824")  # reads pages in place: halves the time of a search
    cursor.execute("PRAGMA cache_size=-256")  # kilobytes a connection: it caches only written pages
    cursor.execute("PRAGMA busy_timeout=0")  # from here on no statement may block
    cursor.close()


def begin(connection: Connection) -> None:
    if connection.get_execution_options().get("hachi_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # a read needs no BEGIN: each statement sees one state


class LoopSQLite(SQLiteDialect_pysqlite):
    """A dialect that runs SQLite on the event loop itself.

    A statement takes some 0.05 ms; passing it to a thread and back takes ten times as long. Nothing in here
    may block: `Database` retries if another process has the lock, and waiting tasks run before a statement.
    """

    driver = "loop"
    is_async = True
    has_terminate = True  # else SQLAlchemy leaves a detached connection open until it is collected as garbage
    supports_statement_cache = True

    @classmethod
    def get_pool_class(cls, url: Any) -> type[AsyncAdaptedQueuePool]:
        return AsyncAdaptedQueuePool

    def connect(self, *args: Any, **kwargs: Any) -> Any:
        path, *rest = args
        _create_private(path)
        uri = read_only_uri(Path(path))
        connection = super().connect(uri or path, *rest, factory=_Connection, uri=bool(uri), **kwargs)
        connection.read_only = bool(uri)
        return connection

    def get_driver_connection(self, connection: Any) -> Any:
        return connection

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        await_only(pause())
        super().do_execute(cursor, statement, parameters, context)  # type: ignore[no-untyped-call]

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        for at in range(0, len(parameters), ROWS_AT_ONCE):
            await_only(pause())
            super().do_executemany(cursor, statement, parameters[at : at + ROWS_AT_ONCE], context)  # type: ignore[no-untyped-call]


def _create_private(path: str) -> None:
    """Create a missing file that only its owner may read. An existing file is not opened, because closing it
    would drop this process's locks, and another process could then delete the log in use."""
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def read_only_uri(path: Path) -> str | None:
    """Return a URI that opens the file read-only, if it or its folder cannot be written; else None. Without a
    write-ahead log no process has it open, so it is opened as immutable."""
    effective = os.access in os.supports_effective_ids
    if not path.exists() or all(os.access(p, os.W_OK, effective_ids=effective) for p in (path, path.parent)):
        return None
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    return f"{path.absolute().as_uri()}?{how}"


class _Cursor(sqlite3.Cursor):
    async def _async_soft_close(self) -> None:
        """Do nothing. SQLAlchemy awaits this, but all rows have been read already."""


class _Connection(sqlite3.Connection):
    read_only = False

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)
