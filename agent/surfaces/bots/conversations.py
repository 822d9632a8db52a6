"""Turns chat messages into replies, on any platform. The turns of a conversation run in order. Messages that
one person writes in a burst make one turn."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial

from agent.companion import Companion
from agent.surfaces.bots.answers import Answer, Item, forget_question, new_memories, receipt_item
from agent.surfaces.bots.attachments import read_attachments
from agent.surfaces.bots.errors import describe_error
from agent.surfaces.bots.platform import IncomingMessage, Platform, continues, should_answer
from agent.surfaces.bots.replies import Reply
from agent.types.client import ClientTurn
from memory.audience import PRIVATE, Place
from memory.people.places import Listening

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
"""People who are remembered as told why they are not answered."""
STOP_SECONDS, LAST_SECONDS = 5.0, 3.0
"""How long turns in progress may take when the bot stops, and those that are ended then to say so."""
STOPPED = "(stopped)"
"""Ends a reply that was not generated to its end."""
BUSY_TIMEOUT = 5.0
"""Seconds that hiding a typing indicator or a status may take."""
NOT_HERE = Answer(
    "I may not write where you have just asked me something. Ask me here, or whoever manages that channel."
)
TOO_MANY_TODAY = "That is as much as I may answer you in a day. I go on tomorrow (UTC)."
TOO_MANY = "That is more than I can keep up with here. Please give me a minute."

Final = tuple[str, tuple[Item, ...], Answer | None]
"""The arguments of `Reply.finish`."""


@dataclass(slots=True)
class _Conversation:
    waiting: deque[IncomingMessage] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    turns: deque[float] = field(default_factory=deque)
    """The start times of the turns in the last minute."""
    warned: bool = False
    dropped: IncomingMessage | None = None
    """The last message for which there was no room."""
    answering: tuple[IncomingMessage, ...] = ()
    """The messages of the present turn."""
    limit: asyncio.Timeout | None = None
    """What ends the present turn."""
    worker: "asyncio.Task[None] | None" = None

    def interrupt(self) -> None:
        if self.limit and not self.limit.expired():
            self.limit.reschedule(0)


@dataclass(eq=False)
class Conversations:
    pet: Companion
    platform: Platform
    burst_seconds: float = BURST_SECONDS
    turns_per_minute: int = TURNS_PER_MINUTE
    monotonic: Callable[[], float] = time.monotonic
    _conversations: dict[str, _Conversation] = field(default_factory=dict)
    _deleted: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_DELETED))
    """The newest origins of messages that were deleted; some may wait for their turn."""
    _forgetting: set["asyncio.Task[None]"] = field(default_factory=set)
    _told: deque[tuple[str, date | Place]] = field(default_factory=lambda: deque(maxlen=MAX_TOLD))
    """The people who were told that their turns of a day are spent, or that the bot may not write in a
    place."""
    _stopped: bool = False

    async def receive(self, message: IncomingMessage, listening: Listening) -> None:
        """Queue a message that is to be answered, or may be, unless it came before, to this process or
        another. `listening` is the setting of its place."""
        answer = should_answer(listening, message)
        if answer is None:
            answer = message.follows_bot or await self._is_known(message)
        source, _, id = message.origin.partition(":")
        if answer and await self.pet.conversations.deliveries.first(source, id, self.pet.clock()):
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
        """Forget a message that was deleted on the platform, whether it waits here, is being answered or is
        stored. A stop waits for it: the platform does not tell of the deletion again."""
        self._deleted.append(origin)
        self.interrupt(lambda message: message.origin == origin)
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
        for conversation in self._conversations.values():
            if any(map(is_meant, conversation.answering)):
                conversation.interrupt()

    async def stop(self, grace: float = STOP_SECONDS) -> None:
        """Accept no more messages, and end the turns that take longer than `grace` seconds."""
        self._stopped = True
        for seconds in (grace, LAST_SECONDS):
            if running := self._running():
                await asyncio.wait(running, timeout=seconds)
            for conversation in self._conversations.values():
                conversation.waiting.clear()
                conversation.interrupt()
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
                    await self._tell(dropped, TOO_MANY)
            except Exception as error:
                log.exception("a turn is lost: %s", error)
        self._drop_idle()

    async def _next_turn(self, conversation: _Conversation) -> None:
        first = conversation.waiting.popleft()
        if not await self._is_meant(first):
            return
        while conversation.turns and conversation.turns[0] <= self.monotonic() - 60:
            conversation.turns.popleft()
        if len(conversation.turns) >= self.turns_per_minute:
            if not conversation.warned:
                conversation.warned = True
                await self._tell(first, TOO_MANY)
            return
        if await self._spent(first.user):
            if (told := (first.user, self.pet.clock().date())) not in self._told:
                self._told.append(told)
                await self._tell(first, TOO_MANY_TODAY)
            return
        conversation.warned = False
        conversation.turns.append(self.monotonic())
        async with self._busy(first):
            await self._answer(conversation, await self._burst(conversation, first))

    async def _is_meant(self, message: IncomingMessage) -> bool:
        """Return whether the message is for the bot, asking the platform for its thread if need be."""
        if message.addressed or message.origin in self._deleted:
            return message.addressed
        answer = should_answer(await self.pet.people.places.listening(message.place), message)
        return continues(message.user, await self.platform.thread(message)) if answer is None else answer

    async def _is_known(self, message: IncomingMessage) -> bool:
        """Return whether its conversation has messages already."""
        return await self.pet.conversations.exists(message.queue, user=message.user, place=message.place)

    async def _spent(self, user: str) -> bool:
        """Return whether the person has had all turns of today."""
        most, now = self.pet.settings.bot_daily_turns, self.pet.clock()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return bool(most) and await self.pet.conversations.written_since(midnight, user=user) >= most

    async def _tell(self, message: IncomingMessage, text: str) -> None:
        async with Reply(self.platform.reply_to(message)) as reply:
            await reply.finish(text)

    async def _burst(self, conversation: _Conversation, first: IncomingMessage) -> list[IncomingMessage]:
        """Return the message and those that the same person adds before a pause."""
        burst, waiting = [first], conversation.waiting
        while True:
            while waiting and waiting[0].user == first.user and not waiting[0].to_others:
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
            await asyncio.wait([showing], timeout=BUSY_TIMEOUT)

    async def _show_busy(self, message: IncomingMessage) -> None:
        try:
            await self.platform.show_busy(message)
        except Exception as error:
            log.info("cannot show that a reply is being written: %s", error)

    async def _answer(self, conversation: _Conversation, burst: list[IncomingMessage]) -> None:
        """Answer the messages; those that are left, once one of them was deleted."""
        while left := [message for message in burst if message.origin not in self._deleted]:
            burst, view = left, self.platform.reply_to(left[-1])
            async with Reply(view, conversation.interrupt, self.platform.edit_seconds) as reply:
                final = await self._run_turn(conversation, burst, reply)
                deleted = [message for message in burst if message.origin in self._deleted]
                if not deleted:
                    if not await reply.finish(*final):
                        log.error("a reply in %s could not be shown; the transcript has it", left[-1].queue)
                    elif reply.refused and (told := (left[-1].user, left[-1].place)) not in self._told:
                        self._told.append(told)
                        await self.platform.write(left[-1].user, PRIVATE, NOT_HERE)
                    break
                await reply.withdraw()
            for message in deleted:  # stored after it was deleted
                await self._forget_sent(message.origin)

    async def _run_turn(
        self, conversation: _Conversation, burst: list[IncomingMessage], reply: Reply
    ) -> Final:
        """Return what the reply ends with. If the turn fails or is interrupted, the text says so."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                conversation.answering, conversation.limit = tuple(burst), limit
                return await self._stream(burst, reply)
        except Exception as error:
            if limit.expired():
                return f"{reply.text}\n\n{STOPPED}".strip(), (), None
            return describe_error(error), (), None
        finally:
            conversation.answering, conversation.limit = (), None

    async def _stream(self, burst: list[IncomingMessage], reply: Reply) -> Final:
        message = burst[-1]
        begins = message.in_thread and not await self._is_known(message)
        contents = [part.content or await self.platform.read(part, begins=begins) for part in burst]
        texts = [
            "\n\n".join(filter(None, (one.text, await read_attachments(one.attachments)))) for one in contents
        ]
        replies_to = "\n".join(filter(None, (one.replies_to for one in contents)))
        if contents[-1].zone:
            await self.pet.people.note_zone(contents[-1].zone, user=message.user)
        async with self.pet.stream(
            "\n".join(filter(None, texts)),
            user=message.user,
            place=message.place,
            conversation=message.conversation,
            author=contents[-1].author,
            origins=[part.origin for part in burst if part.origin],
            client=ClientTurn(replies_to=replies_to) if replies_to else None,
            settle=True,
        ) as stream:
            async for piece in stream:
                reply.add(piece)
            answer = stream.reply
        receipts = tuple(map(partial(receipt_item, place=message.place), new_memories(answer.memories)))
        question = None if answer.forget is None else forget_question(answer.forget)
        return answer.message.strip() or "…", receipts, question

    def _drop_idle(self) -> None:
        """Forget conversations without a turn in the last minute."""
        now = self.monotonic()
        busy = {worker for worker in self._running() if worker is not asyncio.current_task()}
        for name, known in list(self._conversations.items()):
            idle = not known.turns or known.turns[-1] <= now - 60
            if idle and not known.waiting and known.worker not in busy:
                del self._conversations[name]
