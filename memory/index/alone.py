"""Keeps two processes from indexing one PostgreSQL database into different indexes.

A row stores under which generation it is indexed. Two indexes of one database would take each other's rows
for due, and index everything again for ever. So a process with an embedded index holds a lock of the server
for itself, and processes that share a Qdrant server hold it together.
"""

import asyncio
from typing import Any

from memory.errors import IndexUnavailable
from memory.sql.engine import Database
from memory.sql.engine.errors import explain

NAME = "hachi index"
SECONDS = 10
"""How long the database may take to answer."""


class Alone:
    def __init__(self, database: Database, *, shared: bool) -> None:
        self._database = database
        self._question = (
            f"SELECT pg_try_advisory_lock{'_shared' if shared else ''}(hashtextextended('{NAME}', 0))"
        )
        self._connection: Any = None
        """Of the driver, beside those that transactions share; the lock ends with it."""
        self._asking = asyncio.Lock()

    async def __call__(self) -> None:
        """Take the lock, or see that it is held; one that was lost is taken again. Raises IndexUnavailable if
        another process has an index of its own, or if the database cannot be asked. A SQLite database has its
        index in the same folder."""
        if self._database.connect_alone is None:
            return
        async with self._asking:
            try:
                taken = await self._held() or await self._take(await self._database.connect_alone())
            except Exception as error:  # whatever the driver says: a fact that waits for its index is kept
                reason = explain(error, self._database.where)
                raise IndexUnavailable(f"the index waits for the database: {reason}") from error
        if not taken:
            raise IndexUnavailable(
                f"another hachi process keeps an index of its own of {self._database.where}; "
                "set QDRANT_URL to the same Qdrant server for all of them"
            )

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _held(self) -> bool:
        try:
            return self._connection is not None and await self._take(self._connection)
        except Exception:  # the connection was lost, and the lock with it
            return False

    async def _take(self, connection: Any) -> bool:
        """Whether this connection has the lock. Only then it is kept."""
        self._connection, taken = connection, False
        try:
            taken = bool(await connection.fetchval(self._question, timeout=SECONDS))
        finally:
            if not taken:
                await self.close()
        return taken
