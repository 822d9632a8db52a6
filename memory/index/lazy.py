"""An index that is opened when it is first needed, and again later where that failed.

Listing, exporting and deleting need no index, so they open none: another process may be holding it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from memory.errors import IndexUnavailable
from memory.index import Index, Point, Question, Rankings

AGAIN_AFTER = 5.0
"""Seconds in which a failed opening is not tried again."""


class LazyIndex:
    """Passes everything on to the index that `opener(anew)` opens, where `anew` asks it to throw away what it
    finds. Raises IndexUnavailable where it cannot."""

    def __init__(self, opener: Callable[[bool], Awaitable[Index]]) -> None:
        self._opener = opener
        self._index: Index | None = None
        self._lock = asyncio.Lock()
        self._fault: IndexUnavailable | None = None
        self._failed_at = 0.0

    async def opened(self) -> Index:
        async with self._lock:
            if self._index is None:
                if self._fault is not None and time.monotonic() - self._failed_at < AGAIN_AFTER:
                    raise self._fault.with_traceback(None)
                try:
                    self._index = await self._opener(False)
                except IndexUnavailable as error:
                    self._fault, self._failed_at = error, time.monotonic()
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
        """Begins anew, even where what is there is damaged and cannot be opened."""
        with suppress(IndexUnavailable):
            await (await self.opened()).wipe()
            return
        async with self._lock:
            with suppress(IndexUnavailable):
                await self.close()  # or it would be in its own way
            self._index = await self._opener(True)

    async def close(self) -> None:
        """May be called twice; what is asked of it later opens it again."""
        index, self._index, self._fault = self._index, None, None
        if index is not None:
            await index.close()
