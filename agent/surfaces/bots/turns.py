"""Answers messages of one person with a turn, and shows the reply on the platform while it is generated."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from agent.companion import Companion
from agent.surfaces.bots.answers import (
    TASK,
    Answer,
    Item,
    call_question,
    console_link,
    describe_error,
    forget_question,
    new_memories,
    receipt_item,
    task_item,
)
from agent.surfaces.bots.attachments.read import MAX_PICTURES
from agent.surfaces.bots.platform import IncomingMessage, Platform
from agent.surfaces.bots.reading import MessageReader, ReadablePlaces
from agent.surfaces.bots.streamed_reply import Reply
from agent.surfaces.links import forget_path
from agent.types.client import ClientTurn
from memory.audience import PRIVATE
from tools.proposed_call import ProposedCall

log = logging.getLogger("hachi.bots")

MAX_NOTICES = 1_000
"""Notices that are remembered, so that nobody gets the same one twice."""
STOPPED = "(stopped)"
"""Ends a reply that was not generated to its end."""
REFUSED = "My answer was refused here and cannot be shown. Please ask in other words."
"""Stands in place of a reply that the platform refuses for good."""
NO_ACCESS = Answer(
    "I can't post in the channel where you asked. Ask me here, or ask a moderator to let me post there."
)


@dataclass(frozen=True, slots=True)
class Final:
    text: str
    receipts: tuple[Item, ...] = ()
    question: Answer | None = None
    id: str | None = None
    """Of the stored reply."""
    trace: str = ""
    """The id of the turn's trace, if it is known."""
    calls: tuple[Answer, ...] = ()
    """Asks whether to run calls that change something."""


PostedReply = tuple[str | None, Sequence[str]]
"""The id of the stored reply, and the ids of the posts."""


class NotShown(Exception):
    """Raised if a reply cannot be shown. It is shown later."""


