"""Send a local server only as many requests at once as it has slots; people go first.

Otherwise requests queue inside the server, where each looks like a model that does not answer.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

LONGEST_WAIT = 600.0
"""Seconds that consolidation waits for people's requests. Then it is as urgent as theirs."""


class Slots:
    """The slots of one server, shared by all models that ask it."""

    def __init__(self, number: int) -> None:
        self._number = self._free = number
        self._people: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    def become(self, number: int) -> None:
        """Change the number of slots to the one that the server reports."""
        self._free += number - self._number
        self._number = number
        self._wake()

    @asynccontextmanager
    async def slot(self, *, for_people: bool) -> AsyncIterator[None]:
        """Wait for a slot, and occupy it during the block."""
        await self._take(for_people)
        try:
            yield
        finally:
            self._free += 1
            self._wake()

    async def _take(self, for_people: bool) -> None:
        turn = asyncio.get_running_loop().create_future()
        (self._people if for_people else self._others).append(turn)
        self._wake()
        try:
            if not for_people:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(turn), LONGEST_WAIT)
            if not turn.done():
                if turn in self._others:
                    self._others.remove(turn)
                    self._people.append(turn)
                await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was already assigned
                self._free += 1
            turn.cancel()
            self._wake()
            raise

    def _wake(self) -> None:
        for waiting in (self._people, self._others):
            while self._free > 0 and waiting:
                turn = waiting.popleft()
                if not turn.done():
                    self._free -= 1
                    turn.set_result(None)
