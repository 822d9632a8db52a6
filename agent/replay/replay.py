"""Replays a turn with today's prompts, tools, settings and code, but recorded context and results."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from agents.models.interface import Model
from pydantic import ValidationError

from agent.background.consolidation.answer import ConsolidationAnswer
from agent.background.consolidation.ask import extract_memory_updates, quoted_summary
from agent.background.consolidation.input import ConsolidationInput
from agent.companion import Companion
from agent.errors import BadInput
from agent.models.choice.choose import ChosenModel
from agent.replay.cassette import RecordedModel, context_of, decide_again, described_tools, recorded_tools
from agent.settings import Settings
from agent.tracing.differences import Difference, differences
from agent.tracing.serialization import Serializer, read_trace
from agent.tracing.setup import made_by, redaction_of
from agent.tracing.trace import Trace, TraceWithJobs, shown_ids
from agent.tracing.why.explain import explain
from agent.tracing.why.gates import Question
from agent.turn.context.gather import BuiltContext
from agent.turn.context.persona import read_persona
from agent.turn.context.prompt import budgets_of, messages_of, within_budgets
from agent.turn.context.smaller import fitted
from agent.turn.extensions import Extensions
from agent.turn.loop import run_agent
from agent.types.budget import SUMMARY_BUDGET
from memory.audience import Place
from memory.errors import NotFound
from memory.process.spans import Recording, Span, note, recording, span
from tools.context import TurnContext
from tools.registry import READING, TOOLS, Tool


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    memory: Literal["recorded", "today"] = "recorded"
    """Whether tools return recorded results, or search today's memory."""
    fork: int | None = None
    """The number, from 1, of the first call that `live` answers. Earlier calls return recorded outputs."""
    live: Model | None = None
    """The model that answers from `fork` on. None: the model of the settings."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    before: TraceWithJobs
    after: Trace
    """The replayed turn."""
    differences: tuple[Difference, ...]
    """First the versions, prompts, tools and settings that changed, by name. Then the differences in the
    turn, in order; later ones may follow from earlier ones. Differences in the jobs after the turn follow,
    unless a live model was asked."""
    options: ReplayOptions

    @property
    def live(self) -> bool:
        return self.options.fork is not None

    @property
    def same(self) -> bool:
        return not self.differences

    @property
    def behaves_otherwise(self) -> bool:
        return not all(one.cause for one in self.differences)


async def replay(pet: Companion, whole: TraceWithJobs, options: ReplayOptions | None = None) -> ReplayResult:
    """Replay a turn and the jobs after it; with a live model, only the turn. Stores nothing, and calls no
    model before a fork. Raises BadInput if the turn cannot be replayed."""
    options = options or ReplayOptions()
    trace, settings, parts = whole.trace, pet.settings, pet.components
    built, calls, live = context_of(trace), trace.summary.calls, options.fork is not None
    if options.fork is not None and not 1 <= options.fork <= max(1, calls):
        raise BadInput(f"{trace.summary.short} has {calls} calls; fork at one of them")
    reading = READING if options.memory == "today" else frozenset()
    tools = recorded_tools(parts.extensions.tools, trace, settings.importance_floor, today=reading, live=live)
    prompt = replace(built.prompt, persona=read_persona(settings.persona), budgets=budgets_of(settings))
    turn = tool_context(trace, built, pet if reading or live else None)
    chosen = parts.models.choose()
    try:
        model = RecordedModel.of_turn(trace, options.fork, (options.live or chosen.model) if live else None)
        asks = answered_by(chosen, model, retries=live)  # the trace has the retries of recorded calls
        after = await run_turn(trace, replace(built, prompt=prompt), settings, asks, tools, turn)
    finally:
        await chosen.close()
    changes = [one async for one in search_differences(pet, trace, after)] if reading else []
    if live and (built.prompt.client.pictures or built.prompt.client.quoted_images):
        changes.append(
            Difference("the pictures", "are not in the trace, so the model is not shown them", "", "")
        )
    changes += differences(trace, after)
    if whole.jobs and not live:
        consolidating = await parts.models.consolidating()
        changes += [one async for one in job_differences(whole, settings, consolidating, tools)]
    ordered = sorted(dict.fromkeys(changes), key=lambda one: not one.cause)
    return ReplayResult(whole, after, tuple(ordered), options)


def answered_by(chosen: ChosenModel, model: Model, *, retries: bool = False) -> ChosenModel:
    """Return the chosen model and its fallback, both replaced by `model`."""
    chosen = replace(chosen, model=model, retries=chosen.retries if retries else 0)
    return replace(chosen, fallback=replace(chosen.fallback or chosen, model=model, fallback=None))


async def search_differences(pet: Companion, before: Trace, after: Trace) -> AsyncIterator[Difference]:
    """Yield the memories that the model received in only one of the two turns, each with the gate that
    stopped it in the other."""
    now = pet.clock()
    today = replace(after, summary=replace(after.summary, started_at=now))
    before_ids, after_ids = (_prompted_ids(trace) for trace in (before, after))
    for ids, other in ((before_ids - after_ids, today), (after_ids - before_ids, before)):
        for id in sorted(ids):
            with suppress(NotFound):  # a message
                [one] = await explain(pet.traces, Question(now, None, other), id, ["memory"])
                gate, text = one.stopped_at, one.content or "(forgotten)"
                outcome = f"{gate.name}: {gate.value}" if gate else "differs"
                if other is today:
                    yield Difference(f"no longer given “{text}”", outcome, text, "")
                else:
                    yield Difference(f"given now “{text}”", f"then {outcome}", "", text)


def _prompted_ids(trace: Trace) -> set[str]:
    return {id for search in trace.spans("search") for id in shown_ids(search)}


async def job_differences(
    whole: TraceWithJobs, settings: Settings, consolidating: ChosenModel, tools: Sequence[Tool]
) -> AsyncIterator[Difference]:
    """Replay the jobs after the turn, and yield what differs."""
    for job in whole.jobs:
        work = partial(_repeat_work, job, settings, consolidating)
        for one in differences(job, await _recorded_run(job, settings, consolidating.name, work, tools)):
            yield one


async def _repeat_work(trace: Trace, settings: Settings, consolidating: ChosenModel) -> None:
    """Record the results of today's code for the input and answers of a recorded job. Stores nothing."""
    for recorded in trace.root.spans:
        decide_again(recorded, settings.importance_floor)
        if recorded.kind == "exchange":
            await _repeat_consolidation(trace, recorded, settings, consolidating)


