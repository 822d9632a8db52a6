"""The queue of those who write, inside one process, for SQLite's only writer."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager


class Writers:
    """A lock that goes to those who wait in the order in which they came.

    Most transactions on SQLite never wait for anything, so they begin and end in one step of the event loop.
    Therefore all who wait are woken together, and many write in one round of the loop, where `asyncio.Lock`
    lets one write in each. Who finds the lock taken keeps their place.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Event] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the lock, and hold it until the block ends or calls what this yields."""
        await self._take()
        with ExitStack() as held:
            held.callback(self._release)
            yield held.close

    async def _take(self) -> None:
        if self._taken or self._waiting:
            turn = asyncio.Event()
            self._waiting.append(turn)
            try:
                await turn.wait()
                while self._taken:
                    turn.clear()
                    await turn.wait()
            except asyncio.CancelledError:
                self._waiting.remove(turn)
                self._wake()
                raise
            self._waiting.remove(turn)
        self._taken = True

    def _release(self) -> None:
        self._taken = False
        self._wake()

    def _wake(self) -> None:
        if not self._taken:
            for turn in self._waiting:
                turn.set()
