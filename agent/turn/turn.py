"""START HERE: one turn, told once.

1. Receive: store the message in the transcript. Of an anonymous person nothing is stored, here or later.
2. Build the context: what the model will see (`context.py`, `prompt.py`).
3. Run the agent: the model calls tools and answers, within five model calls (`loop.py`).
   If the person asked to forget something, find what they may mean (`forget_requests.py`): they confirm it
   later, by `Companion.forget`.
4. Commit the answer: one transaction stores the reply and the jobs that follow from it. Only then does the
   turn end, though a stream has shown the text before. If the message was erased or forgotten meanwhile,
   nothing is stored; if something else that the model was given was, the reply is stored without its text.
5. In the background, the worker runs those jobs (`agent/background/worker.py`).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.errors import BadInput
from agent.models.choose import ChosenModel
from agent.settings import Settings
from agent.tracing.recorder import Recorder
from agent.turn.client.history import compare, with_conversation
from agent.turn.client.wishes import check, check_size
from agent.turn.context import BuiltContext, ContextServices, build_context
from agent.turn.forget_requests import ForgetRequests, without_forgotten
from agent.turn.jobs import (
    APPLY_UPDATES,
    STORE_MEMORIES,
    QueuedJob,
    consolidation,
    store_memories_payload,
    task_payload,
)
from agent.turn.loop import AgentResult, OnText, run_agent, searches_used
from agent.turn.prompt import build_messages_for_model
from agent.types import MAX_MESSAGE, ReceivedMessage, Reply, TurnRequest
from agent.types.client import ITEMS
from memory.audience import user_key
from memory.erasure.replaced_messages import bring_back, replace_messages
from memory.errors import StoreUnavailable
from memory.facts.derived.replies import ReplySources
from memory.facts.writer import FactWriter
from memory.process.breaker import request_of
from memory.process.spans import new_id
from memory.records import Decision, Draft, Hit, Message
from memory.search.recall import Recall
from memory.sql.engine import Database
from memory.sql.jobs import JobQueue
from memory.sql.messages import Transcript
from memory.text import storable
from tools.context import TurnContext
from tools.failures import ToolFailed
from tools.registry import Tool


class Worker(Protocol):
    """Runs the jobs that a turn adds."""

    async def do(self, id: str) -> list[Decision]: ...

    def wake(self) -> None: ...


PAUSES = (0.5, 2.0)
"""Seconds before a busy or absent database is given again what a tool is to keep."""
NOT_KEPT = "this was not kept, since the database does not answer; say so, and do not call again for it"


@dataclass(frozen=True)
class TurnDependencies:
    """The collaborators of a turn, built in `agent/wiring.py`."""

    settings: Settings
    clock: Callable[[], datetime]
    model: ChosenModel
    database: Database
    transcript: Transcript
    context: ContextServices
    recall: Recall
    forget_requests: ForgetRequests
    writer: FactWriter
    queue: JobQueue
    worker: Worker
    nothing_to_keep: Callable[[str, str], bool]
    """Whether the exchange that begins a conversation needs no consolidation before there is another one."""
    recorder: Recorder
    tools: Sequence[Tool]


async def take_turn(
    deps: TurnDependencies,
    request: TurnRequest,
    on_text: OnText | None = None,
    *,
    settle: bool = False,
) -> Reply:
    """Answer the request. `on_text` receives the reply's text as the model generates it.

    With `settle` the answer's memories are stored before this returns, so that `Reply.memories` has them; a
    consolidation does not hold the reply up. Raises BadInput, ModelError, or MemoryFault if the database
    cannot be reached.
    """
    began = deps.clock()
    if request.client:
        check(request.client, deps.settings)
        check_size(request.client, request.text)
    if deps.settings.memory:
        request = await with_conversation(deps.transcript, request, began)
    with deps.recorder.turn(request, deps.model.name) as trace, request_of(request.user):
        received = await receive(deps, request)
        trace.heard(received.id)
        built = await build_context(deps.context, received)
        tools = _tool_context(deps, received, built, trace.id)
        messages = build_messages_for_model(built.prompt)
        result = await run_agent(
            deps.model, deps.settings, messages, tools, on_text, deps.tools, request.client
        )
        forget = await deps.forget_requests.candidates(result.answer.forget, received)
        reply_id, jobs = await commit_answer(
            deps, received, built, tools.recalled, result, began=began, settle=settle, trace=trace.id
        )
        settled = [decision for job in jobs for decision in await deps.worker.do(job)]
        reply = Reply(
            message=result.answer.message,
            memories=(*tools.decisions, *settled),
            tools=result.tools,
            trace_id=trace.id,
            model=deps.model.name,
            calls=result.calls,
            message_id=reply_id,
            conversation=received.request.conversation_id if received.id else None,
            forget=forget,
            usage=result.usage,
            given=built.prompt.known.long_term_facts,
            found=tuple(tools.found),
            client_calls=result.client_calls,
            cut=result.cut,
        )
        used = searches_used(tools, result.answer)
        deps.context.count("", {"turn searches": len(tools.searches), "turn searches used": used})
        trace.answered(reply)
    deps.worker.wake()
    return reply


async def receive(deps: TurnDependencies, request: TurnRequest) -> ReceivedMessage:
    """Store the message, unless the transcript has it already, and follow a history that the client keeps.
    Nothing is stored for an anonymous turn, and without memory each turn is one."""
    request = _checked(request)
    if not deps.settings.memory:
        request = replace(request, user=None, author=request.speaker)
    else:
        label = await deps.transcript.label(request.speaker, request.user, request.place)
        request = replace(request, author=label)
    sent = await compare(deps.transcript, request)
    history = sent.history if sent else None
    if request.user is None:
        return ReceivedMessage(request, None, history)
    message = Message(
        id=new_id(),
        conversation_id=request.conversation_id,
        role="user",
        author=request.speaker,
        text=request.text,
        sent_at=request.sent_at,
        follows=sent.follows if sent else None,
    )
    lock = {user_key(request.user)} if sent and (sent.hidden or sent.back) else set()
    async with deps.database.write(lock=lock) as connection:
        now = deps.clock()
        if sent and sent.hidden:
            await replace_messages(connection, sent.hidden, request.user, now)
        if sent and sent.back:
            await bring_back(connection, sent.back, request.user, now)
        if sent is None or sent.question is None:
            await deps.transcript.append(connection, message, user=request.user, place=request.place, now=now)
        id = (sent and sent.question) or message.id
        await deps.transcript.note_origins(connection, id, request.origins)
    return ReceivedMessage(request, id, history)


def _checked(request: TurnRequest) -> TurnRequest:
    """Return the request with storable text. Raises BadInput if the text is empty or too long."""
    text = storable(request.text).strip()
    if not text:
        raise BadInput("the message is empty")
    if len(text) > MAX_MESSAGE:
        raise BadInput(
            f"the message has {len(text):,} characters and the limit is {MAX_MESSAGE:,}; send it in parts"
        )
    return replace(request, text=text)


def _tool_context(
    deps: TurnDependencies, received: ReceivedMessage, built: BuiltContext, trace: str
) -> TurnContext:
    async def add(kind: str, payload: Mapping[str, Any]) -> None:
        job = {**payload, "trace": trace}
        for pause in (*PAUSES, None):
            try:
                async with deps.database.write() as connection:
                    await deps.queue.add(connection, kind, str(received.request.user), job, deps.clock())
            except StoreUnavailable as error:
                if pause is None:
                    raise ToolFailed(NOT_KEPT) from error
                await asyncio.sleep(pause)
            else:
                break
        deps.worker.wake()

    # A tool writes by itself; these keep what the database cannot store in a moment.

    async def accept(draft: Draft, recalled: Sequence[Hit]) -> None:
        await add(
            STORE_MEMORIES,
            store_memories_payload([draft], received.request, received.id, recalled, built.given),
        )

    async def accept_task(task: Mapping[str, Any]) -> None:
        await add(APPLY_UPDATES, task_payload(task, received.request, received.id, deps.clock()))

    return TurnContext(
        user=received.request.user,
        place=received.request.place,
        text=received.request.text,
        message_id=received.id,
        shown=built.shown,
        clock=deps.clock,
        recall=deps.recall,
        writer=deps.writer,
        accept=accept,
        accept_task=accept_task,
        tasks=deps.context.tasks,
        knowledge=deps.context.documents,
        knowledge_characters=deps.context.budgets.knowledge.characters,
        zone=built.prompt.known.zone,
    )


async def commit_answer(
    deps: TurnDependencies,
    received: ReceivedMessage,
    built: BuiltContext,
    recalled: Sequence[Hit],
    result: AgentResult,
    *,
    began: datetime,
    settle: bool,
    trace: str,
) -> tuple[str | None, list[str]]:
    """Store the reply and its jobs. Returns the reply's id in the transcript, and with `settle` the ids of
    the jobs that the caller has run at once: no worker claims them by itself.

    While the client's tools run there is no answer yet: their calls are stored with the message. If the
    message was erased or forgotten while the model was thinking, nothing is stored. If something else that
    the model was given was, no calls are, the reply is stored as a forgotten message, and nothing that the
    model wrote is remembered.
    """
    request = received.request
    if request.user is None:
        return None, []
    found, told_in = frozenset(hit.id for hit in recalled), built.prompt.known.message_ids
    written_from = ReplySources(built.given, told_in, request.audience, began, found)
    # A forgetting holds these locks alone: it finds what is stored here, or this finds what is lost.
    async with deps.database.write(lock=request.audience.keys, shared=True) as connection:
        if result.client_calls:
            await _store_calls(deps, connection, received, result, written_from)
            return None, []
        reply = await _store_reply(deps, connection, received, result, written_from)
        if reply is None:
            return None, []
        ours: list[str] = []
        for kind, payload, subject in _jobs(deps, received, built, recalled, result, reply):
            at_once = settle and kind == STORE_MEMORIES
            job = payload | {"trace": trace}
            id = await deps.queue.add(
                connection, kind, request.user, job, reply.sent_at, about=subject, ours=at_once
            )
            ours += [id] if at_once else []
    return reply.id, ours


async def _store_calls(
    deps: TurnDependencies,
    connection: AsyncConnection,
    received: ReceivedMessage,
    result: AgentResult,
    written_from: ReplySources,
) -> None:
    """Store the calls that the client is to run, and those before them, unless something that they may repeat
    was forgotten."""
    client = received.request.client
    items = ITEMS.dump_python((*(client.after if client else ()), *result.client_calls))
    lost = written_from.lost()
    if not await connection.scalar(select(lost.holds), lost.values):
        await deps.transcript.keep_items(connection, str(received.id), items)


async def _store_reply(
    deps: TurnDependencies,
    connection: AsyncConnection,
    received: ReceivedMessage,
    result: AgentResult,
    written_from: ReplySources,
) -> Message | None:
    """Store the answer in the transcript, instead of the calls that led to it. Returns None if the message
    that it answers is gone."""
    request, now = received.request, deps.clock()
    reply = Message(
        id=new_id(),
        conversation_id=request.conversation_id,
        role="assistant",
        author="hachi",
        text=result.answer.message,
        sent_at=now,
        follows=received.id if request.client and request.client.history is not None else None,
    )
    stored = await deps.transcript.append(
        connection,
        reply,
        user=str(request.user),
        place=request.place,
        now=now,
        answering=str(received.id),
        lost=written_from.lost(),
    )
    if stored:
        await written_from.record(connection, reply.id, str(received.id))
    if stored and request.client and request.client.after:
        await deps.transcript.keep_items(connection, str(received.id), None)
    return stored


def _jobs(
    deps: TurnDependencies,
    received: ReceivedMessage,
    built: BuiltContext,
    recalled: Sequence[Hit],
    result: AgentResult,
    reply: Message,
) -> Iterator[QueuedJob]:
    """Yield the jobs that follow from the answer. One stored as forgotten is not remembered."""
    request = received.request
    memories = without_forgotten(result.answer.memories, result.answer.forget)
    if memories and reply.forgotten_at is None:
        payload = store_memories_payload(memories, request, received.id, recalled, built.given)
        yield QueuedJob(STORE_MEMORIES, payload)
    waits = built.begins and deps.nothing_to_keep(request.text, result.answer.message)
    if deps.settings.look_back != "off" and not waits:
        yield consolidation(request)
