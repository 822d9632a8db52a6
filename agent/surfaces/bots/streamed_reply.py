"""Stream a reply into a platform's messages: when to edit, where to split, what to try again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.platform import Posts
from agent.surfaces.bots.splitting import close_code_block, split, utf16_length

log = logging.getLogger("hachi.bots")

ATTEMPTS = 4
"""How often to try to show what is final, beyond what the platform's library tries by itself. The wait
doubles after each attempt."""


class Gone(Exception):
    """Raised by `Posts` if somebody deleted the reply, or the bot may not write there. Nothing more of it is
    shown."""


class Closed(Exception):
    """Raised by `Posts` where a message may not be edited any more: it is replaced by another."""


class Refused(Exception):
    """Raised by `Posts` where the platform refuses for good what is to be shown: to try again cannot help."""


@dataclass(slots=True)
class _Part:
    handle: Any
    text: str


@dataclass(eq=False)
class Reply:
    """Shows a growing text at most once per interval, in its own task, so that a slow platform does not slow
    the turn down. Use it in an `async with` block."""

    posts: Posts
    stopped: Callable[[], None] = lambda: None
    """Called if the reply ended on the platform: somebody deleted it, or the bot may not write."""
    interval: float = 1.0
    noted: Callable[[Sequence[str]], Awaitable[None]] | None = None
    """Called with the ids of all messages of the reply when one is posted, or before one is deleted."""
    earlier: Sequence[str] = ()
    """The ids of messages in which the reply stands already; they are edited."""
    text: str = ""
    """What was added."""
    _gone: bool = False
    _rejected: bool = False
    """Whether the platform refused what was to be shown."""
    _parts: list[_Part] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._parts = [_Part(self.posts.handle(origin), "") for origin in self.earlier]

    @property
    def origins(self) -> list[str]:
        """The ids of the messages in which it stands."""
        return [self.posts.origin(part.handle) for part in self._parts]

    def abandon(self) -> None:
        """Show nothing more of it: somebody deleted one of its messages."""
        self._gone = True
        self.stopped()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="hachi reply")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def add(self, piece: str) -> None:
        self.text += piece
        if self.text.strip():
            self._changed.set()

    async def finish(
        self, text: str, receipts: Sequence[Item] = (), question: Answer | None = None, *, instead: str = ""
    ) -> bool:
        """Show the final text, and below it what was remembered and what is asked; `instead` of a text that
        the platform refuses, this one. Returns False if it could not be shown."""
        await self._end()
        self._rejected = False
        if not await self._patiently(partial(self._show, text, self.posts.footer(receipts), final=True)):
            return False
        if self._rejected and not await self._patiently(partial(self._show, instead, final=True)):
            return False
        steps: list[Callable[[], Awaitable[None]]] = [
            lambda: self.posts.conclude([part.handle for part in self._parts], receipts),
            *([partial(self._ask, question)] if question else []),
        ]
        for step in steps if self._parts else steps[1:]:
            if not await self._patiently(step):
                return False
        return True

    @property
    def refused(self) -> bool:
        """Whether the bot may not write there."""
        return self._gone and not self._parts

    async def withdraw(self) -> None:
        await self._end()
        self._gone = False
        while self._parts:
            await self._patiently(partial(self.posts.remove, self._parts.pop().handle))

    async def _end(self) -> None:
        self._ended.set()
        self._changed.set()
        await self._task

    async def _run(self) -> None:
        while not self._ended.is_set():
            await self._changed.wait()
            self._changed.clear()
            if not (self._ended.is_set() or self._rejected):
                await self._attempt(partial(self._show, self.text))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self.interval)

    async def _patiently(self, step: Callable[[], Awaitable[None]]) -> bool:
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(self.interval * 2 ** (attempt - 1))
            if await self._attempt(step):
                return True
        return False

    async def _attempt(self, step: Callable[[], Awaitable[None]]) -> bool:
        try:
            if not self._gone:
                await step()
        except Gone as error:
            log.info("a reply ends: %s", error.__cause__ or type(error).__name__)
            self._gone = True
            self.stopped()
        except Refused as error:
            log.error("the platform refuses a reply: %s", error.__cause__)
            self._rejected = True
        except Exception as error:
            log.warning("cannot show the reply: %s: %s", type(error).__name__, error)
            return False
        return True

    async def _ask(self, question: Answer) -> None:
        """Ask in a message that goes with the reply, where the platform shows it to others."""
        if (handle := await self.posts.ask(question)) is not None:
            self._parts.append(_Part(handle, ""))
            await self._note()

    async def _note(self) -> None:
        if self.noted:
            await self.noted(self.origins)

    async def _show(self, text: str, footer: str = "", *, final: bool = False) -> None:
        """Show this text. Only messages whose text changed are edited. Raises what the platform raises; the
        next call continues from there."""
        marked = self.posts.markup(text)
        texts = self._split(marked if final else close_code_block(marked), footer)
        for number, wanted in enumerate(texts):
            if number == len(self._parts):
                self._parts.append(_Part(await self.posts.post(wanted, final=final), wanted))
                await self._note()
            elif self._parts[number].text != wanted:
                await self._edit(self._parts[number], wanted, final)
        while len(self._parts) > max(1, len(texts)):
            extra = self._parts.pop()  # first, since the platform tells of the deletion
            try:
                await self._note()
                await self.posts.remove(extra.handle)
            except Exception:
                self._parts.append(extra)
                raise

    async def _edit(self, part: _Part, wanted: str, final: bool) -> None:
        try:
            await self.posts.edit(part.handle, wanted)
        except Closed:
            closed, part.handle = part.handle, await self.posts.post(wanted, final=final)
            await self._note()
            await self.posts.remove(closed)
        part.text = wanted

    def _split(self, text: str, footer: str) -> list[str]:
        """Split the text into messages, with the footer whole in the last if it fits."""
        *before, last = split(close_code_block(text) if footer else text, self.posts.limit) or [""]
        joined = "\n\n".join(filter(None, (last, footer)))
        if utf16_length(joined) <= self.posts.limit:
            return [*before, *filter(None, [joined])]
        return [*before, *filter(None, [last]), *split(footer, self.posts.limit)]
