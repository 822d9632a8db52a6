"""Turns chat messages into replies, on any platform. The turns of a conversation run in order. Messages that
one person writes in a burst make one turn."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial

from agent.companion import Companion
from agent.surfaces.bots.answers import new_memories
from agent.surfaces.bots.attachments import read_attachments
from agent.surfaces.bots.errors import describe_error
from agent.surfaces.bots.live_text import EDIT_SECONDS, LiveText
from agent.surfaces.bots.platform import Content, IncomingMessage, Platform, ToForget
from memory.records import Decision

log = logging.getLogger("hachi.bots")

BURST_SECONDS = 0.7
"""How long a turn waits for further messages of the same person."""
TURNS_PER_MINUTE = 20
"""In one conversation. People hardly write more."""
MAX_WAITING = 50
"""Messages in one conversation. Further ones are dropped, and one of their authors is told."""
MAX_DELETED = 1_000
"""Deleted messages that are remembered, in case they still wait for their turn."""
MAX_TOLD = 1_000
"""People who are remembered as told that their turns of the day are spent."""
STOP_SECONDS, LAST_SECONDS = 5.0, 3.0
"""How long turns in progress may take when the bot stops, and those that are ended then to say so."""
STOPPED = "(stopped)"
"""Ends a reply that was not generated to its end."""
BUSY_TIMEOUT = 5.0
"""Seconds that showing a typing indicator or a status may take."""
TOO_MANY_TODAY = "That is as much as I may answer you in a day. I go on tomorrow (UTC)."
TOO_MANY = "That is more than I can keep up with here. Please give me a minute."


@dataclass(slots=True)
class _Conversation:
    waiting: deque[IncomingMessage] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    turns: deque[float] = field(default_factory=deque)
    """The start times of the turns in the last minute."""
    warned: bool = False
    dropped: IncomingMessage | None = None
    """The last message for which there was no room."""
    worker: "asyncio.Task[None] | None" = None


@dataclass(eq=False)
class Conversations:
    pet: Companion
    platform: Platform
    burst_seconds: float = BURST_SECONDS
    edit_seconds: float = EDIT_SECONDS
    turns_per_minute: int = TURNS_PER_MINUTE
    monotonic: Callable[[], float] = time.monotonic
    _conversations: dict[str, _Conversation] = field(default_factory=dict)
    _turns: dict[str, tuple[list[IncomingMessage], asyncio.Timeout]] = field(default_factory=dict)
    """Queue → the messages that are answered, and what ends their turn."""
    _deleted: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_DELETED))
    """The newest origins of messages that were deleted; some may wait for their turn."""
    _forgetting: set["asyncio.Task[None]"] = field(default_factory=set)
    _told: deque[tuple[str, date]] = field(default_factory=lambda: deque(maxlen=MAX_TOLD))
    """The people who were told that their turns of a day are spent."""
    _stopped: bool = False

    async def accept(self, message: IncomingMessage) -> None:
        """Queue a message unless it came before, to this process or another."""
        source, _, id = message.origin.partition(":")
        if await self.pet.conversations.deliveries.first(source, id, self.pet.clock()):
            self.add(message)

    def add(self, message: IncomingMessage) -> bool:
        """Queue a message. Returns False if too many wait or the bot is stopping."""
        conversation = self._conversations.setdefault(message.queue, _Conversation())
        if self._stopped or len(conversation.waiting) >= MAX_WAITING:
            conversation.dropped = message
            return False
        conversation.waiting.append(message)
        conversation.arrived.set()
        if conversation.worker is None or conversation.worker.done():
            work = self._work(conversation)
            conversation.worker = asyncio.create_task(work, name=f"hachi conversation {message.queue}")
        return True

    async def deleted(self, origin: str) -> None:
        """Forget a message that its author has deleted, whether it waits here or is stored. A stop waits for
        it: the platform does not tell of the deletion again."""
        self._deleted.append(origin)
        forgetting = asyncio.create_task(self._forget_sent(origin), name=f"hachi forgets {origin}")
        self._forgetting.add(forgetting)
        forgetting.add_done_callback(self._forgetting.discard)
        await asyncio.shield(forgetting)

    async def _forget_sent(self, origin: str) -> None:
        if receipt := await self.pet.conversations.forget_sent(origin):
            log.info("%s was deleted by its author: %d memories forgotten", origin, len(receipt.memories))

    async def settle(self) -> None:
        """Wait until all queued messages are answered, and deleted ones forgotten."""
        while running := self._running():
            await asyncio.wait(running)

    def interrupt(self, is_meant: Callable[[IncomingMessage], bool]) -> None:
        """End the turns that answer a message that is meant. What was generated stays, marked as stopped."""
        for burst, turn in self._turns.values():
            if any(map(is_meant, burst)) and not turn.expired():
                turn.reschedule(0)

    async def stop(self, grace: float = STOP_SECONDS) -> None:
        """Accept no more messages, and end the turns that take longer than `grace` seconds."""
        self._stopped = True
        for seconds in (grace, LAST_SECONDS):
            if running := self._running():
                await asyncio.wait(running, timeout=seconds)
            for conversation in self._conversations.values():
                conversation.waiting.clear()
            self.interrupt(lambda _: True)
        late = self._running()
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _running(self) -> "list[asyncio.Task[None]]":
        workers = [c.worker for c in self._conversations.values() if c.worker and not c.worker.done()]
        return [*workers, *self._forgetting]

    async def _work(self, conversation: _Conversation) -> None:
        while conversation.waiting:
            try:
                await self._next_turn(conversation)
                if dropped := conversation.dropped:
                    conversation.dropped = None
                    await self.platform.reply_to(dropped).finish(TOO_MANY)
            except Exception as error:
                log.exception("a turn is lost: %s", error)
        self._drop_idle()

    async def _next_turn(self, conversation: _Conversation) -> None:
        first = conversation.waiting.popleft()
        if self._too_many(conversation):
            if not conversation.warned:
                conversation.warned = True
                await self.platform.reply_to(first).finish(TOO_MANY)
            return
        if await self._spent(first.user):
            if (told := (first.user, self.pet.clock().date())) not in self._told:
                self._told.append(told)
                await self.platform.reply_to(first).finish(TOO_MANY_TODAY)
            return
        conversation.warned = False
        conversation.turns.append(self.monotonic())
        async with self._busy(first):
            await self._answer(await self._burst(conversation, first))

    def _too_many(self, conversation: _Conversation) -> bool:
        while conversation.turns and conversation.turns[0] <= self.monotonic() - 60:
            conversation.turns.popleft()
        return len(conversation.turns) >= self.turns_per_minute

    async def _spent(self, user: str) -> bool:
        """Return whether the person has had all turns of today."""
        most, now = self.pet.settings.bot_daily_turns, self.pet.clock()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return bool(most) and await self.pet.conversations.written_since(midnight, user=user) >= most

    async def _burst(self, conversation: _Conversation, first: IncomingMessage) -> list[IncomingMessage]:
        """Return the message and those that the same person adds before a pause."""
        burst, waiting = [first], conversation.waiting
        while True:
            while waiting and waiting[0].user == first.user:
                burst.append(waiting.popleft())
            conversation.arrived.clear()
            if waiting or len(burst) >= MAX_WAITING:
                return burst
            try:
                await asyncio.wait_for(conversation.arrived.wait(), self.burst_seconds)
            except TimeoutError:
                return burst

    @asynccontextmanager
    async def _busy(self, message: IncomingMessage) -> AsyncIterator[None]:
        showing = asyncio.create_task(self._show_busy(message), name="hachi busy")
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            with suppress(Exception):
                async with asyncio.timeout(BUSY_TIMEOUT):
                    await self.platform.set_busy(message, False)

    async def _show_busy(self, message: IncomingMessage) -> None:
        while True:
            try:
                async with asyncio.timeout(BUSY_TIMEOUT):
                    await self.platform.set_busy(message, True)
            except Exception as error:
                log.info("cannot show a typing indicator: %s", error)
            await asyncio.sleep(self.platform.busy_seconds)

    async def _answer(self, burst: list[IncomingMessage]) -> None:
        burst = [message for message in burst if message.origin not in self._deleted]
        if not burst:
            return
        message = burst[-1]
        view = self.platform.reply_to(message)
        stopped = partial(self.interrupt, lambda meant: meant is message)
        async with LiveText(view.show, stopped, interval=self.edit_seconds) as live:
            final = await self._run_turn(burst, live)
            if final and not await live.finish(lambda: view.finish(*final)):
                log.error("a reply in %s could not be shown; the transcript has it", message.queue)
        for part in burst:  # stored after it was deleted
            if part.origin in self._deleted:
                await self._forget_sent(part.origin)

    async def _run_turn(
        self, burst: list[IncomingMessage], live: LiveText
    ) -> tuple[str, list[Decision], ToForget] | None:
        """Return the arguments of `ReplyView.finish`; None if the messages were deleted while they were read.
        If the turn fails or is interrupted, the text says so."""
        message, ended = burst[-1], asyncio.timeout(None)
        try:
            async with ended:
                self._turns[message.queue] = burst, ended
                return await self._reply(burst, live)
        except Exception as error:
            if ended.expired():
                return f"{live.text}\n\n{STOPPED}".strip(), [], None
            return describe_error(error), [], None
        finally:
            del self._turns[message.queue]

    async def _reply(
        self, burst: list[IncomingMessage], live: LiveText
    ) -> tuple[str, list[Decision], ToForget] | None:
        """Run the turn, with those of the messages that were not deleted."""
        message = burst[-1]
        contents = [await self.platform.read(part) for part in burst]
        texts = [await _with_attachments(content) for content in contents]
        left = [at for at, part in enumerate(burst) if part.origin not in self._deleted]
        if not left:
            return None
        if contents[-1].zone:
            await self.pet.people.note_zone(contents[-1].zone, user=message.user)
        async with self.pet.stream(
            "\n".join(filter(None, [texts[at] for at in left])),
            user=message.user,
            place=message.place,
            conversation=message.conversation,
            author=contents[-1].author,
            origins=[burst[at].origin for at in left if burst[at].origin],
            settle=True,
        ) as stream:
            async for piece in stream:
                live.add(piece)
            reply = stream.reply
        return reply.message.strip() or "…", new_memories(reply.memories), reply.forget

    def _drop_idle(self) -> None:
        """Forget conversations without a turn in the last minute."""
        now = self.monotonic()
        busy = {worker for worker in self._running() if worker is not asyncio.current_task()}
        for name, known in list(self._conversations.items()):
            idle = not known.turns or known.turns[-1] <= now - 60
            if idle and not known.waiting and known.worker not in busy:
                del self._conversations[name]


async def _with_attachments(content: Content) -> str:
    return "\n\n".join(filter(None, (content.text, await read_attachments(content.attachments))))
