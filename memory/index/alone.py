"""Keeps two processes from indexing one PostgreSQL database into different indexes.

A row stores under which generation it is indexed. Two indexes of one database would take each other's rows
for due, and index everything again for ever. So a process with an embedded index holds a lock of the server
for itself, and processes that share a Qdrant server hold it together.
"""

import asyncio

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import IndexUnavailable, StoreUnavailable
from memory.sql.engine import Database
from memory.sql.engine.errors import translated

NAME = "hachi index"


class Alone:
    def __init__(self, database: Database, *, shared: bool) -> None:
        self._database = database
        self._taken = text(
            f"SELECT pg_try_advisory_lock{'_shared' if shared else ''}(hashtextextended('{NAME}', 0))"
        )
        self._connection: AsyncConnection | None = None
        self._asking = asyncio.Lock()

    async def __call__(self) -> None:
        """Take the lock, or see that it is held. Raises IndexUnavailable if another process has an index
        of its own, or StoreUnavailable. A SQLite database has its index in the same folder."""
        if self._database.sqlite:
            return
        async with self._asking:
            try:
                taken = await self._take()
            except StoreUnavailable:  # the connection was lost, and the lock with it
                await self.close()
                taken = await self._take()
        if not taken:
            await self.close()
            raise IndexUnavailable(
                f"another hachi process keeps an index of its own of {self._database.where}; "
                "set QDRANT_URL to the same Qdrant server for all of them"
            )

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with translated(self._database.where):
                await connection.invalidate()  # a pooled connection would keep the lock
                await connection.close()

    async def _take(self) -> bool:
        with translated(self._database.where):
            if self._connection is None:
                connection = await self._database.engine.connect()
                self._connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
            return bool(await self._connection.scalar(self._taken))
