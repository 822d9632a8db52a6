"""Runs a catch-up of an index for searches and in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from memory.errors import EmbedderUnavailable, IndexUnavailable

log = logging.getLogger("hachi.index")

PATIENCE = 2.0
"""Seconds that a search waits for what earlier processes left."""
BUILDING = "the index is being built from the database"


class CatchingUp:
    def __init__(self, catch_up: Callable[[], Awaitable[Any]], what: str) -> None:
        self._catch_up = catch_up
        self._what = what
        self._task: asyncio.Task[None] | None = None
        self.behind: str | None = None
        """Why rows wait for the index; None if nothing keeps them out."""

    async def attempt(self) -> None:
        """Catch up; if the index or the embedder is unavailable, log it once."""
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
