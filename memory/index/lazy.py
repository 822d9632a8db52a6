"""An index that is opened on first use. If that fails, a later call tries again.

Listing, exporting and deleting never open the index, because another process may hold it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from memory.errors import IndexUnavailable
from memory.index import Index, Point, Question, Rankings

RETRY_AFTER = 5.0
"""Seconds after a failed attempt in which opening is not retried."""


class LazyIndex:
    """Forwards every call to the index that `opener(rebuild)` opens; with `rebuild` the opener deletes an
    existing index. Raises IndexUnavailable if it cannot be opened."""

    def __init__(self, opener: Callable[[bool], Awaitable[Index]]) -> None:
        self._opener = opener
        self._index: Index | None = None
        self._lock = asyncio.Lock()
        self._error: IndexUnavailable | None = None
        self._failed_at = 0.0

    async def opened(self) -> Index:
        async with self._lock:
            if self._index is None:
                if self._error is not None and time.monotonic() - self._failed_at < RETRY_AFTER:
                    raise self._error.with_traceback(None)
                try:
                    self._index = await self._opener(False)
                except IndexUnavailable as error:
                    self._error, self._failed_at = error, time.monotonic()
                    raise
            return self._index

    async def put(self, points: Sequence[Point]) -> None:
        await (await self.opened()).put(points)

    async def remove(self, ids: Sequence[str]) -> None:
        await (await self.opened()).remove(ids)

    async def search(self, question: Question) -> Rankings:
        return await (await self.opened()).search(question)

    async def count(self) -> int:
        return await (await self.opened()).count()

    async def present(self, ids: Sequence[str]) -> set[str]:
        return await (await self.opened()).present(ids)

    async def refresh(self) -> str:
        return await (await self.opened()).refresh()

    async def optimise(self) -> None:
        await (await self.opened()).optimise()

    async def wipe(self) -> None:
        """Empty the index, even if it is damaged and cannot be opened."""
        with suppress(IndexUnavailable):
            await (await self.opened()).wipe()
            return
        async with self._lock:
            with suppress(IndexUnavailable):
                await self.close()  # an open index would lock the folder
            self._index = await self._opener(True)

    async def close(self) -> None:
        """Close the index. May be called twice. A later call opens it again."""
        index, self._index, self._error = self._index, None, None
        if index is not None:
            await index.close()
