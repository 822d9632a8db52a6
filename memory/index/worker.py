"""Send pending rows to an index on a server, and embed rows if that is slow: see `todo`.

Another process may send an older state of a row just after a newer one. So rows are read again after they
were sent, until nothing has changed.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from memory.errors import IndexUnavailable
from memory.index import stored_vectors
from memory.index.embedders import Embedder, know_dimension
from memory.index.rows import IndexRow, Rows
from memory.index.server.index import ServerIndex
from memory.index.todo import Todo
from memory.process.pace import pause
from memory.sql.engine import Database

log = logging.getLogger("hachi.index")

Progress = Callable[[int], None]
"""A function that is called with the number of rows done since the last call."""


@dataclass(eq=False)
class IndexWorker:
    database: Database
    rows: Rows
    embedder: Embedder
    server: ServerIndex | None
    """None if rows are only embedded."""
    clock: Callable[[], datetime]
    _had: bool = False
    """Whether this process has used the index. A process that replaces it has another embedder."""
    _todo: Todo | None = None

    async def todo(self) -> Todo:
        """Raise IndexUnavailable or EmbedderUnavailable."""
        if self._todo is None:
            await know_dimension(self.embedder)
            name = await self.server.collection() if self.server else f"vectors of {self.embedder.name}"
            self._todo = Todo(self.database, name)
        return self._todo

    async def run(self, progress: Progress | None = None, *, anew: bool = False) -> int:
        """Index all pending rows; with `anew` fill the index again. Returns how many rows. Raises
        IndexUnavailable or EmbedderUnavailable."""
        todo = await self.todo()
        await self._agree(todo, anew=anew)
        while await todo.enter():
            await pause()
        total = 0
        while claim := await todo.claim():
            shown: list[IndexRow] | None = None
            while (index_rows := await self.rows.shown(claim.ids, self.clock())) != shown:
                shown = index_rows
                await self._put(index_rows, {id for some in claim.ids.values() for id in some})
            await todo.done(claim)
            total += (count := sum(map(len, claim.ids.values())))
            if progress:
                progress(count)
        return total

    async def _agree(self, todo: Todo, *, anew: bool) -> None:
        """Make sure that the index and the database have the same mark."""
        known = await todo.mark()
        if known is None and self._had and not anew:
            raise IndexUnavailable("the memory index is another process's now, which uses another embedder")
        there = await self.server.mark() if self.server else known
        if known and there == known and not anew:
            self._had = True
            return
        if new := await todo.begin(known, force=anew):
            if self.server:
                await self.server.begin(new)
            self._had = True
            log.info("the index is filled from the database")

    async def _put(self, index_rows: list[IndexRow], ids: Collection[str]) -> None:
        points, lacking = await stored_vectors.points(self.database, self.embedder, index_rows)
        if lacking:
            await stored_vectors.make(self.database, self.embedder, lacking)
            points, _ = await stored_vectors.points(self.database, self.embedder, index_rows)
        gone = sorted({*ids} - {point.id for point in points})
        if self.server:
            await self.server.put(points)
            await self.server.remove(gone)
        if gone:
            await stored_vectors.forget(self.database, gone)  # a row was deleted while it was embedded
