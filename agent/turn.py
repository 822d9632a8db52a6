"""START HERE: one turn, told once.

1. Hear what was said: it is in the transcript before anything else happens.
2. Set the scene: what the model gets to see.
3. Think: the model calls tools, at most five calls, and answers.
4. Answer: what was answered, and what is still to be done about it, is written in one transaction.
   Only then does the reply go out.
5. Afterwards, in the background: `agent/aftercare.py`.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from agent.aftercare import STORE_MEMORIES, Aftercare, to_store
from agent.context import Scene, build_messages_for_model
from agent.errors import BadInput, ModelError
from agent.loop import OnText, Thought, think
from agent.messages import MAX_MESSAGE, Incoming, Reply, writable
from agent.models import ChosenModel
from agent.settings import Settings
from memory.aliases import linked
from memory.database import Database
from memory.recall import Recall
from memory.records import Hit, Message
from memory.remember import Remembering
from memory.tasks import Tasks
from memory.transcript import Transcript
from memory.work import WorkQueue
from tools.context import TurnContext

log = logging.getLogger("hachi.turn")


@dataclass(frozen=True)
class House:
    """What a turn needs, wired by `agent/companion.py`."""

    settings: Settings
    clock: Callable[[], datetime]
    model: ChosenModel
    database: Database
    transcript: Transcript
    tasks: Tasks
    queue: WorkQueue
    recall: Recall
    remembering: Remembering
    aftercare: Aftercare


async def take_turn(
    house: House, incoming: Incoming, on_text: OnText | None = None, *, settle: bool = False
) -> Reply:
    """With `settle` the answer's memories[] are stored before it returns, so that the reply tells of them.
    Raises BadInput, ModelError, or a MemoryFault where the record itself is out of reach."""
    trace_id = f"trace_{uuid4().hex}"
    heard = await hear(house, incoming)
    scene, shown = await set_the_scene(house, heard)
    turn = TurnContext(
        user=heard.incoming.user,
        place=heard.incoming.place,
        text=heard.incoming.text,
        message_id=heard.message_id,
        shown=shown,
        clock=house.clock,
        recall=house.recall,
        remembering=house.remembering,
        tasks=house.tasks,
    )
    try:
        thought = await think(house.model, house.settings, build_messages_for_model(scene), turn, on_text)
    except ModelError as error:
        error.trace_id = trace_id
        log.error("%s: %s", trace_id, error)
        raise
    message_id, work = await answer(house, heard, thought, turn.recalled)
    kept = await house.aftercare.do(work) if work and settle else []
    house.aftercare.wake()
    return Reply(
        message=thought.answer.message,
        memories=(*turn.decisions, *kept),
        tools=thought.tools,
        trace_id=trace_id,
        model=house.model.name,
        calls=thought.calls,
        message_id=message_id,
    )


@dataclass(frozen=True, slots=True)
class Heard:
    incoming: Incoming
    message_id: str | None
    """None when anonymous: nothing of an anonymous turn is kept."""


async def hear(house: House, incoming: Incoming) -> Heard:
    """Step 1."""
    incoming = _readable(incoming)
    if incoming.user is None:
        return Heard(incoming, None)
    message = Message(
        id=str(uuid4()),
        conversation_id=incoming.conversation_id,
        role="user",
        author=incoming.speaker,
        text=incoming.text,
        sent_at=incoming.sent_at,
    )
    async with house.database.write() as connection:
        await house.transcript.append(
            connection, message, user=incoming.user, place=incoming.place, now=house.clock()
        )
    return Heard(incoming, message.id)


async def set_the_scene(house: House, heard: Heard) -> tuple[Scene, frozenset[str]]:
    """Step 2. With the scene, the ids of the messages it shows."""
    incoming = heard.incoming
    scene = Scene(house.clock(), incoming.speaker, incoming.place, (), incoming.text)
    if incoming.user is None:
        return scene, frozenset()
    limit = house.settings.history_messages
    last = await house.transcript.last(incoming.conversation_id, incoming.audience, limit + 1)
    place = None if incoming.place.private else incoming.place.key
    tasks = await house.tasks.list(incoming.user, place=place)
    before = [message for message in last if message.id != heard.message_id]
    history = before[max(0, len(before) - limit) :]
    shown = frozenset(message.id for message in last)
    return Scene(scene.now, scene.speaker, scene.place, history, scene.text, tasks), shown


async def answer(
    house: House, heard: Heard, thought: Thought, recalled: Sequence[Hit]
) -> tuple[str | None, str | None]:
    """Step 4. Returns the reply's id in the transcript, and the id of the work that is left to do."""
    incoming, now = heard.incoming, house.clock()
    if incoming.user is None:
        return None, None
    reply = Message(
        id=str(uuid4()),
        conversation_id=incoming.conversation_id,
        role="assistant",
        author="hachi",
        text=thought.answer.message,
        sent_at=now,
    )
    work = None
    async with house.database.write() as connection:
        await house.transcript.append(connection, reply, user=incoming.user, place=incoming.place, now=now)
        if thought.answer.memories or linked(incoming.text, incoming.speaker):
            payload = to_store(thought.answer.memories, incoming, heard.message_id, recalled)
            work = await house.queue.add(connection, STORE_MEMORIES, incoming.user, payload, now)
    return reply.id, work


def _readable(incoming: Incoming) -> Incoming:
    """The text without what cannot be kept or shown; BadInput where nothing can be made of it."""
    text = writable(incoming.text).strip()
    if not text:
        raise BadInput("the message is empty")
    if len(text) > MAX_MESSAGE:
        raise BadInput(
            f"the message has {len(text):,} characters, more than the {MAX_MESSAGE:,} that are read; "
            "send it in parts"
        )
    return replace(incoming, text=text)
