"""A model behind a breaker and a timeout, so that nobody waits for a silent server, and behind the slots of a
local one."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from agents import ModelResponse
from agents.exceptions import ModelTimeoutError
from agents.models.interface import Model

from agent.errors import ModelUnavailable
from agent.models.failures import ExplainedFailure
from memory.process.breaker import Breaker, CircuitOpen

LONGEST_WAIT = 600.0
"""Seconds that consolidation waits for people's requests. Then it is as urgent as theirs."""


@dataclass(eq=False)
class BreakerModel(Model):
    inner: Model
    breaker: Breaker
    blame: Callable[[Exception], str | None]
    """See `Breaker.calling`."""
    timeout: float | None = None
    """Seconds for a whole answer, or for a stream until its first event and between any two."""
    slot: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Occupies a slot of the server. Waiting for it does not count as waiting for the answer."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async with self.slot():
            answer: ModelResponse = await self._through_breaker(
                lambda: self.inner.get_response(*args, **kwargs)
            )
        return answer

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the events. For the breaker, the first event counts as success."""
        events = self.inner.stream_response(*args, **kwargs)
        async with self.slot():
            try:
                event = await self._through_breaker(lambda: anext(events, None))
                while event is not None:
                    yield event
                    event = await self._in_time(anext(events, None))
            finally:
                if isinstance(events, AsyncGenerator):  # release the connection, even if nobody reads on
                    await events.aclose()

    async def _through_breaker(self, call: Callable[[], Any]) -> Any:
        try:
            with self.breaker.calling(self.blame):
                return await self._in_time(call())
        except CircuitOpen as error:
            failure = ExplainedFailure(str(error))
            failure.error = ModelUnavailable(str(error))
            failure.error.retry_after = error.seconds
            raise failure from error

    async def _in_time(self, answer: Any) -> Any:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await answer
        except TimeoutError:
            if not limit.expired():
                raise
        raise ModelTimeoutError(self.timeout or 0.0)


class Slots:
    """The slots of one server, shared by all models that ask it. People go first.

    A request that waits for a slot waits here: inside the server it would look like a model that does not
    answer.
    """

    def __init__(self, number: int) -> None:
        self._number = self._free = number
        self._people: deque[asyncio.Future[None]] = deque()
        self._consolidations: deque[asyncio.Future[None]] = deque()

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
        (self._people if for_people else self._consolidations).append(turn)
        self._wake()
        try:
            if not for_people:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(turn), LONGEST_WAIT)
            if not turn.done():
                if turn in self._consolidations:
                    self._consolidations.remove(turn)
                    self._people.append(turn)
                await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was already assigned
                self._free += 1
            turn.cancel()
            self._wake()
            raise

    def _wake(self) -> None:
        for waiting in (self._people, self._consolidations):
            while self._free > 0 and waiting:
                turn = waiting.popleft()
                if not turn.done():
                    self._free -= 1
                    turn.set_result(None)
