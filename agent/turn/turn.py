"""START HERE: one turn, told once.

1. Hear what was said: it is in the transcript before anything else happens.
2. Set the scene: what the model gets to see.
3. Think: the model calls tools, at most five calls, and answers.
4. Answer: what was answered, and what is still to be done about it, is written in one transaction.
   Only then does the reply go out.
5. Afterwards, in the background: `agent/background/worker.py`.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from agent.errors import BadInput
from agent.models.choose import ChosenModel
from agent.settings import Settings
from agent.tracing.recorder import Recorder
from agent.turn.jobs import (
    LOOK_BACK,
    STORE_MEMORIES,
    look_back_payload,
    look_back_subject,
    store_memories_payload,
)
from agent.turn.loop import AgentResult, OnText, run_agent
from agent.turn.prompt import Budgets, PromptContext, build_messages_for_model, within_budgets
from agent.types import MAX_MESSAGE, Reply, TurnRequest
from memory.conversations.summaries import Conversations, owner_of
from memory.documents import DocumentLibrary
from memory.documents.quote import quote_chunks
from memory.errors import MemoryFault
from memory.facts.aliases import linked
from memory.facts.writer import FactWriter
from memory.people.profile import UserContext
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.records import Decision, Hit, Message
from memory.search.core_facts import core_facts, get_relevant_memories
from memory.search.recall import Recall
from memory.spans import new_id, span
from memory.sql.engine import Database
from memory.sql.jobs import JobQueue
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript, missing
from memory.text import storable
from tools.context import TurnContext
from tools.registry import Tool

log = logging.getLogger("hachi.turn")

PASSAGES = 8
"""Of documents, where they are looked into before the model is asked: so many at most."""


class Worker(Protocol):
    """Runs the jobs that a turn leaves behind: `agent/background/worker.py`."""

    async def do(self, id: str) -> list[Decision]: ...

    def wake(self) -> None: ...


@dataclass(frozen=True)
class TurnDependencies:
    """What a turn needs, wired by `agent/companion.py`."""

    settings: Settings
    clock: Callable[[], datetime]
    model: ChosenModel
    database: Database
    transcript: Transcript
    conversations: Conversations
    contexts: ProfileStore
    store: MemoryStore
    knowledge: DocumentLibrary
    tasks: Tasks
    queue: JobQueue
    recall: Recall
    writer: FactWriter
    worker: Worker
    budgets: Budgets
    recorder: Recorder
    tools: Sequence[Tool]
    persona: str
    """Who the companion is, in a person's own words; empty is the one that comes with Hachi."""


async def take_turn(
    deps: TurnDependencies,
    incoming: TurnRequest,
    on_text: OnText | None = None,
    *,
    settle: bool = False,
    trace_id: str | None = None,
) -> Reply:
    """With `settle` the answer's memories[] are stored before it returns, so that the reply tells of them; a
    turn that is taken again has the `trace_id` that it had. Raises BadInput, ModelError, or a MemoryFault
    where the record itself is out of reach."""
    with deps.recorder.turn(incoming, deps.model.name, trace_id) as trace:
        heard = await receive(deps, incoming)
        trace.heard(heard.message_id)
        scene, shown = await build_context(deps, heard)
        turn = _at_hand(deps, heard, scene, shown)
        result = await run_agent(
            deps.model, deps.settings, build_messages_for_model(scene), turn, on_text, deps.tools
        )
        message_id, work = await answer(deps, heard, result, turn.recalled, ours=settle, trace=trace.id)
        kept = [decision for id in work if settle for decision in await deps.worker.do(id)]
        reply = Reply(
            message=result.answer.message,
            memories=(*turn.decisions, *kept),
            tools=result.tools,
            trace_id=trace.id,
            model=deps.model.name,
            calls=result.calls,
            message_id=message_id,
            usage=result.usage,
        )
        trace.answered(reply)
    deps.worker.wake()
    return reply


def _at_hand(
    deps: TurnDependencies, heard: "ReceivedMessage", scene: PromptContext, shown: frozenset[str]
) -> TurnContext:
    """What the tools of this turn work with."""
    return TurnContext(
        user=heard.incoming.user,
        place=heard.incoming.place,
        text=heard.incoming.text,
        message_id=heard.message_id,
        shown=shown,
        clock=deps.clock,
        recall=deps.recall,
        writer=deps.writer,
        tasks=deps.tasks,
        knowledge=deps.knowledge,
        knowledge_characters=deps.budgets.knowledge.characters,
        zone=scene.known.zone,
    )


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    incoming: TurnRequest
    message_id: str | None
    """None when anonymous: nothing of an anonymous turn is kept."""


async def receive(deps: TurnDependencies, incoming: TurnRequest) -> ReceivedMessage:
    """Step 1."""
    incoming = _readable(incoming)
    if incoming.user is None:
        return ReceivedMessage(incoming, None)
    message = Message(
        id=new_id(),
        conversation_id=incoming.conversation_id,
        role="user",
        author=incoming.speaker,
        text=incoming.text,
        sent_at=incoming.sent_at,
    )
    async with deps.database.write() as connection:
        await deps.transcript.append(
            connection, message, user=incoming.user, place=incoming.place, now=deps.clock()
        )
    return ReceivedMessage(incoming, message.id)


