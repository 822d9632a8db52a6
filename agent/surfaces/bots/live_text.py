"""Shows a reply while it is generated: edits at a steady rate, in as many messages as needed."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from agent.surfaces.bots.splitting import split, utf16_length

log = logging.getLogger("hachi.bots")

EDIT_SECONDS = 1.0
"""Seconds between two edits."""
ATTEMPTS = 4
"""How often to try to show the final text. The wait doubles after each attempt."""


class Stopped(Exception):
    """Raised by `show` if a person stopped the reply on the platform."""


class NotNow(Exception):
    """Raised by `show` if the platform takes no edit at present. The newest text is shown later."""


Handle = TypeVar("Handle")
"""The platform's handle of a message."""


@dataclass
class LiveText:
    """Shows a growing text at most once per interval, in its own task, so that a slow platform does not slow
    the turn down. Use it in an `async with` block."""

    show: Callable[[str], Awaitable[None]]
    """Receives the whole text so far. Its errors are logged."""
    stopped: Callable[[], None] = lambda: None
    """Called if the reply was stopped on the platform."""
    interval: float = EDIT_SECONDS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic
    text: str = ""
    """What was added."""
    _final: Callable[[], Awaitable[None]] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _last_attempt: float = float("-inf")

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="hachi live text")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def add(self, piece: str) -> None:
        self.text += piece
        if self.text.strip():
            self._changed.set()

    async def finish(self, show: Callable[[], Awaitable[None]]) -> bool:
        """Call `show` for the final text, up to `ATTEMPTS` times. Returns False if every attempt failed."""
        self._final = show
        self._changed.set()
        return await self._task

    async def _run(self) -> bool:
        while True:
            await self._changed.wait()
            if (left := self._last_attempt + self.interval - self.monotonic()) > 0:
                await self.sleep(left)
            self._changed.clear()
            if self._final is not None:
                return await self._show_final(self._final)
            await self._attempt(lambda: self.show(self.text))

    async def _show_final(self, show: Callable[[], Awaitable[None]]) -> bool:
        for attempt in range(ATTEMPTS):
            if attempt:
                await self.sleep(self.interval * 2 ** (attempt - 1))
            if await self._attempt(show):
                return True
        return False

    async def _attempt(self, show: Callable[[], Awaitable[None]]) -> bool:
        self._last_attempt = self.monotonic()
        try:
            await show()
        except NotNow:
            self._changed.set()
            return False
        except Stopped:
            self.stopped()
            return False
        except Exception as error:
            log.warning("cannot show the reply: %s: %s", type(error).__name__, error)
            return False
        return True


class MessageGone(Exception):
    """Somebody deleted the message."""


@dataclass(slots=True)
class _Part(Generic[Handle]):
    handle: Handle
    text: str


@dataclass(slots=True)
class PostedText(Generic[Handle]):
    """A changing text in one or more messages. Only messages whose text changed are edited."""

    limit: int
    """The maximum length of a message in UTF-16 code units."""
    post: Callable[[str], Awaitable[Handle]]
    edit: Callable[[Handle, str], Awaitable[None]]
    remove: Callable[[Handle], Awaitable[None]]
    gone: type[Exception] = MessageGone
    """Raised by `edit` and `remove` if somebody deleted the message."""
    _parts: list[_Part[Handle]] = field(default_factory=list)

    @property
    def handles(self) -> list[Handle]:
        return [part.handle for part in self._parts]

    async def show(self, text: str, footer: str = "") -> None:
        """Show this text. The footer is not split if one message can hold it. Raises what the platform
        raises; the next call continues from there."""
        texts = self._split(text, footer)
        for number, wanted in enumerate(texts):
            if number == len(self._parts):
                self._parts.append(_Part(await self.post(wanted), wanted))
            elif self._parts[number].text != wanted:
                await self._change(self._parts[number], wanted)
        while len(self._parts) > max(1, len(texts)):
            with suppress(self.gone):
                await self.remove(self._parts[-1].handle)
            self._parts.pop()

    def _split(self, text: str, footer: str) -> list[str]:
        *before, last = split(text, self.limit) or [""]
        joined = "\n\n".join(filter(None, (last, footer)))
        if utf16_length(joined) <= self.limit:
            return [*before, *filter(None, [joined])]
        return [*before, *filter(None, [last]), *split(footer, self.limit)]

    async def _change(self, part: _Part[Handle], text: str) -> None:
        try:
            await self.edit(part.handle, text)
        except self.gone:
            part.handle = await self.post(text)
        part.text = text