async def _repeat_consolidation(
    trace: Trace, recorded: Span, settings: Settings, consolidating: ChosenModel
) -> None:
    try:
        reading = ConsolidationInput.from_trace(recorded.data.get("reading"))
    except ValidationError as error:
        raise BadInput(f"{trace.summary.short} cannot be replayed: an older Hachi recorded it") from error
    calls = [one for one in recorded.spans if one.kind == "call"]
    model = answered_by(consolidating, RecordedModel(trace, calls), retries=True)
    answer = ConsolidationAnswer(summary=quoted_summary(reading, SUMMARY_BUDGET))
    with span("exchange"):
        if calls:
            with suppress(Exception):  # the recorded call failed too
                answer = await extract_memory_updates(model, reading, SUMMARY_BUDGET)
        if "findings" in recorded.data:
            note(findings=answer)


@dataclass(frozen=True, slots=True)
class ReplayFailure:
    id: str
    why: str


async def replay_each(
    pet: Companion, turns: Iterable[str | TraceWithJobs], options: ReplayOptions | None = None
) -> AsyncIterator[ReplayResult | ReplayFailure]:
    """Replay turns one after the other, by id or as read from a file. A turn that cannot be replayed yields
    the reason."""
    for turn in turns:
        try:
            whole = await pet.traces.get_with_jobs(turn, pet.clock()) if isinstance(turn, str) else turn
            yield await replay(pet, whole, options)
        except (BadInput, NotFound) as error:
            yield ReplayFailure(turn if isinstance(turn, str) else turn.trace.id, str(error))