async def build_context(
    deps: TurnDependencies, heard: ReceivedMessage
) -> tuple[PromptContext, frozenset[str]]:
    """Step 2. With the scene, the ids of what it shows: messages, facts, the summary."""
    with span("scene") as here:
        scene, shown = await _scene(deps, heard)
        if here:
            here.data["scene"] = _to_trace(scene)
    return scene, shown


def _to_trace(scene: PromptContext) -> dict[str, Any]:
    """What a trace keeps of it: all that was looked up."""
    return {
        "now": scene.now,
        "known": scene.known,
        "summary": scene.summary,
        "knowledge": scene.knowledge,
        "history": [message.id for message in scene.history],
    }


async def _scene(deps: TurnDependencies, heard: ReceivedMessage) -> tuple[PromptContext, frozenset[str]]:
    incoming, now = heard.incoming, deps.clock()
    scene = PromptContext(
        now,
        incoming.speaker,
        incoming.place,
        (),
        incoming.text,
        persona=deps.persona,
        budgets=deps.budgets,
        instructions=incoming.instructions,
    )
    if incoming.user is None:
        return replace(scene, history=_said_before(incoming, deps.settings.history_messages)), frozenset()
    user, place, talk = incoming.user, incoming.place, incoming.conversation_id
    limit = deps.settings.history_messages
    last = await deps.transcript.last(talk, incoming.audience, limit + 1)
    before = [message for message in last if message.id != heard.message_id]
    active = await deps.conversations.of(talk, owner_of(user, place))
    documents, passages = await _documents(deps, incoming)
    scene = within_budgets(
        replace(
            scene,
            history=before[max(0, len(before) - limit) :] or _said_before(incoming, limit),
            known=await what_is_known(deps, incoming, now),
            summary=active.summary if active else "",
            knowledge=documents,
        )
    )
    messages = {message.id for message in scene.history} | {str(heard.message_id)}
    facts = {fact.id for fact in scene.known.long_term_facts}
    summary = {active.id} if active and scene.summary else set()
    return scene, frozenset(messages | facts | summary | passages)


def _said_before(incoming: TurnRequest, limit: int) -> list[Message]:
    """What the program says was said before. It is shown once, and is not part of the transcript."""
    said = incoming.earlier[max(0, len(incoming.earlier) - limit) :]
    return [
        Message("", incoming.conversation_id, role, incoming.speaker, storable(text), incoming.sent_at)
        for role, text in said
    ]


async def what_is_known(deps: TurnDependencies, incoming: TurnRequest, now: datetime) -> UserContext:
    """Of the person who speaks, as far as it may be read here: what they told of themselves, the facts and
    the tasks that bear on what they say now."""
    user, place = str(incoming.user), incoming.place
    facts = await core_facts(deps.store, user, incoming.audience, now)
    tasks = await deps.tasks.relevant(
        user, incoming.text, place=None if place.private else place.key, now=now
    )
    return replace(
        await deps.contexts.view(user, place),
        long_term_facts=tuple(get_relevant_memories(facts, incoming.text)),
        open_tasks=tuple(tasks),
    )


async def _documents(deps: TurnDependencies, incoming: TurnRequest) -> tuple[str, frozenset[str]]:
    """What documents say, where that is to be known first; and the ids of the passages."""
    if not deps.settings.knowledge_first:
        return "", frozenset()
    try:
        found = await deps.knowledge.search(incoming.text, incoming.audience, PASSAGES)
    except MemoryFault as error:
        log.warning("answering without documents: %s", error)
        return "", frozenset()
    return quote_chunks(found, deps.budgets.knowledge.characters)


async def answer(
    deps: TurnDependencies,
    heard: ReceivedMessage,
    result: AgentResult,
    recalled: Sequence[Hit],
    *,
    ours: bool = False,
    trace: str | None = None,
) -> tuple[str | None, list[str]]:
    """Step 4. Returns the reply's id in the transcript, and the ids of the work that is left to do; with
    `ours` whoever asks does it."""
    incoming, now = heard.incoming, deps.clock()
    if incoming.user is None:
        return None, []
    reply = Message(
        id=new_id(),
        conversation_id=incoming.conversation_id,
        role="assistant",
        author="hachi",
        text=result.answer.message,
        sent_at=now,
    )
    left: list[tuple[str, dict[str, Any], str | None]] = []
    if result.answer.memories or linked(incoming.text, incoming.speaker):
        payload = store_memories_payload(result.answer.memories, incoming, heard.message_id, recalled)
        left.append((STORE_MEMORIES, payload | {"trace": trace}, None))
    if deps.settings.look_back != "off":
        left.append((LOOK_BACK, look_back_payload(incoming) | {"trace": trace}, look_back_subject(incoming)))
    async with deps.database.write() as connection:
        if await missing(connection, [str(heard.message_id)]):
            return None, []  # who said it was erased meanwhile: the answer is given, and not kept
        await deps.transcript.append(connection, reply, user=incoming.user, place=incoming.place, now=now)
        work = [
            await deps.queue.add(connection, kind, incoming.user, payload, now, about=talk, ours=ours)
            for kind, payload, talk in left
        ]
    return reply.id, work


def _readable(incoming: TurnRequest) -> TurnRequest:
    """The text without what cannot be kept or shown; BadInput where nothing can be made of it."""
    text = storable(incoming.text).strip()
    if not text:
        raise BadInput("the message is empty")
    if len(text) > MAX_MESSAGE:
        raise BadInput(
            f"the message has {len(text):,} characters, more than the {MAX_MESSAGE:,} that are read; "
            "send it in parts"
        )
    return replace(incoming, text=text)
