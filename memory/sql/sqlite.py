"""SQLite, called on the event loop itself.

A statement takes some 0.05 ms, and handing it to a thread and back takes ten times as long: a turn makes
about forty. So SQLAlchemy's own SQLite dialect is told that it may be used from asyncio as it is. What could
wait, another process's write, must then not wait in here: `memory.sql.engine` asks again instead.
"""

import sqlite3
from typing import Any

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import await_only


class LoopSQLite(SQLiteDialect_pysqlite):
    driver = "loop"
    is_async = True
    supports_statement_cache = True

    @classmethod
    def get_pool_class(cls, url: Any) -> type[AsyncAdaptedQueuePool]:
        return AsyncAdaptedQueuePool

    def connect(self, *args: Any, **kwargs: Any) -> Any:
        return super().connect(*args, factory=_Connection, **kwargs)

    def get_driver_connection(self, connection: Any) -> Any:
        return connection

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        await_only(_nothing())  # SQLAlchemy takes a driver that never awaits for one that blocks
        super().do_execute(cursor, statement, parameters, context)  # type: ignore[no-untyped-call]

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        await_only(_nothing())
        super().do_executemany(cursor, statement, parameters, context)  # type: ignore[no-untyped-call]


class _Cursor(sqlite3.Cursor):
    async def _async_soft_close(self) -> None:
        """What SQLAlchemy asks of an async cursor; all rows are here at once."""


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


async def _nothing() -> None:
    pass
