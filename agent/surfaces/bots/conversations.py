"""Turns chat messages into replies, on any platform. The turns of a conversation run in order. Messages that
one person writes in a burst make one turn."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableSequence, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.companion import Companion
from agent.surfaces.bots.errors import describe_error
from agent.surfaces.bots.platform import IncomingMessage, Platform, continues, should_answer
from agent.surfaces.bots.turns import NotShown, PostedReply, TurnInProgress, Turns
from agent.types.pictures import description_in
from memory.errors import MemoryFault
from memory.people.places import Listening

log = logging.getLogger("hachi.bots")

BURST_SECONDS = 0.7
"""How long a turn waits for further messages of the same person."""
MAX_WAITING = 50
"""Messages in one conversation. Further ones are dropped, and one of their authors is told."""
STOP_SECONDS, LAST_SECONDS = 5.0, 3.0
"""How long turns in progress may take when the bot stops, and those that are ended then to say so."""
SHOW_SECONDS = 3.0
"""How long the next turn waits until a reply is shown; it is tried again beside that one."""
BUSY_TIMEOUT = 5.0
"""Seconds that hiding a typing indicator or a status may take."""
TOO_MANY_TODAY = "You have reached the limit of messages for today. I answer again tomorrow (UTC)."
TOO_MANY = "Too many messages are waiting here. Please write again in a minute."
IS_LATE = "I was away when you wrote this, and now it is late. Ask me again if you still want to know."
LASTING = timedelta(seconds=30)
"""After so long the author is told that a message cannot be accepted or answered."""
MAX_FAILED = 1_000
REWRITE = timedelta(minutes=10)
"""How long after a reply it is written again when its question is edited."""


@dataclass(slots=True)
class _Conversation:
    waiting: deque[IncomingMessage] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: list[IncomingMessage] = field(default_factory=list)
    """The messages for which there was no room."""
    turn: TurnInProgress = field(default_factory=TurnInProgress)
    """The present one."""
    worker: "asyncio.Task[None] | None" = None


@dataclass(eq=False)
class Conversations:
    pet: Companion
    platform: Platform
    burst_seconds: float = BURST_SECONDS
    _conversations: dict[str, _Conversation] = field(default_factory=dict)
    _forgetting: set["asyncio.Task[None]"] = field(default_factory=set)
    _answering: dict["asyncio.Task[None]", TurnInProgress] = field(default_factory=dict)
    """The turns in progress."""
    _failed: dict[str, tuple[IncomingMessage, Exception, datetime]] = field(default_factory=dict)
    """Origin → what could not be accepted or answered, why, and since when; its author is to be told."""
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._turns = Turns(self.pet, self.platform)
        self.deliveries = self.pet.conversations.deliveries

    async def receive(self, message: IncomingMessage, listening: Listening) -> None:
        """Queue a message that is to be answered, or may be, unless it came before, to this process or
        another. `listening` is the setting of its place. Until it is answered a job stands for it."""
        answer = should_answer(listening, message)
        if answer is None:  # by the talk in its thread, of which nothing is kept of who wants that
            known = message.follows_bot or await self._turns.has_history(message)
            answer = known or not await self._keeps(message)
        if answer:
            await self._accept(message)

    async def _accept(self, message: IncomingMessage) -> None:
        """Add a job to answer the message before the platform is told that it came."""
        now = self.pet.clock()
        if job := await self.deliveries.accept(message.origin, message.user, now, message.version):
            self.add(replace(message, job=job))

    async def _keeps(self, message: IncomingMessage) -> bool:
        return await self.pet.people.places.keeps(message.user, message.place)

    def add(self, message: IncomingMessage) -> bool:
        """Queue a message. Returns False if too many wait or the bot is stopping."""
        conversation = self._conversations.setdefault(message.queue, _Conversation())
        if self._stopped or len(conversation.waiting) >= MAX_WAITING:
            conversation.dropped.append(message)
            return False
        conversation.waiting.append(message)
        conversation.arrived.set()
        if conversation.worker is None or conversation.worker.done():
            work = self._work(conversation)
            conversation.worker = asyncio.create_task(work, name=f"hachi conversation {message.queue}")
        return True

    async def edited(self, message: IncomingMessage, listening: Listening) -> None:
        """Let what a person has edited replace what they said. A message that waits is read as it is now, one
        that is being answered, or was within the last minutes, is answered again."""
        if here := [*self._here(message.origin)]:
            for messages, at in here:
                messages[at] = replace(message, job=messages[at].job, posts=messages[at].posts)
            self._interrupt(message.origin)
            return
        sent = await self.deliveries.sent([message.origin])
        if sent is None:
            await self.receive(message, listening)  # a mention was added
        elif sent.reply is None or sent.reply.sent_at > self.pet.clock() - REWRITE:
            await self._accept(replace(message, addressed=True))
        else:
            burst, _ = await self._turns.whole([message])
            reading = await self._turns.read(burst, sent)
            if not reading.unchanged:
                pictured = any(one.kind == "picture" for part in reading.contents for one in part.attachments)
                noted = description_in(sent.message.text) if pictured else ""
                text = "\n".join(filter(None, (reading.text, noted)))
                await self.pet.conversations.reword(sent, text, again=False)

    async def deleted(self, origin: str) -> None:
        """Forget a message that was deleted on the platform, whether it waits here, is being answered or is
        stored. A stop waits for it: the platform does not tell of the deletion again."""
        forgetting = asyncio.create_task(self._turns.forget(origin), name=f"hachi forgets {origin}")
        self._forgetting.add(forgetting)
        forgetting.add_done_callback(self._forgetting.discard)
        await asyncio.shield(forgetting)
        self._interrupt(origin)
        for turn in self._answering.values():
            if turn.reply and origin in turn.reply.origins:
                turn.reply.abandon()

    def _interrupt(self, origin: str) -> None:
        self.interrupt(lambda one: one.origin == origin)

    async def settle(self) -> None:
        """Wait until all queued messages are answered, and deleted ones forgotten."""
        while running := self._running():
            await asyncio.wait(running)

    def answers(self, origin: str) -> bool:
        """Return whether a message waits here, or is being answered and may still change."""
        return any(self._here(origin))

    def _here(self, origin: str) -> Iterator[tuple[MutableSequence[IncomingMessage], int]]:
        """Yield the places of a message among those that wait or are being answered and may still change."""
        for talk in self._conversations.values():
            for messages in (talk.waiting, *[talk.turn.burst] * talk.turn.open):
                yield from ((messages, at) for at, one in enumerate(messages) if one.origin == origin)

    def interrupt(self, is_meant: Callable[[IncomingMessage], bool]) -> None:
        """End the turns that answer a message that is meant. What was generated stays, marked as stopped."""
        for conversation in self._conversations.values():
            if any(map(is_meant, conversation.turn.burst)):
                conversation.turn.interrupt()

    async def stop(self, grace: float = STOP_SECONDS) -> None:
        """Accept no more messages, end the turns that take longer than `grace` seconds, and leave what waits
        to the next start."""
        self._stopped = True
        left: list[IncomingMessage] = []
        for seconds in (grace, LAST_SECONDS):
            if running := self._running():
                await asyncio.wait(running, timeout=seconds)
            for conversation in self._conversations.values():
                left += conversation.waiting
                conversation.waiting.clear()
                conversation.turn.interrupt()
        late = self._running()
        left += [one for turn in self._answering.values() for one in turn.burst]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        left += [one for known in self._conversations.values() for one in known.dropped]
        if jobs := [message.job for message in left if message.job]:
            await self.deliveries.release(jobs, self.pet.clock())

    def _running(self) -> "list[asyncio.Task[None]]":
        workers = [c.worker for c in self._conversations.values() if c.worker and not c.worker.done()]
        return [*workers, *self._forgetting, *self._answering]

    async def _work(self, conversation: _Conversation) -> None:
        while conversation.waiting:
            turn = conversation.turn = TurnInProgress([conversation.waiting.popleft()])
            await self._until_shown(turn, self._next_turn(conversation))
            conversation.turn = TurnInProgress()
            if dropped := conversation.dropped[:]:
                conversation.dropped.clear()
                turn = TurnInProgress(dropped, open=False)
                await self._until_shown(turn, self._tell(turn, TOO_MANY))
        for name in [name for name, one in self._conversations.items() if one is conversation]:
            del self._conversations[name]

    async def _until_shown(self, turn: TurnInProgress, work: Awaitable[PostedReply | None]) -> None:
        """Do what answers these messages. To show it may take longer than this: a platform that is away holds
        up no other turn."""
        answering = self._start(turn, work)
        showing = asyncio.create_task(turn.showing.wait())
        try:
            await asyncio.wait([answering, showing], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([answering], timeout=SHOW_SECONDS)
        finally:
            showing.cancel()

    def _start(self, turn: TurnInProgress, work: Awaitable[PostedReply | None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._settled(turn.burst, work), name="hachi answer")
        self._answering[task] = turn
        task.add_done_callback(self._answering.pop)
        return task

    def show(self, message: IncomingMessage) -> None:
        """Show the stored reply to a message, which could not be shown before, beside the queue."""
        if not self._stopped:
            turn = TurnInProgress([message])
            self._start(turn, self._turns.answer(turn))

    async def _tell(self, turn: TurnInProgress, text: str) -> PostedReply:
        turn.showing.set()
        return await self._turns.tell(turn.burst[-1], text)

    async def _settled(self, burst: list[IncomingMessage], work: Awaitable[PostedReply | None]) -> None:
        """Do what answers these messages. Their jobs are done then; where it failed, they are tried again."""
        try:
            shown = await work
            jobs = [message.job for message in burst if message.job]
            await self.deliveries.answered(jobs, self.pet.clock(), *(shown or ()))
            for message in burst:
                self._failed.pop(message.origin, None)
        except Exception as error:
            log.error("a turn is lost: %s", error, exc_info=not isinstance(error, NotShown))
            self.note_failure(burst, error)
            with suppress(MemoryFault):
                for job in [message.job for message in burst if message.job]:
                    await self.deliveries.later(job, str(error), self.pet.clock())

    def note_failure(self, messages: Sequence[IncomingMessage], error: Exception) -> None:
        """Note what could not be accepted or answered, and is tried again."""
        for message in messages:
            if message.addressed and not isinstance(error, NotShown) and len(self._failed) < MAX_FAILED:
                self._failed.setdefault(message.origin, (message, error, self.pet.clock()))

    async def tell_failed(self) -> None:
        """Tell those whose message still cannot be accepted or answered after a while that it is so. It is
        tried on nevertheless."""
        for origin, (message, error, since) in list(self._failed.items()):
            if self.pet.clock() - since < LASTING or self._failed.pop(origin, None) is None:
                continue  # it is early, or told already
            with suppress(MemoryFault):
                if (sent := await self.deliveries.sent([origin])) and sent.reply:
                    continue  # another process has answered it
            if self._turns.is_first_notice(origin):
                await self.platform.reply_to(message).post(describe_error(error), final=True)

    async def _next_turn(self, conversation: _Conversation) -> PostedReply | None:
        """Answer the next messages. Returns the id of the stored reply and the ids of its posts."""
        turn = conversation.turn
        [first] = turn.burst
        if not await self._is_meant(first):
            return None
        if await self._spent(first.user):
            if self._turns.is_first_notice(first.user, self.pet.clock().date()):
                await self._tell(turn, TOO_MANY_TODAY)
            return None
        if first.late:
            await self._gather(conversation)
            return await self._tell(turn, IS_LATE)
        async with self._busy(first):
            await self._gather(conversation)
            return await self._turns.answer(turn)

    async def _is_meant(self, message: IncomingMessage) -> bool:
        """Return whether the message is for the bot, asking the platform for its thread if need be."""
        if message.addressed:
            return True
        answer = should_answer(await self.pet.people.places.listening(message.place), message)
        return (
            continues(message.user, (await self.platform.thread(message)).lines) if answer is None else answer
        )

    async def _spent(self, user: str) -> bool:
        """Return whether the person has had all turns of today."""
        most, now = self.pet.settings.bot_daily_turns, self.pet.clock()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return bool(most) and await self.pet.conversations.written_since(midnight, user=user) >= most

    async def _gather(self, conversation: _Conversation) -> None:
        """Add to the burst what the same person adds before a pause. What has a reply already, of an earlier
        process, is answered by itself: there."""
        burst, waiting = conversation.turn.burst, conversation.waiting
        while not burst[0].posts:
            while (
                waiting
                and waiting[0].user == burst[0].user
                and not (waiting[0].to_others or waiting[0].posts)
            ):
                burst.append(waiting.popleft())
            conversation.arrived.clear()
            if waiting or len(burst) >= MAX_WAITING:
                return
            try:
                await asyncio.wait_for(conversation.arrived.wait(), self.burst_seconds)
            except TimeoutError:
                return

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
