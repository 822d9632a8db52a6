"""Search the index and keep it up to date. The rest of Hachi calls this module.

Without a server the index is in this process (`engine`) and reads changes before each search. With a server,
that is searched, and pending rows are scored here. While the server is unavailable or being filled, all rows
are scored here.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from memory.errors import EmbedderUnavailable, IndexUnavailable, StoreUnavailable
from memory.index import LANES, Question, Rankings, stored_vectors
from memory.index.embedders import Embedder
from memory.index.engine import Engine, keys_of
from memory.index.scoring import best
from memory.index.server.index import ServerIndex
from memory.index.todo import forget
from memory.index.worker import IndexWorker, Progress
from memory.sql import changes
from memory.sql.engine import Database

log = logging.getLogger("hachi.index")

PAUSE = 0.5
"""Seconds in which changes are collected."""
PATIENCE = 1.0
"""Seconds that `stop` waits for running work."""


class Indexing:
    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        clock: Callable[[], datetime],
        memory: int,
        server: ServerIndex | None = None,
    ) -> None:
        """`memory` is the most bytes that the index in this process may use."""
        self.server = server
        self.engine = Engine(database, embedder, memory)
        self.behind: str | None = None
        """Why the index is unavailable or behind; None if it is up to date."""
        self._database = database
        self._clock = clock
        works = server is not None or embedder.name not in stored_vectors.QUICK
        self._worker = IndexWorker(database, self.engine.rows, embedder, server, clock) if works else None
        self._lock = asyncio.Lock()
        self._woken = False
        self._task: asyncio.Task[None] | None = None

    async def search(self, question: Question, *further: Question, fresh: bool = True) -> Rankings:
        """Search for all questions, which must have the same text and vector; `further` ones add hits beyond
        the first one's limit. Unless `fresh`, the caller must read the changes after `Rankings.since`."""
        if self.server and self._worker and keys_of(question):
            try:
                if found := await self._search_server(self.server, self._worker, question, *further):
                    return found
                self.wake()
            except (IndexUnavailable, EmbedderUnavailable) as error:
                self.note_unavailable(error)
        return await self.engine.search(question, *further, fresh=fresh)

    async def _search_server(
        self, server: ServerIndex, worker: IndexWorker, *questions: Question
    ) -> Rankings | None:
        """Search the server and the pending rows. None if the server is not in the database's state."""
        rows, now = self.engine.rows, questions[0].now
        since = (await changes.now(self._database)).moment
        restored = await rows.replaced_by_expired(questions[0].audience, now)
        state = await (await worker.todo()).state(keys_of(questions[0]))
        if state is None or state.pending is None:
            return None
        mark, found = await server.search(*questions)
        if mark != state.mark:
            return None
        pending = {**state.pending, "memory": restored.union(state.pending.get("memory", ()))}
        index_rows = await rows.shown(pending, now)
        ranked = await self.engine.rank_rows(index_rows, *questions) if index_rows else Rankings()
        ids = {id for some in pending.values() for id in some}
        lanes: dict[str, Any] = {
            name: best([*getattr(ranked, name), *(hit for hit in getattr(found, name) if hit.id not in ids)])
            for name in LANES
        }
        return Rankings(**lanes, since=since)

    def wake(self) -> None:
        """Send changes to the server in the background, after `PAUSE`."""
        if self._worker:
            self._woken = True
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run(), name="hachi index")

    async def catch_up(self, progress: Progress | None = None, *, anew: bool = False) -> int:
        """Index the pending rows; with `anew` fill the index again. Returns how many rows. Raises
        IndexUnavailable or EmbedderUnavailable."""
        if anew:
            self.engine.clear()
        if not self._worker:
            return 0
        async with self._lock:
            self._woken = False  # this run covers all calls of `wake` so far
            total = await self._worker.run(progress, anew=anew)
        if self.behind:
            log.info("the index is up to date again")
        self.behind = None
        return total

    async def try_to_catch_up(self) -> None:
        """Catch up; if the index or the embedder is unavailable, log it once."""
        try:
            await self.catch_up()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.note_unavailable(error)

    def note_unavailable(self, error: BaseException) -> None:
        """Store and log why rows stay pending."""
        if self.behind is None:
            log.warning("the index waits, and searches go without it: %s", error)
        self.behind = str(error)

    async def pending(self) -> int:
        """Return how many rows are pending. Raises IndexUnavailable or EmbedderUnavailable."""
        return await (await self._worker.todo()).count() if self._worker else 0

    async def rows(self) -> int:
        """Return how many rows a complete index has."""
        return await self.engine.rows.count(self._clock())

    async def erase(self, ids: Collection[str]) -> int:
        """Remove deleted rows now. Returns how many the server still has. Raises IndexUnavailable or
        EmbedderUnavailable."""
        self.engine.clear()
        if not self.server:
            return 0
        await self.server.remove(sorted(ids))
        return len(await self.server.present(sorted(ids)))

    async def tidy(self) -> None:
        """Shorten the log of changes. If no server is used any more, stop logging changes for one."""
        await changes.cut(self._database)
        if not self._worker:
            await forget(self._database)

    async def stop(self) -> None:
        """Stop the background work, after at most `PATIENCE`. Unfinished rows stay pending."""
        if self._task is not None:
            if not self.behind:
                await asyncio.wait({self._task}, timeout=PATIENCE)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.server:
            await self.server.close()

    async def _run(self) -> None:
        while self._woken:
            await asyncio.sleep(PAUSE)
            try:
                await self.try_to_catch_up()
            except Exception as error:
                if not isinstance(error, StoreUnavailable):
                    log.exception("the index could not be brought up to date")
                self.note_unavailable(error)
                self._woken = False
