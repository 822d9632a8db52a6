"""A reply that can be read while it is generated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from agent.errors import BadInput
from agent.types import Reply

TakeTurn = Callable[[Callable[[str], None]], Coroutine[Any, Any, Reply]]
"""Runs the turn and passes text to the callback as it is generated."""


class ReplyStream:
    """Iterate over it to get the reply's text; afterwards `reply` holds the whole Reply."""

    def __init__(self, take_turn: TakeTurn) -> None:
        self._take_turn = take_turn
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._turn: asyncio.Task[Reply] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[str]:
        if self._turn is not None:
            raise BadInput("a stream is read once; ask for another")
        self._turn = asyncio.create_task(self._take_turn(self._pieces.put_nowait))
        self._turn.add_done_callback(self._ended)
        return self._read(self._turn)

    def _ended(self, turn: "asyncio.Task[Reply]") -> None:
        if not turn.cancelled():
            turn.exception()  # retrieved, so that asyncio does not log the error when the reader left early
        self._pieces.put_nowait(None)

    async def _read(self, turn: "asyncio.Task[Reply]") -> AsyncIterator[str]:
        try:
            while (piece := await self._pieces.get()) is not None:
                yield piece
            await turn
        finally:
            await self.aclose()

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
