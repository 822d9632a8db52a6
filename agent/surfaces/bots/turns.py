"""From what people write in a chat to what is answered there, whatever the platform.

Each conversation has one queue: its turns are taken one after the other, in order. What one person writes in
a burst is one turn.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from agent.surfaces.bots.editing import EVERY, LiveText
from agent.surfaces.bots.faults import told
from agent.surfaces.bots.receipts import Receipt, receipts_of
from memory.audience import Place

if TYPE_CHECKING:
    from agent.companion import Companion

log = logging.getLogger("hachi.bots")

GATHER = 0.7
"""Seconds that are waited for more of the same person."""
MOST_A_MINUTE = 20
"""Turns in one conversation; more is hardly people."""
MOST_WAITING = 50
"""Messages that wait in one conversation; what comes on top is not taken."""
GRACE = 5.0
"""Seconds that turns may still take when the bot stops."""
TOO_MANY = "That is more than I can keep up with here. Please give me a minute."


@dataclass(frozen=True, slots=True)
class Said:
    """Something that was written to the companion."""

    user: str
    """Who, by the name that is theirs alone: ``discord:1234``."""
    author: str
    """Who, as the others see them."""
    text: str
    place: Place
    conversation: str | None = None
    """Unset: the user's private conversation, or the place's."""
    bot: bool = False
    """Whether a machine wrote it: a bot, a webhook."""
    attached: Callable[[], Awaitable[str]] | None = None
    """Reads what is attached to it, once its turn has come; what it gives follows the text."""
    where: Any = None
    """What the platform needs to answer it."""

    @property
    def queue(self) -> str:
        if self.conversation is not None:
            return self.conversation
        return f"dm:{self.user}" if self.place.private else self.place.key


class Screen(Protocol):
    """Where one reply appears."""

    async def show(self, text: str) -> None:
        """The text so far, all of it. May raise what it likes."""

    async def end(self, text: str, receipts: Sequence[Receipt]) -> None:
        """The whole text, and what was remembered. May raise; it is called again then."""


class Stage(Protocol):
    """What a platform brings to a turn."""

    def busy(self, said: Said) -> AbstractAsyncContextManager[None]:
        """Shows that somebody is at it (typing, a status) for as long as the block lasts. Raises nothing."""

    def screen(self, said: Said) -> Screen:
        """Where the answer to it appears."""


@dataclass(slots=True)
class _Talk:
    """What goes on in a conversation."""

    waiting: deque[Said] = field(default_factory=deque)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    taken: deque[float] = field(default_factory=deque)
    """When turns were taken in the last minute."""
    warned: bool = False
    worker: "asyncio.Task[None] | None" = None


class Turns:
    def __init__(
        self,
        pet: "Companion",
        stage: Stage,
        *,
        gather: float = GATHER,
        every: float = EVERY,
        most: int = MOST_A_MINUTE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pet = pet
        self._stage = stage
        self._gather = gather
        self._every = every
        self._most = most
        self._sleep = sleep
        self._monotonic = monotonic
        self._talks: dict[str, _Talk] = {}
        self._stopped = False

    def hear(self, said: Said) -> bool:
        """Have it answered, in its turn. False where it will not be: machines are not answered, lest two of
        them talk for ever; nor is what comes faster than anybody reads, or once the bot stops."""
        if said.bot or self._stopped:
            return False
        talk = self._talks.setdefault(said.queue, _Talk())
        if len(talk.waiting) >= MOST_WAITING:
            return False
        talk.waiting.append(said)
        talk.came.set()
        if talk.worker is None or talk.worker.done():
            talk.worker = asyncio.create_task(self._work(talk), name=f"hachi turns {said.queue}")
        return True

    async def settle(self) -> None:
        """Until all that was heard has been answered."""
        while running := [t.worker for t in self._talks.values() if t.worker and not t.worker.done()]:
            await asyncio.wait(running)

    async def stop(self, grace: float = GRACE) -> None:
        """Hear no more; what was heard is answered within `grace` seconds, or not at all."""
        self._stopped = True
        running = [t.worker for t in self._talks.values() if t.worker and not t.worker.done()]
        if running:
            _, late = await asyncio.wait(running, timeout=grace)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, talk: _Talk) -> None:
        while talk.waiting:
            try:
                await self._next(talk)
            except Exception as error:
                log.exception("a turn is lost: %s", error)
        self._forget_quiet()

    async def _next(self, talk: _Talk) -> None:
        first = talk.waiting.popleft()
        if self._too_many(talk):
            if not talk.warned:
                talk.warned = True
                await self._stage.screen(first).end(TOO_MANY, ())
            return
        talk.warned = False
        talk.taken.append(self._monotonic())
        async with self._stage.busy(first):
            burst = await self._gathered(talk, first)
            texts = [await _whole(said) for said in burst]
            await self._take_turn(replace(burst[-1], text="\n".join(filter(None, texts))))

    def _too_many(self, talk: _Talk) -> bool:
        while talk.taken and talk.taken[0] <= self._monotonic() - 60:
            talk.taken.popleft()
        return len(talk.taken) >= self._most

    async def _gathered(self, talk: _Talk, first: Said) -> list[Said]:
        """With what the same person goes on to write, until they pause or somebody else speaks."""
        burst = [first]
        while True:
            while talk.waiting and talk.waiting[0].user == first.user:
                burst.append(talk.waiting.popleft())
            if talk.waiting or len(burst) >= MOST_WAITING or not await self._more(talk):
                return burst

    async def _more(self, talk: _Talk) -> bool:
        """Whether more came within the wait."""
        talk.came.clear()
        pause = asyncio.ensure_future(self._sleep(self._gather))
        came = asyncio.create_task(talk.came.wait())
        try:
            await asyncio.wait([pause, came], return_when=asyncio.FIRST_COMPLETED)
            return came.done()
        finally:
            for task in (pause, came):
                task.cancel()
            await asyncio.gather(pause, came, return_exceptions=True)

    async def _take_turn(self, said: Said) -> None:
        """A turn that fails is answered too."""
        screen = self._stage.screen(said)
        live = LiveText(screen.show, every=self._every, sleep=self._sleep, monotonic=self._monotonic)
        async with live:
            text, receipts = await self._answer(said, live)
            if not await live.end(lambda: screen.end(text, receipts)):
                log.error("a reply in %s could not be shown; it is in the transcript", said.queue)

    async def _answer(self, said: Said, live: LiveText) -> tuple[str, tuple[Receipt, ...]]:
        try:
            async with self._pet.stream(
                said.text,
                user=said.user,
                place=said.place,
                conversation=said.conversation,
                author=said.author,
                settle=True,
            ) as stream:
                async for piece in stream:
                    live.add(piece)
                reply = stream.reply
            return reply.message.strip() or "…", receipts_of(reply.memories)
        except Exception as error:
            return told(error), ()

    def _forget_quiet(self) -> None:
        """Conversations in which nothing has happened for a minute leave nothing behind."""
        now = self._monotonic()
        for name, talk in list(self._talks.items()):
            busy = talk.worker and not talk.worker.done() and talk.worker is not asyncio.current_task()
            if not busy and not talk.waiting and (not talk.taken or talk.taken[-1] <= now - 60):
                del self._talks[name]


async def _whole(said: Said) -> str:
    """With what is attached; a file that cannot be had does not keep the words from being answered."""
    if said.attached is None:
        return said.text
    try:
        return "\n\n".join(filter(None, (said.text, await said.attached())))
    except Exception as error:
        log.warning("what is attached cannot be read: %s: %s", type(error).__name__, error)
        return said.text
