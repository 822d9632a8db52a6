"""Puts the points of rows in an index as the rows are now, and removes those of rows that are gone."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from memory.index import Index, vectors
from memory.index.embedders import Embedder
from memory.index.rows import Ids, Rows
from memory.sql.engine import Database


@dataclass(frozen=True, eq=False)
class RowPutter:
    database: Database
    rows: Rows
    index: Index
    embedder: Embedder
    clock: Callable[[], datetime]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Who has it reads rows and puts them, or an older state of a row could be put last."""

    async def put_with_vectors(self, ids: Ids) -> bool:
        """Put these rows. What must be embedded first is found by its words until then. Returns whether
        something had to be."""
        lacking = await self.put(ids)
        if lacking:
            await vectors.make(self.database, self.embedder, lacking)
            await self.put(ids)
        return bool(lacking)

    async def put(self, ids: Ids) -> vectors.Texts:
        """Put the points of these rows as they are now, and remove those of rows that are gone or that nobody
        may read. Returns the texts whose vectors are lacking."""
        async with self.lock:
            return await self.put_locked(ids)

    async def put_locked(self, ids: Ids) -> vectors.Texts:
        """Do so for a caller that has the lock."""
        drafts = await self.rows.shown(ids, self.clock())
        points, lacking = await vectors.points(self.database, self.embedder, drafts)
        await self.index.put(points)
        gone = {id for some in ids.values() for id in some} - {point.id for point in points}
        await self.index.remove(sorted(gone))
        if gone:
            await vectors.forget(self.database, sorted(gone))  # one was deleted while it was embedded
        return lacking