@dataclass(slots=True)
class TurnInProgress:
    burst: list[IncomingMessage] = field(default_factory=list)
    """The messages that it answers."""
    open: bool = True
    """Whether they may still change: their reply is not being finished."""
    reply: Reply | None = None
    limit: asyncio.Timeout | None = None
    """What ends it."""
    showing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once all that is left is to show the reply."""

    def interrupt(self) -> None:
        if self.limit and not self.limit.expired():
            self.limit.reschedule(0)


async def _faults(faults: Sequence[tuple[str, str]], *_: object) -> str:
    """Return the end of a reply that says which files could not be read."""
    return "\n".join(f"_{told}_" for _, told in faults)


@dataclass(eq=False)
class Turns:
    pet: Companion
    platform: Platform
    _notices: deque[tuple[Any, ...]] = field(default_factory=lambda: deque(maxlen=MAX_NOTICES))

    def __post_init__(self) -> None:
        self.reader = MessageReader(self.pet, self.platform)
        self.deliveries = self.pet.conversations.deliveries
        self._readable = ReadablePlaces(self.platform, self.pet.clock)

    async def answer(self, turn: TurnInProgress) -> PostedReply | None:
        """Answer the messages as they are now. If any process sees one of them deleted meanwhile, the reply
        is withdrawn and the remaining ones are answered."""
        turn.burst[:], posts = await self.whole(turn.burst)
        while burst := await self._existing(turn.burst):
            view = self.platform.reply_to(burst[-1])
            noted = partial(self.deliveries.posted, burst[-1].job)
            async with Reply(view, turn.interrupt, self.platform.edit_seconds, noted, posts) as reply:
                turn.reply = reply
                final = await self._run(turn, burst, reply)
                while (now := await self._existing(turn.burst)) != burst and len(now) == len(burst):  # edited
                    burst, reply.text = now, ""
                    final = await self._run(turn, burst, reply)
                if now == burst:
                    turn.open = False
                    turn.showing.set()
                    return await self._show(burst[-1], reply, final) if final else None
                await reply.withdraw()
            posts = ()
            for origin in {one.origin for one in burst} - {one.origin for one in now}:
                await self.forget(origin)  # what was stored after it was deleted
        return None

    async def tell(self, message: IncomingMessage, text: str) -> PostedReply:
        """Answer a message with this text, without a turn."""
        async with Reply(self.platform.reply_to(message), earlier=message.posts) as reply:
            return await self._show(message, reply, Final(text))

    async def _show(self, message: IncomingMessage, reply: Reply, final: Final) -> PostedReply:
        instead = f"{REFUSED} ({final.trace})" if final.trace else REFUSED
        if not await reply.finish(final.text, final.receipts, final.question, instead=instead):
            raise NotShown(f"a reply in {message.queue} could not be shown; the transcript has it")
        if reply.refused and self.is_first_notice(message.user, message.place):
            await self.platform.write(message.user, PRIVATE, NO_ACCESS)
        for question in final.calls:
            await self.platform.write(message.user, message.place, question, message.origin)
        return final.id, reply.origins

    def is_first_notice(self, *notice: Any) -> bool:
        """Record a notice. Returns whether this person has not had it before."""
        if notice in self._notices:
            return False
        self._notices.append(notice)
        return True

    async def _existing(self, burst: Sequence[IncomingMessage]) -> list[IncomingMessage]:
        """Return the messages that were not deleted."""
        gone = await self.deliveries.gone([one.job for one in burst])
        return [one for one in burst if one.job not in gone]

    async def whole(self, burst: list[IncomingMessage]) -> tuple[list[IncomingMessage], Sequence[str]]:
        """Return the messages with those that were stored together with them, and the posts that already
        answer them."""
        parts = {message.origin: message for message in burst}
        if (sent := await self.deliveries.sent(parts)) is None:
            return burst, burst[-1].posts
        for origin in sent.origins:
            if origin not in parts and (message := await self.platform.fetch(origin)):
                parts[origin] = message
        order = [*sent.origins, *parts]
        return sorted(parts.values(), key=lambda one: order.index(one.origin)), burst[-1].posts or sent.posts

    async def _run(self, turn: TurnInProgress, burst: list[IncomingMessage], reply: Reply) -> Final | None:
        """Run the turn and return the final reply; None if it is shown already. If the turn fails or is
        interrupted, the text says so."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                turn.limit = limit
                return await self._stream(burst, reply)
        except Exception as error:
            if limit.expired():
                return Final(f"{reply.text}\n\n{STOPPED}".strip())
            return Final(describe_error(error))
        finally:
            turn.limit = None

    async def _stream(self, burst: list[IncomingMessage], reply: Reply) -> Final | None:
        message, origins = burst[-1], [part.origin for part in burst if part.origin]
        sent = await self.deliveries.sent(origins)
        reading = await self.reader.read(burst, sent)
        contents = reading.contents
        if sent and not reading.unchanged:
            await self.pet.conversations.reword(sent, reading.text, again=True)
        elif sent and sent.reply:  # perhaps not shown before the process or the connection was lost
            return None if sent.posts else Final(sent.reply.text, id=sent.reply.id)
        around = await self.reader.around(burst[0], contents, MAX_PICTURES - len(reading.files.pictures))
        faults, sees = (*reading.files.faults, *around.files.faults), not self.pet.settings.offline
        client = ClientTurn(
            images=reading.files.pictures if sees else (),
            quoted_images=around.files.pictures if sees else (),
            pictures_optional=True,
            replies_to=around.text,
            quoted=around.quotes,
        )
        if contents[-1].zone:
            await self.pet.people.note_zone(contents[-1].zone, user=message.user)
        began, calls = self.pet.clock(), dict[str, ProposedCall]()

        async def propose(call: ProposedCall) -> None:
            calls[await self.pet.calls.propose(call)] = call

        async with self.pet.stream(
            reading.text,
            user=message.user,
            place=replace(message.place, name=contents[-1].place),
            conversation=message.conversation,
            author=contents[-1].author,
            origins=origins,
            confirm=propose,
            reads=partial(self._readable.of, message.user) if message.place.private else None,
            client=client if client.images or client.replies_to else None,
            ending=partial(_faults, faults),
            settle=True,
        ) as stream:
            async for piece in stream:
                reply.add(piece)
            answer = stream.reply
        receipts = tuple(map(partial(receipt_item, place=message.place), new_memories(answer.memories)))
        if any(call.name == "update_task" for call in answer.tools):
            tasks = await self.pet.tasks.list(user=message.user, place=message.place)
            changed = [task for task in tasks if task.due and task.last_updated >= began]
            receipts += tuple(replace(task_item(task), label=TASK) for task in changed)
        question = None if answer.forget is None else forget_question(answer.forget)
        if question and answer.forget:
            page = forget_path(answer.forget)
            question = replace(question, note=await console_link(self.pet, message.user, message.place, page))
        text, trace = answer.message.strip() or "…", answer.trace_id or ""
        questions = tuple(call_question(call, id) for id, call in calls.items())
        return Final(text, receipts, question, answer.message_id, trace, questions)

    async def forget(self, origin: str) -> None:
        if receipt := await self.pet.conversations.forget_sent(origin):
            log.info("%s was deleted by its author: %d memories forgotten", origin, len(receipt.memories))
