"""A reply that can be read while it is generated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from agent.errors import BadInput
from agent.types import Reply, StreamEvent, TextWritten, TurnDone

OnEvent = Callable[[StreamEvent], None]
TakeTurn = Callable[[OnEvent], Coroutine[Any, Any, Reply]]
"""Runs the turn, and calls the callback with each event and with text as it is generated."""


class ReplyStream:
    """Iterate over it to get the reply's text, or over its `events`; afterwards `reply` holds the Reply."""

    def __init__(self, take_turn: TakeTurn) -> None:
        self._take_turn = take_turn
        self._events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        self._turn: asyncio.Task[Reply] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            async for event in self.events():
                if isinstance(event, TextWritten):
                    yield event.text
        finally:
            await self.aclose()

    async def events(self) -> AsyncIterator[StreamEvent]:
        """Yield text, tools and decisions on memories, in order; TurnDone is last. The turn begins when the
        first event is requested."""
        if self._turn is not None:
            raise BadInput("a stream is read once; ask for another")
        self._turn = turn = asyncio.create_task(self._take_turn(self._events.put_nowait))
        turn.add_done_callback(self._ended)
        try:
            while (event := await self._events.get()) is not None:
                yield event
            yield TurnDone(await turn)
        finally:
            await self.aclose()

    def _ended(self, turn: "asyncio.Task[Reply]") -> None:
        if not turn.cancelled():
            turn.exception()  # read, so that asyncio does not log the error if the reader left early
        self._events.put_nowait(None)

    @property
    def reply(self) -> Reply:
        """The Reply, once the stream has ended. Raises the turn's error, and BadInput before the end."""
        if self._turn is None or not self._turn.done() or self._turn.cancelled():
            raise BadInput("the reply is there once its stream has been read to the end")
        return self._turn.result()

    async def aclose(self) -> None:
        """Cancel the turn if it is still running."""
        if self._turn is not None and not self._turn.done():
            self._turn.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)
