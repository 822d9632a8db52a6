"""START HERE: the steps of one turn. First `Companion` waits for a running erasure, makes a person who wants
nothing stored anonymous, adds what the person may read elsewhere (`with_rights`), and chooses the model. Then
`take_turn` below takes these steps in this order.

1. Receive: store the message in the transcript. For an anonymous person nothing is stored, here or later.
2. Build the context: what the model will see (`context/`).
3. Run the agent: the model calls tools and answers (`loop.py`), in at most five calls, the last one without
   tools (`call_limit.py`). If the person asked to forget something, find the memories that they may mean
   (`forget_requests.py`). They confirm later, through `pet.memories.forget_confirmed`.
4. Store the answer: one transaction stores the reply and the jobs that follow from it (`commit.py`). Only
   then does the turn end, though a stream shows the text earlier. If the message, or anything else that the
   model was shown, was erased or forgotten meanwhile, the reply is returned but not stored.
5. In the background, the worker runs those jobs (`agent/background/worker.py`).

Two words recur: *shown* memories are in the prompt, and *found* ones are results of tools.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent.errors import BadInput, ModelRejected, ModelUnavailable
from agent.models.choice.choose import ChosenModel
from agent.models.wire.errors import too_long_in
from agent.settings import Settings
from agent.tracing.recorder import TraceRecording
from agent.turn.client.history import compare, follow, with_continued_conversation, with_stored_question
from agent.turn.client.links import without_their_links
from agent.turn.client.our_calls import with_stored_calls
from agent.turn.client.parameters import checked
from agent.turn.commit import AnswerStore, Stored, message_of
from agent.turn.context.gather import BuiltContext, ContextServices, build_context
from agent.turn.context.prompt import messages_of
from agent.turn.context.smaller import fitted, size_of
from agent.turn.forget_requests import ForgetRequests
from agent.turn.loop import NARROW_TOOLS, AgentResult, run_agent, with_end
from agent.turn.output.reply_stream import OnEvent
from agent.types import MemoryDecided, ReceivedMessage, Reply, StreamEvent, TextWritten, TurnRequest
from agent.types.client import OTHER_MEMORY, ClientTurn
from agent.types.options import Ending, Reads
from memory.people.links import Links
from memory.process.breaker import calls_for
from memory.process.spans import note
from memory.records import Decision, ForgetCandidate
from memory.sql.jobs.deliveries import note_origins
from memory.sql.jobs.job import Job
from tools.context import TurnContext
from tools.registry import TOOLS

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.turn")


class Worker(Protocol):
    """Runs the jobs that a turn adds."""

    def run_claimed(self, job: Job) -> Awaitable[list[Decision]]: ...

    def after_turn(self, job: Job | None, consolidated_at: datetime | None) -> None: ...


@dataclass(frozen=True)
class TurnDependencies:
    """The collaborators of a turn, built in `agent/wiring/runtime.py`."""

    parts: "Components"
    settings: Settings
    model: ChosenModel
    context: ContextServices
    forget_requests: ForgetRequests
    worker: Worker
    answers: AnswerStore


async def take_turn(
    deps: TurnDependencies,
    request: TurnRequest,
    on_event: OnEvent | None,
    *,
    settle: bool,
    ending: Ending | None,
    within: float | None,
) -> Reply:
    """Answer the request. If there is no answer after `within` seconds, raise ModelUnavailable and store no
    reply. `on_event` receives the reply's text as the model generates it, and what tools do. The text that
    `ending` returns is added to the reply.

    With `settle` the answer's memories are stored before this returns, so that `Reply.memories` has them; it
    does not wait for a consolidation. Raises BadInput, ModelError, or MemoryFault if the database cannot be
    reached.
    """
    request = without_their_links(request)
    if deps.settings.memory and not request.occasion:
        request = await with_continued_conversation(deps.parts.transcript, request, deps.parts.clock())
        request = await with_stored_question(deps.parts.transcript, request)
    with deps.parts.recorder.turn(request, deps.model.name) as trace, calls_for(request.user):
        try:
            async with asyncio.timeout(within) as limit:
                answered = await _answer(deps, request, trace, on_event, ending)
        except TimeoutError as error:
            if not limit.expired():
                raise
            kept = "; the message is kept" if deps.settings.memory and request.user else ""
            late = f"no reply within {within:g} s, the timeout of the call{kept}"
            raise ModelUnavailable(late) from error
        stored = await _store(deps, answered, trace.id)
        decisions = await _settled(deps, stored.job, limit.when(), on_event) if settle and stored.job else []
        reply = _reply(deps, answered, stored, decisions, trace.id)
        trace.answered(reply)
    deps.worker.after_turn(None if settle else stored.job, stored.consolidated_at)
    return reply


class _Answered(NamedTuple):
    received: ReceivedMessage
    built: BuiltContext
    tools: TurnContext
    result: AgentResult
    forget: tuple[ForgetCandidate, ...] | None


async def _answer(
    deps: TurnDependencies,
    request: TurnRequest,
    trace: TraceRecording,
    on_event: OnEvent | None,
    ending: Ending | None,
) -> _Answered:
    stand_in, sees = deps.model.name == "offline", deps.model.takes_pictures
    received = await receive(deps, checked(request, deps.settings, stand_in=stand_in, sees=sees))
    trace.heard(None if request.occasion else received.id)
    fit = deps.model.fit
    narrow = fit is not None and fit.narrow
    built = await build_context(deps.context, received, narrow=narrow)
    if narrow:
        note(narrow=True)
    client = received.request.client or ClientTurn()
    if others := client.memory_tools:
        note(other_memory=others)
        deps.context.parts.figures.count(received.request.user or "", {OTHER_MEMORY: 1})
    tools = _tool_context(deps, received, built)
    messages, result = await _run(deps, built, tools, client, on_event)
    exchange = [str(one["content"]) for one in messages[-3:-1] if one.get("role") in ("user", "assistant")]
    forget = await deps.forget_requests.candidates(result.answer.forget, received, exchange)
    if ending and (end := await ending(forget, result.tools)):
        result = with_end(result, end, on_event)
    return _Answered(received, built, tools, result, forget)


async def _run(
    deps: TurnDependencies,
    built: BuiltContext,
    tools: TurnContext,
    client: ClientTurn,
    on_event: OnEvent | None,
) -> tuple[list[dict[str, Any]], AgentResult]:
    """Run the agent with a prompt that fits the model's window. If the server says that it is too long, ask
    again with a shorter one, unless a part of the reply was shown."""
    chosen, shown = deps.model, list[TextWritten]()
    narrow = built.prompt.narrow
    offered = [tool for tool in TOOLS if not narrow or tool.name in NARROW_TOOLS]
    beside = sum(len(tool.description) + len(str(tool.schema)) for tool in offered)

    def tell(event: StreamEvent) -> None:
        shown.extend([event] if isinstance(event, TextWritten) else [])
        (on_event or _nobody)(event)

    for left in (3, 2, 1, 0):
        second = chosen.fallback if chosen.breaker.state == "open" else None
        fit = (second or chosen).fit
        room = fit.room(beside) if fit else None
        messages = messages_of(fitted(built.prompt, room))
        if room is not None:
            note(room=room)  # a replay uses the same limit
        try:
            follow = tell if on_event else None
            return messages, await run_agent(
                chosen, deps.settings, messages, tools, deps.parts.extensions, client, follow, narrow=narrow
            )
        except ModelRejected as error:
            refused = too_long_in(error)
            if not (refused and refused.fit and left) or shown:
                raise
            refused.fit.refused(size_of(messages), refused)
            if chosen.fallback and refused.fit is chosen.fallback.fit:
                chosen = chosen.fallback  # the first model failed
            tools.searches.clear()  # what was found is not in the next prompt
            tools.lists.clear()
    raise AssertionError("the last attempt returns or raises")


async def _store(deps: TurnDependencies, answered: _Answered, trace: str) -> Stored:
    """Store the answer. Not subject to the timeout: a caller told "no reply" would retry a turn that was
    stored."""
    received, built, tools, result, forget = answered
    if received.request.occasion and not result.answer.message:
        return Stored()
    calls = (*result.our_calls, *result.client_calls) if result.client_calls else None
    stored = await deps.answers.store(received, built, tools.all_hits, calls or result.answer, trace, forget)
    found = sum(map(bool, tools.searches))
    deps.context.parts.figures.count(
        "", {"turn searches": len(tools.searches), "turn searches that found": found}
    )
    return stored


async def _settled(
    deps: TurnDependencies, job: Job, until: float | None, on_event: OnEvent | None
) -> Sequence[Decision]:
    """Store the answer's memories now. What is not done at the time `until` goes on in the background."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            decisions = await deps.worker.run_claimed(job)
            for decision in decisions:
                (on_event or _nobody)(MemoryDecided(decision))
            return decisions
    return []


