"""A reply that can be read while it is generated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, Self

from agent.errors import BadInput, ModelError
from agent.types import Reply
from agent.types.events import StreamEvent, TextWritten, TurnDone

OnText = Callable[[str], None]
OnEvent = Callable[[StreamEvent], None]
TakeTurn = Callable[[OnEvent], Coroutine[Any, Any, Reply]]
"""Runs the turn and tells the callback of what happens, and of text as it is generated."""


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
        """Text, tools and what is remembered, in order; the last one is TurnDone. The turn begins with the
        first that is asked for."""
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
            turn.exception()  # retrieved, so that asyncio does not log the error when the reader left early
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


class Extract(Protocol):
    """Reads the answer's text out of what the model writes."""

    shown: str
    """The text returned so far."""

    def feed(self, text: str) -> str: ...


class ShownText:
    """Shows the text of the answer as the model writes it, and at the end what was held back as uncertain.

    Only the text of the last model call is the answer, and only its end shows that a call was the last. So
    text that an earlier call wrote beside its tool calls is shown too, on lines of its own.
    """

    def __init__(self, on_text: OnText, extract: Callable[[], Extract], *, one_object: bool = False) -> None:
        """`extract` begins with a model call. An answer that is `one_object` has no text before it."""
        self._on_text, self._extract, self._one_object = on_text, extract, one_object
        self._new_line = ""
        self._call = extract()

    @property
    def text(self) -> str:
        """What was shown of the present model call."""
        return self._call.shown

    def feed(self, written: str) -> None:
        self._show(self._call.feed(written))

    def call_tools(self) -> None:
        """Begin with the text of the next model call."""
        if self._one_object and self.text:
            raise ModelError("the model called a tool after its answer in the form of response_format")
        self._new_line = "\n" if self.text else self._new_line
        self._call = self._extract()

    def end(self, message: str) -> None:
        """Show what is left of the answer; all of it, below, if what was shown is not the answer."""
        if not message.startswith(self.text):
            self._call, self._new_line = self._extract(), "\n"
        self._show(message[len(self.text) :])

    def _show(self, text: str) -> None:
        if text:
            self._on_text(self._new_line + text)
            self._new_line = ""