def causes(replayed: Iterable[ReplayResult]) -> list[tuple[str, int, int]]:
    """Count the turns by their first difference, and how many of these behaved differently; most frequent
    first."""
    turns = defaultdict[str, list[ReplayResult]](list)
    for result in replayed:
        for first in result.differences[:1]:
            turns[f"{first.where} {first.what}"].append(result)
    groups = [(what, len(ones), sum(one.behaves_otherwise for one in ones)) for what, ones in turns.items()]
    return sorted(groups, key=lambda group: -group[1])


async def run_turn(
    trace: Trace,
    built: BuiltContext,
    settings: Settings,
    chosen: ChosenModel,
    tools: Sequence[Tool],
    turn: TurnContext | None = None,
) -> Trace:
    """Run the recorded turn again, from prompt to answer, and return the new trace, even if the turn fails.
    Streams if the recorded turn did. Stores nothing."""
    streamed = any("first" in call.data for call in trace.spans("call"))
    turn = turn or tool_context(trace, built)
    server_tools = described_tools(trace.root.data.get("servers_tools") or {})  # no server is asked
    server_tools = [*recorded_tools(server_tools, trace, settings.importance_floor, live=True)]

    async def run() -> None:
        note(incoming=trace.root.data["incoming"])
        result = await run_agent(
            chosen,
            settings,
            messages_of(fitted(within_budgets(built.prompt), trace.root.data.get("room"))),
            turn,
            Extensions([*tools, *server_tools]),
            built.prompt.client,
            (lambda _: None) if streamed else None,
            narrow=built.prompt.narrow,
        )
        note(reply={"message": result.answer.message, "calls": result.calls})

    return await _recorded_run(trace, settings, chosen.name, run, tools)


async def _recorded_run(
    trace: Trace,
    settings: Settings,
    model: str,
    run: Callable[[], Awaitable[None]],
    tools: Sequence[Tool] = TOOLS,
) -> Trace:
    """Run `run`, and return its trace, even if it fails."""
    recorded = Recording(trace.id, Span(trace.summary.kind))

    async def record() -> None:
        with recording(recorded):
            await run()

    running = asyncio.create_task(record())  # a task of its own: a recorded turn may have been cancelled
    try:
        await asyncio.wait([running])
    finally:
        running.cancel()
    if not running.cancelled():
        running.exception()  # the trace has it
    about = replace(trace.summary, model=model if trace.summary.model else "")
    made, surface = made_by(settings, tools), trace.summary.surface
    serializer = Serializer("redacted", redaction_of(settings), made, surface, trace.summary.process)
    summary, body, _ = serializer.serialize(recorded, about)
    return replace(read_trace(summary, body or b""), made_by=made)


def tool_context(trace: Trace, built: BuiltContext, pet: Companion | None = None) -> TurnContext:
    """Return the context for tools: with today's memory, or with none if the tools are recorded."""
    parts = pet.components if pet else None
    nothing: Any = None
    return TurnContext(
        user=trace.summary.user,
        place=Place.of_key(trace.summary.place),
        text=built.prompt.text,
        message_id=trace.summary.message_id,
        shown=built.shown,
        clock=pet.clock if pet else lambda: built.prompt.now,
        recall=parts.recall if parts else nothing,
        writer=nothing,
        tasks=parts.tasks if parts else nothing,
        knowledge=parts.documents if parts else nothing,
        knowledge_characters=built.prompt.budgets.knowledge.characters,
        zone=built.prompt.known.zone,
        unasked=bool(built.prompt.occasion),
    )
