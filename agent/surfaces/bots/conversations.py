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
from agent.surfaces.bots.answers import describe_error
from agent.surfaces.bots.platform import IncomingMessage, Platform, continues, should_answer
from agent.surfaces.bots.turns import NotShown, PostedReply, TurnInProgress, Turns
from agent.types.client import description_in
from memory.errors import MemoryFault
from memory.people.places import Listening

log = logging.getLogger("hachi.bots")

BURST_SECONDS = 0.7
"""How long a turn waits for further messages of the same person."""
MAX_WAITING = 50
"""Messages that may wait in one conversation. Further ones are dropped, and one author is notified."""
STOP_SECONDS, LAST_SECONDS = 5.0, 3.0
"""Seconds that turns may still take when the bot stops, and then to show that they were ended."""
SHOW_SECONDS = 3.0
"""How long the next turn waits for a reply to be shown. Showing it is then retried concurrently."""
BUSY_TIMEOUT = 5.0
"""Seconds that hiding a typing indicator or a status may take."""
TOO_MANY_TODAY = "You have reached the limit of messages for today. I answer again tomorrow (UTC)."
TOO_MANY = "Too many messages are waiting here. Please write again in a minute."
IS_LATE = "I was away when you wrote this, and now it is late. Ask me again if you still want to know."
LASTING = timedelta(seconds=30)
"""How long a message may fail before its author is notified."""
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
    """Origin → message that could not be accepted or answered, the error, and since when."""
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._turns = Turns(self.pet, self.platform)
        self.deliveries = self.pet.conversations.deliveries

    async def receive(self, message: IncomingMessage, listening: Listening) -> None:
        """Queue a message that is or may be for the bot, unless some process accepted it before.
        `listening` is the setting of its place. A job represents the message until it is answered."""
        answer = should_answer(listening, message)
        if answer is None:  # the thread decides; people who opted out have no stored messages in it
            meant = message.follows_bot or await self._turns.reader.has_history(message)
            answer = meant or not await self.pet.people.places.keeps(message.user, message.place)
        if answer:
            await self._accept(message)

    async def _accept(self, message: IncomingMessage) -> None:
        """Add a job to answer the message before the platform is told that it came."""
        now = self.pet.clock()
        if job := await self.deliveries.accept(message.origin, message.user, now, message.version):
            self.add(replace(message, job=job))

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
        """Apply an edit of a message. A waiting message is read as edited; one that is being answered, or was
        in the last minutes, is answered again; of an older one only the stored text changes."""
        if places := [*self._positions(message.origin)]:
            for messages, at in places:
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
            reading = await self._turns.reader.read(burst, sent)
            if not reading.unchanged:
                pictured = any(one.kind == "picture" for part in reading.contents for one in part.attachments)
                description = description_in(sent.message.text) if pictured else ""
                text = "\n".join(filter(None, (reading.text, description)))
                await self.pet.conversations.reword(sent, text, again=False)

    async def deleted(self, origin: str) -> None:
        """Forget a message that was deleted on the platform, whether it is queued, being answered or stored.
        `stop` waits for this, because the platform reports a deletion once."""
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
        return any(self._positions(origin))

    def _positions(self, origin: str) -> Iterator[tuple[MutableSequence[IncomingMessage], int]]:
        """Yield each list and index at which a message waits, or is answered by a reply that may change."""
        for talk in self._conversations.values():
            for messages in (talk.waiting, *[talk.turn.burst] * talk.turn.open):
                yield from ((messages, at) for at, one in enumerate(messages) if one.origin == origin)

    def interrupt(self, is_meant: Callable[[IncomingMessage], bool]) -> None:
        """End the turns that answer a matching message. The text generated so far stays, marked as
        stopped."""
        for conversation in self._conversations.values():
            if any(map(is_meant, conversation.turn.burst)):
                conversation.turn.interrupt()

    async def stop(self, grace: float = STOP_SECONDS) -> None:
        """Accept no more messages, end the turns that take longer than `grace` seconds, and leave what waits
        to the next start."""
        self._stopped = True
        unanswered: list[IncomingMessage] = []
        for seconds in (grace, LAST_SECONDS):
            if running := self._running():
                await asyncio.wait(running, timeout=seconds)
            for conversation in self._conversations.values():
                unanswered += conversation.waiting
                conversation.waiting.clear()
                conversation.turn.interrupt()
        late = self._running()
        unanswered += [one for turn in self._answering.values() for one in turn.burst]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        unanswered += [one for conversation in self._conversations.values() for one in conversation.dropped]
        if jobs := [message.job for message in unanswered if message.job]:
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
        """Run the work that answers these messages, and wait a few seconds at most until the reply is shown:
        a platform that is away must not hold up the next turn."""
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
        """Run the work that answers these messages and complete their jobs. After an error they are
        retried."""
        try:
            posted = await work
            jobs = [message.job for message in burst if message.job]
            await self.deliveries.answered(jobs, self.pet.clock(), *(posted or ()))
            for message in burst:
                self._failed.pop(message.origin, None)
        except Exception as error:
            log.error("a turn is lost: %s", error, exc_info=not isinstance(error, NotShown))
            self.note_failure(burst, error)
            with suppress(MemoryFault):
                for job in [message.job for message in burst if message.job]:
                    await self.deliveries.later(job, str(error), self.pet.clock())

    def note_failure(self, messages: Sequence[IncomingMessage], error: Exception) -> None:
        """Record messages that could not be accepted or answered and will be retried."""
        for message in messages:
            if message.addressed and not isinstance(error, NotShown) and len(self._failed) < MAX_FAILED:
                self._failed.setdefault(message.origin, (message, error, self.pet.clock()))

    async def tell_failed(self) -> None:
        """Tell people whose message has failed for a while that it has. It is retried all the same."""
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
        """Add to the burst what the same person writes before a pause. A message that an earlier process
        replied to is answered separately, by editing that reply."""
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