def _reply(
    deps: TurnDependencies, answered: _Answered, stored: Stored, decisions: Sequence[Decision], trace: str
) -> Reply:
    received, built, tools, result, forget = answered
    return Reply(
        message=result.answer.message,
        memories=(*tools.decisions, *decisions),
        tools=result.tools,
        trace_id=trace,
        model=result.model,
        calls=result.calls,
        message_id=stored.message_id,
        conversation=received.request.conversation_id if received.id else None,
        forget=forget,
        usage=result.usage,
        shown=built.prompt.known.long_term_facts,
        found=tools.hits,
        client_calls=result.client_calls,
        cut=result.cut,
    )


def _nobody(_: StreamEvent) -> None:
    """Ignore the event: nobody listens."""


async def with_rights(links: Links, request: TurnRequest, reads: Reads | None, *, on: bool) -> TurnRequest:
    """Add to what an account may read in private: what its linked accounts may read, and the places where the
    person wrote and, as the platform or program says, can still read (`reads`). This takes one statement.
    Raises BadInput if `reads` is passed where it may not be used, or the operator's setting is not `on`."""
    given = bool(reads) and not callable(reads)
    if given and not on:
        raise BadInput("reads: set HACHI_READ_PLACES=true to read other places in private")
    if given and not request.place.private:
        raise BadInput("reads: other places are read only in private; leave out `reads` or `place`")
    if request.user is None or not request.place.private:
        return request
    if not (on and reads):
        accounts = await links.audience(request.user, request.place)
        return replace(request, linked=accounts.besides)
    linked, wrote = await links.with_places(request.user)
    try:
        may = await reads(wrote) if callable(reads) else {one: str(one) for one in wrote if one in reads}
    except Exception as error:
        log.warning("no place is read in private, since the platform does not say which: %s", error)
        may = {}
    return replace(request, linked=linked, reads={one.key: may[one] for one in wrote if one in may})


