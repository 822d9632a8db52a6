"""START HERE: one turn, told once.

1. Receive: store the message in the transcript. Of an anonymous person nothing is stored, here or later.
2. Build the context: what the model will see (`context/`).
3. Run the agent: the model calls tools and answers, within five model calls (`loop.py`).
   If the person asked to forget something, find what they may mean (`forget_requests.py`): they confirm it
   later, by `Companion.forget`.
4. Commit the answer: one transaction stores the reply and the jobs that follow from it. Only then does the
   turn end, though a stream has shown the text before. If the message was erased or forgotten meanwhile,
   or something else that the model was shown, the reply is given and not stored.
5. In the background, the worker runs those jobs (`agent/background/worker.py`).

Two words recur: what is *shown* is in the prompt, and what is *found* is what the tools brought.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agent.models.choose import ChosenModel
from agent.settings import Settings
from agent.tracing.recorder import Recorder
from agent.turn.additions import Additions
from agent.turn.client.history import compare, follow, with_conversation
from agent.turn.client.wishes import checked
from agent.turn.commit import AnswerStore, message_of
from agent.turn.context.build import BuiltContext, ContextServices, build_context
from agent.turn.context.prompt import build_messages_for_model
from agent.turn.forget_requests import ForgetRequests
from agent.turn.jobs import STORE_MEMORIES, ConsolidationDue, KeptForLater, Worker, store_memories_payload
from agent.turn.loop import AgentResult, run_agent, with_end
from agent.turn.streaming import OnEvent
from agent.types import Ending, ReceivedMessage, Reply, TurnRequest
from agent.types.events import MemoryDecided, StreamEvent
from memory.facts.writer import FactWriter
from memory.process.breaker import request_of
from memory.records import Decision, ForgetCandidate
from memory.search.recall import Recall
from memory.sql.deliveries import note_origins
from memory.sql.engine import Database
from memory.sql.jobs import Job, JobQueue
from memory.sql.message_rows import missing
from memory.sql.messages import Transcript
from memory.sql.reply_sources import ReplySources
from tools.context import TurnContext


@dataclass(frozen=True)
class TurnDependencies:
    """The collaborators of a turn, built in `agent/wiring/runtime.py`."""

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
    consolidation: ConsolidationDue | None
    """When a conversation is consolidated; None where none is."""
    recorder: Recorder
    additions: Additions


@dataclass(frozen=True)
class Turn:
    """A turn under way."""

    began: datetime
    received: ReceivedMessage
    built: BuiltContext
    tools: TurnContext
    """What the tools know of the turn, and what they found and stored."""
    trace: str


@dataclass(frozen=True, slots=True)
class Left:
    """What a turn has left behind."""

    message_id: str | None = None
    """The reply's, in the transcript."""
    job: Job | None = None
    """The one that stores the answer's memories; this process has claimed it."""
    consolidated_at: datetime | None = None
    """When the conversation is to be consolidated."""


async def take_turn(
    deps: TurnDependencies,
    request: TurnRequest,
    on_event: OnEvent | None = None,
    *,
    settle: bool = False,
    ending: Ending | None = None,
) -> Reply:
    """Answer the request. `on_event` receives the reply's text as the model generates it, and what tools do.
    What `ending` makes of the answer is added to it.

    With `settle` the answer's memories are stored before this returns, so that `Reply.memories` has them; a
    consolidation does not hold the reply up. Raises BadInput, ModelError, or MemoryFault if the database
    cannot be reached.
    """
    began = deps.clock()
    if deps.settings.memory:
        request = await with_conversation(deps.transcript, request, began)
    with deps.recorder.turn(request, deps.model.name) as trace, request_of(request.user):
        received = await receive(deps, checked(request, deps.settings, stand_in=deps.model.name == "offline"))
        trace.heard(received.id)
        built = await build_context(deps.context, received)
        turn = Turn(began, received, built, _tool_context(deps, received, built, trace.id), trace.id)
        messages = build_messages_for_model(built.prompt)
        result = await run_agent(
            *(deps.model, deps.settings, messages, turn.tools, on_event),
            *(await deps.additions.offered(), request.client, deps.additions),
        )
        forget = await deps.forget_requests.candidates(result.answer.forget, received)
        if ending and (end := await ending(forget, result.tools)):
            result = with_end(result, end, on_event)
        left = await commit_answer(deps, turn, result)
        decisions = await deps.worker.hand_over(left.job) if left.job and settle else []
        for decision in decisions:
            (on_event or _nobody)(MemoryDecided(decision))
        reply = _reply(deps, turn, result, left.message_id, decisions, forget)
        trace.answered(reply)
    deps.worker.follow_up(None if settle else left.job, left.consolidated_at)
    return reply


