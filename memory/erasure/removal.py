"""Taking memories away for good: what has expired, and what people delete. From the record and the index.

The row goes first, and with it, in the same transaction, a piece of work is written that takes its vectors
out of the index: an index that is away at that moment is cleaned later.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.errors import IndexUnavailable
from memory.index import Index
from memory.people.profile import MEMORY_SUMMARY
from memory.records import Memory
from memory.sql import memory_removal
from memory.sql.engine import Database
from memory.sql.jobs import JobQueue
from memory.sql.tables import context_entries

log = logging.getLogger("hachi.memory")

UNINDEX = "unindex"
"""The kind of work that takes ids out of the index."""

BATCH = 500


class Removal:
    def __init__(
        self,
        database: Database,
        index: Index,
        queue: JobQueue,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._index = index
        self._queue = queue
        self._clock = clock

    async def purge(self) -> list[Memory]:
        """Delete whatever has expired, whoever it belongs to; says what went."""
        gone: list[Memory] = []
        while batch := await self._purge_some():
            gone += batch
        return gone

    async def _purge_some(self) -> list[Memory]:
        now = self._clock()
        async with self._database.write() as connection:
            batch = await memory_removal.expired(connection, now, BATCH)
            await memory_removal.revive(connection, [memory.id for memory in batch], now)
            work = await self._delete(connection, batch, now)
        await self._unindex_all(work)
        return batch

    async def remove(self, memories: Sequence[Memory]) -> None:
        """Delete these for everybody."""
        async with self._database.write() as connection:
            work = await self._delete(connection, memories, self._clock())
        await self._unindex_all(work)

    async def _delete(
        self, connection: AsyncConnection, memories: Sequence[Memory], now: datetime
    ) -> list[tuple[list[str], str]]:
        """Delete the rows; the ids that went, each lot with the work that takes them out of the index."""
        work = []
        for user in sorted({memory.user_id for memory in memories}):
            theirs = [memory.id for memory in memories if memory.user_id == user]
            ids = await memory_removal.delete_for_everybody(connection, theirs)
            await _forget_summaries(connection, user)
            work.append((ids, await self._queue.add(connection, UNINDEX, user, {"ids": ids}, now)))
        return work

    async def _unindex_all(self, work: Sequence[tuple[list[str], str]]) -> None:
        await self._unindex([id for ids, _ in work for id in ids], [piece for _, piece in work])

    async def delete(self, memory: Memory, user: str) -> None:
        """A person takes a memory away: see `memory_removal.unlink` for what that does to others'."""
        async with self._database.write() as connection:
            ids = await memory_removal.unlink(connection, memory, user)
            await _forget_summaries(connection, user)
            if not ids:
                return
            work = await self._queue.add(connection, UNINDEX, user, {"ids": ids}, self._clock())
        await self._unindex(ids, [work])

    async def make_private(self, memory: Memory, user: str) -> None:
        """What a person told in places is theirs alone from now on: see `memory_removal.make_private`."""
        now = self._clock()
        async with self._database.write(lock=memory.owners | {user_key(user)}) as connection:
            ids = await memory_removal.make_private(connection, memory, user, now)
            await _forget_summaries(connection, user)
            work = [await self._queue.add(connection, UNINDEX, user, {"ids": ids}, now)] if ids else []
        await self._unindex(ids, work)

    async def _unindex(self, ids: Sequence[str], work: Sequence[str]) -> None:
        try:
            await self._index.remove(ids)
        except IndexUnavailable as error:
            log.warning("the index is cleaned later: %s", error)
        else:
            await self._queue.done(*work)


async def _forget_summaries(connection: AsyncConnection, user: str) -> None:
    """What was summed up of a person may tell of what is taken away now; a new summary is made in time."""
    theirs = (context_entries.c.user_id == user, context_entries.c.field == MEMORY_SUMMARY)
    await connection.execute(delete(context_entries).where(*theirs))
