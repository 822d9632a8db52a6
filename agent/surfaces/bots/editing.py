"""A reply that is shown while it is generated: the newest text, at most once a second."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

log = logging.getLogger("hachi.bots")

EVERY = 1.0
"""Seconds from one edit to the next."""
TRIES = 4
"""How often the final text is tried to be shown, each time after twice the wait."""


class LiveText:
    """In a task of its own, so that a slow platform does not slow down the turn:

    async with LiveText(show) as live:
        live.add("Hel")
        live.add("lo")
        await live.end(show_all_of_it)
    """

    def __init__(
        self,
        show: Callable[[str], Awaitable[None]],
        *,
        every: float = EVERY,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`show` is given the whole text so far. What it raises is logged; the next call may go well."""
        self._show = show
        self._every = every
        self._sleep = sleep
        self._monotonic = monotonic
        self._text = ""
        self._final: Callable[[], Awaitable[None]] | None = None
        self._news = asyncio.Event()
        self._began: float | None = None
        self._showing: asyncio.Task[bool] | None = None

    async def __aenter__(self) -> Self:
        self._showing = asyncio.create_task(self._run(), name="hachi live text")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._showing is not None:
            self._showing.cancel()
            await asyncio.gather(self._showing, return_exceptions=True)

    def add(self, piece: str) -> None:
        """More of the text."""
        self._text += piece
        if self._text.strip():
            self._news.set()

    async def end(self, show: Callable[[], Awaitable[None]]) -> bool:
        """Show the final text, by `show`, and no other after it. It is tried `TRIES` times; False where it
        could not be shown."""
        assert self._showing is not None, "use it in an `async with` block"
        self._final = show
        self._news.set()
        return await self._showing

    async def _run(self) -> bool:
        while True:
            await self._news.wait()
            await self._pause()
            self._news.clear()
            if self._final is not None:
                return await self._end(self._final)
            await self._tried(lambda: self._show(self._text))

    async def _pause(self) -> None:
        if self._began is not None:
            left = self._began + self._every - self._monotonic()
            if left > 0:
                await self._sleep(left)

    async def _end(self, show: Callable[[], Awaitable[None]]) -> bool:
        for attempt in range(TRIES):
            if attempt:
                await self._sleep(self._every * 2 ** (attempt - 1))
            if await self._tried(show):
                return True
        return False

    async def _tried(self, show: Callable[[], Awaitable[None]]) -> bool:
        self._began = self._monotonic()
        try:
            await show()
        except Exception as error:
            log.warning("the reply is not shown: %s: %s", type(error).__name__, error)
            return False
        return True