def _nobody(_: StreamEvent) -> None:
    """Nobody follows the turn."""


async def receive(deps: TurnDependencies, request: TurnRequest) -> ReceivedMessage:
    """Store the message, unless the transcript has it already, and follow a history that the client keeps.
    Nothing is stored for an anonymous turn, and without memory each turn is one."""
    if not deps.settings.memory:
        request = replace(request, user=None, author=request.speaker)
    else:
        label = await deps.transcript.label(request.speaker, request.user, request.place)
        request = replace(request, author=label)
    sent = await compare(deps.transcript, request)
    if request.user is None:
        return ReceivedMessage(request, None, sent.history)
    message = message_of(request, sent.follows)
    id = sent.question or message.id
    async with deps.database.write(lock=sent.locks(request.user)) as connection:
        now = deps.clock()
        await follow(connection, sent, request.user, now)
        if id == message.id:
            await deps.transcript.append(connection, message, user=request.user, place=request.place, now=now)
        await note_origins(deps.database, connection, id, request.origins)
    return ReceivedMessage(request, id, sent.history)


def _tool_context(
    deps: TurnDependencies, received: ReceivedMessage, built: BuiltContext, trace: str
) -> TurnContext:
    later = KeptForLater(deps.database, deps.queue, deps.worker, deps.clock, received, built.sources, trace)
    return TurnContext(
        user=received.request.user,
        place=received.request.place,
        text=received.request.text,
        message_id=received.id,
        shown=built.shown,
        clock=deps.clock,
        recall=deps.recall,
        writer=deps.writer,
        accept=later.fact,
        accept_task=later.task,
        tasks=deps.context.tasks,
        knowledge=deps.context.documents,
        knowledge_characters=deps.context.budgets.knowledge.characters,
        zone=built.prompt.known.zone,
    )


async def commit_answer(deps: TurnDependencies, turn: Turn, result: AgentResult) -> Left:
    """Store the reply and its jobs.

    While the client's tools run there is no answer yet: their calls are stored with the message. If the
    message was erased or forgotten while the model was thinking, nothing is stored. If something else that
    the model was shown was, neither calls nor the reply are, and nothing that the model wrote is remembered.
    """
    received, built, request = turn.received, turn.built, turn.received.request
    if request.user is None:
        return Left()
    found, told_in = turn.tools.found, built.prompt.known.message_ids
    facts = [*built.facts, *(hit.memory for hit in found if hit.memory)]
    # A forgetting holds these locks alone: it finds what is stored here, or this finds what is gone.
    async with deps.database.write(lock=request.audience.keys, shared=True) as connection:
        now = deps.clock()
        expired = {one.id: one.message_id for one in facts if one.expires_at and one.expires_at <= now}
        ids = frozenset(hit.id for hit in found)
        sources = ReplySources(built.sources, told_in, request.audience, ids, expired)
        answers = AnswerStore(deps.transcript, connection, received, sources)
        if result.client_calls:
            await answers.store_calls(result.client_calls)
            return Left()
        reply = await answers.store_reply(result.answer.message, now)
        if reply is None and await missing(connection, [str(received.id)]):
            return Left()
        trace, job, due = {"trace": turn.trace} if reply else {}, None, None
        if reply and (drafts := result.answer.memories):
            payload = store_memories_payload(drafts, request, received.id, found, built.sources)
            job = await deps.queue.add(
                connection, STORE_MEMORIES, request.user, payload | trace, now, ours=True
            )
        if deps.consolidation:  # without a reply, of what the person said
            due = await deps.consolidation.expect(connection, request, now, **trace)
    return Left(reply.id if reply else None, job, due)


def _reply(
    deps: TurnDependencies,
    turn: Turn,
    result: AgentResult,
    message_id: str | None,
    decisions: Sequence[Decision],
    forget: tuple[ForgetCandidate, ...] | None,
) -> Reply:
    tools = turn.tools
    found = sum(map(bool, tools.searches))
    deps.context.count("", {"turn searches": len(tools.searches), "turn searches that found": found})
    return Reply(
        message=result.answer.message,
        memories=(*tools.decisions, *decisions),
        tools=result.tools,
        trace_id=turn.trace,
        model=deps.model.name,
        calls=result.calls,
        message_id=message_id,
        conversation=turn.received.request.conversation_id if turn.received.id else None,
        forget=forget,
        usage=result.usage,
        shown=turn.built.prompt.known.long_term_facts,
        found=tools.hits,
        client_calls=result.client_calls,
        cut=result.cut,
    )