async def receive(deps: TurnDependencies, request: TurnRequest) -> ReceivedMessage:
    """Store the message, unless the transcript has it already, and apply the changes in the client's history.
    Nothing is stored in an anonymous turn; without memory every turn is anonymous."""
    if not deps.settings.memory:
        request = replace(request, user=None, author=request.speaker)
    elif not request.unkept:  # else `Companion` has put the label into `author` already
        label = await deps.parts.transcript.speakers.label(request.speaker, request.user, request.place)
        request = replace(request, author=label)
    if request.occasion:
        messages = request.occasion.messages
        return ReceivedMessage(request, messages[-1], sources=frozenset(messages))
    sent = await compare(deps.parts.transcript, request)
    if request.user is None:
        return ReceivedMessage(request, None, sent.history)
    async with deps.parts.database.write(lock=sent.locks(request.user)) as connection:
        now = deps.parts.clock()
        follows = await follow(connection, deps.parts.transcript, sent, request.user, now)
        if (id := sent.question) is None:
            message = message_of(request, follows)
            id = message.id
            about: dict[str, Any] = {"user": request.user, "place": request.place, "now": now}
            await deps.parts.transcript.append(connection, message, **about)
        await note_origins(connection, id, request.origins)
    received = ReceivedMessage(request, id, sent.history, sent.continues)
    return await with_stored_calls(deps.parts.database, received, deps.model.name)


def _tool_context(deps: TurnDependencies, received: ReceivedMessage, built: BuiltContext) -> TurnContext:
    return TurnContext(
        user=received.request.user,
        place=received.request.place,
        text=received.request.text,
        message_id=received.id,
        shown=built.shown,
        clock=deps.parts.clock,
        recall=deps.parts.recall,
        writer=deps.parts.writer,
        tasks=deps.context.parts.tasks,
        knowledge=deps.context.parts.documents,
        knowledge_characters=deps.context.budgets.knowledge.characters,
        zone=built.prompt.known.zone,
        unasked=received.request.occasion is not None,
        confirm=received.request.confirm,
        readable=received.request.reader,
    )
