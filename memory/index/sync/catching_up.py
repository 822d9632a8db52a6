"""Catches an index up for searches and in the background, and rebuilds one that does not fit its rows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index
from memory.index.sync.comparing import Comparison

log = logging.getLogger("hachi.index")

PATIENCE = 1.0
"""Seconds that a search waits for what earlier processes left."""
BUILDING = "the index is being built from the database"


class CatchingUp:
    def __init__(
        self,
        what: str,
        index: Index,
        catch_up: Callable[[], Awaitable[Any]],
        compare: Callable[[], Awaitable[Comparison]],
    ) -> None:
        """`catch_up` holds the `lock` while it works, and raises IndexUnavailable or EmbedderUnavailable."""
        self._what = what
        self._index = index
        self._catch_up = catch_up
        self._compare = compare
        self.lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.behind: str | None = None
        """Why rows wait for the index; None if nothing keeps them out."""

    async def attempt(self) -> None:
        """Catch up; if the index or the embedder is unavailable, log it once. The rows stay due."""
        try:
            await self._catch_up()
            if self.behind:
                log.info("%s is up to date again", self._what)
            self.behind = None
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.wait(error)

    async def begin(self) -> None:
        """Catch up before a search. What takes longer than `PATIENCE`, such as a rebuild, goes on in the
        background, and until it ends searches read the newest rows too."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self.attempt(), name=f"hachi: {self._what}")
            self._task.add_done_callback(self._failed)
        done, _ = await asyncio.wait({self._task}, timeout=PATIENCE)
        if not done:
            self.behind = self.behind or BUILDING

    async def check(self) -> None:
        """Compare the index with the rows. One that does not fit is emptied, and filled again in the
        background. Raises IndexUnavailable."""
        async with self.lock:
            unfit = await self.wipe_if_unfit()
        if unfit:
            await self.begin()

    async def wipe_if_unfit(self) -> bool:
        """Empty the index if it does not fit, also at a second look: another process may be changing rows."""
        if (await self._compare()).fits or (found := await self._compare()).fits:
            return False
        log.warning("%s does not fit the database (%s); it is rebuilt", self._what, found)
        await self._index.wipe()
        return True

    async def stop(self) -> None:
        """End what runs in the background. The rows that are left stay due."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wait(self, error: BaseException) -> None:
        if str(error) != self.behind:
            log.warning("%s waits, and searches read the newest rows of the database: %s", self._what, error)
        self.behind = str(error)

    def _failed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self.wait(error)
