"""Replays a turn: today's prompts, tools' descriptions, settings and code, with the recorded parts."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from agents.models.interface import Model
from pydantic import ValidationError

from agent.background.consolidation_answer import ConsolidationAnswer, extract_memory_updates, quoted_summary
from agent.background.consolidation_input import ConsolidationInput
from agent.companion import Companion
from agent.errors import BadInput
from agent.models.choice.choose import ChosenModel
from agent.replay.cassette import RecordedModel, context_of, decide_again, recorded_tools
from agent.replay.live import FactsOfThen, UnchangedTasks, behaves_otherwise
from agent.replay.today import found_otherwise
from agent.settings import Settings
from agent.tracing.differences import Difference, differences
from agent.tracing.serialization import Serializer, read_trace
from agent.tracing.setup import made_by, redaction_of
from agent.tracing.trace import Trace, TraceWithJobs
from agent.turn.context.build import BuiltContext
from agent.turn.context.persona import read_persona
from agent.turn.context.prompt import budgets_of, build_messages_for_model
from agent.turn.extensions import Extensions
from agent.turn.loop import run_agent
from agent.types import Usage
from memory.audience import Place
from memory.errors import NotFound
from memory.process.spans import Recording, Span, note, recording, span
from tools.context import TurnContext
from tools.registry import TOOLS, Tool

READING = frozenset({"search_memories", "get_recent_memories", "search_knowledge"})
"""The tools that only read: today's memory is asked with these alone."""
OURS = READING | {"remember", "update_task"}
"""The tools that run for a live model where it gives other arguments; they store nothing. Of a program's own
tools there is no telling what they do."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    memory: Literal["recorded", "today"] = "recorded"
    """Whether the tools repeat what they found, or look into today's memory."""
    fork: int | None = None
    """The call, counted from 1, from which on `live` is asked. Earlier calls repeat the recorded outputs."""
    live: Model | None = None
    """None selects the model of the settings."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the turn itself took, without the work after it."""

    usage: Usage
    took: float | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Replayed:
    before: TraceWithJobs
    after: Trace
    """The turn as it went again."""
    differences: tuple[Difference, ...]
    """What it was made by that has changed, by its name; then what went otherwise in the turn and in the work
    after it, in order: later ones may follow from the first."""
    options: ReplayOptions
    figures: tuple[Figures, Figures]
    """Before and after."""

    @property
    def live(self) -> bool:
        return self.options.fork is not None

    @property
    def behaviour(self) -> tuple[Difference, ...]:
        """What went otherwise."""
        return tuple(one for one in self.differences if not one.cause)

    @property
    def told(self) -> tuple[Difference, ...]:
        """What counts: of a live model, which is another one, what went otherwise; else all."""
        return self.behaviour if self.live else self.differences

    @property
    def same(self) -> bool:
        return not self.told


async def replay(
    pet: Companion, whole: TraceWithJobs, options: ReplayOptions | None = None, holds: Sequence[str] = ()
) -> Replayed:
    """Run the turn and the work after it again. Writes nothing, and asks no model before a fork. A live model
    takes the turn alone, is judged on what it does, and its reply on the texts that it `holds`. Raises
    BadInput if the turn cannot be replayed."""
    options = options or ReplayOptions()
    trace, settings = whole.trace, pet.settings
    built, calls = context_of(trace), trace.summary.calls
    if options.fork is not None and not 1 <= options.fork <= max(1, calls):
        raise BadInput(f"{trace.summary.short} has {calls} calls; fork at one of them")
    parts, live = pet.components, options.fork is not None
    reading = READING if options.memory == "today" else frozenset()
    tools = recorded_tools(
        parts.extensions.tools, trace, settings.importance_floor, reading, OURS if live else ()
    )
    prompt = replace(built.prompt, persona=read_persona(settings.persona), budgets=budgets_of(settings))
    turn = tool_context(trace, built, pet if reading or live else None)
    if live:
        then = FactsOfThen(whole, settings.importance_floor, parts.recall)
        nothing: Any = UnchangedTasks(parts.tasks)
        known: Any = then
        turn = replace(turn, recall=known, writer=known, tasks=nothing, clock=lambda: built.prompt.now)
    chosen = parts.models.choose()
    try:
        model = options.live or chosen.model if live else None
        asked = chosen.settings if live else replace(chosen.settings, retry=None)  # the trace has the retries
        recorded = RecordedModel.of_turn(trace, options.fork, model)
        second = replace(chosen.fallback or chosen, model=recorded, fallback=None)
        asks = replace(chosen, model=recorded, settings=asked, fallback=second)
        after = await run_turn(trace, replace(built, prompt=prompt), settings, asks, tools, turn)
    finally:
        await chosen.close()
    found = differences(trace, after)
    if live:
        found = [one for one in found if one.cause] + list(behaves_otherwise(whole, after, holds))
    else:
        found[:0] = [one async for one in found_otherwise(pet, trace, after)] if reading else []
        found += [one async for one in _work_otherwise(pet, whole, chosen, tools)]
    ordered = tuple(sorted(dict.fromkeys(found), key=lambda one: not one.cause))
    figures = [
        Figures(one.usage, one.took, pet.traces.prices.total([(one.model, one.usage)]))
        for one in (trace.summary, after.summary)
    ]
    return Replayed(whole, after, ordered, options, (figures[0], figures[1]))


async def _work_otherwise(
    pet: Companion, whole: TraceWithJobs, chosen: ChosenModel, tools: Sequence[Tool]
) -> AsyncIterator[Difference]:
    """Do the work after the turn again, and yield what differs in it."""
    upkeep = await pet.components.models.upkeep() if whole.jobs else chosen
    for job in whole.jobs:
        again = partial(_work_again, job, pet.settings, upkeep)
        for one in differences(job, await _again(job, pet.settings, upkeep.name, again, tools)):
            yield one


async def _work_again(trace: Trace, settings: Settings, upkeep: ChosenModel) -> None:
    """Record what today's code makes of what a job read and was answered. Stores nothing."""
    for recorded in trace.root.spans:
        decide_again(recorded, settings.importance_floor)
        if recorded.kind == "exchange":
            await _consolidate_again(trace, recorded, settings, upkeep)


async def _consolidate_again(trace: Trace, recorded: Span, settings: Settings, upkeep: ChosenModel) -> None:
    try:
        reading = ConsolidationInput.from_trace(recorded.data.get("reading"))
    except ValidationError as error:
        raise BadInput(f"{trace.summary.short} cannot be replayed: an older Hachi recorded it") from error
    calls = [one for one in recorded.spans if one.kind == "call"]
    answers = RecordedModel(trace, calls)
    second = replace(upkeep.fallback or upkeep, model=answers, fallback=None)
    model = replace(upkeep, model=answers, fallback=second)
    found = ConsolidationAnswer(quoted_summary(reading, settings.summary_budget))
    with span("exchange"):
        if calls:
            with suppress(Exception):  # the recorded call failed too
                found = await extract_memory_updates(model, reading, settings.summary_budget)
        if "findings" in recorded.data:
            note(findings=found)


@dataclass(frozen=True, slots=True)
class NotReplayed:
    id: str
    why: str


async def replay_each(
    pet: Companion, turns: Iterable[tuple[str, Sequence[str]]], options: ReplayOptions | None = None
) -> AsyncIterator[Replayed | NotReplayed]:
    """Replay the turns with these ids one after the other, each with the texts that its reply must hold. What
    cannot be replayed says why."""
    for id, holds in turns:
        try:
            yield await replay(pet, await pet.traces.get_with_jobs(id, pet.clock()), options, holds)
        except (BadInput, NotFound) as error:
            yield NotReplayed(id, str(error))


def causes(replayed: Iterable[Replayed]) -> list[tuple[str, int, int]]:
    """Return each first difference, with how many turns it is the first of, and how many of these went
    otherwise; the most frequent first."""
    turns = defaultdict[str, list[Replayed]](list)
    for one in replayed:
        for first in one.told[:1]:
            turns[f"{first.where} {first.what}"].append(one)
    found = [(what, len(ones), sum(bool(one.behaviour) for one in ones)) for what, ones in turns.items()]
    return sorted(found, key=lambda group: -group[1])


async def run_turn(
    trace: Trace,
    built: BuiltContext,
    settings: Settings,
    chosen: ChosenModel,
    tools: Sequence[Tool],
    turn: TurnContext | None = None,
) -> Trace:
    """Return the trace of the new run, from the prompt to the answer, even if it fails. Streams if the
    recorded turn did. Nothing of the answer is stored."""
    streamed = any("first" in call.data for call in trace.spans("call"))
    turn = turn or tool_context(trace, built)

    async def run() -> None:
        note(incoming=trace.root.data["incoming"])
        result = await run_agent(
            chosen,
            settings,
            build_messages_for_model(built.prompt),
            turn,
            Extensions(tools),
            built.prompt.client,
            (lambda _: None) if streamed else None,
            narrow=built.prompt.narrow,
        )
        note(reply={"message": result.answer.message, "calls": result.calls})
        if turn.writer and result.answer.memories:
            await turn.writer.remember(result.answer.memories, turn.origin())

    return await _again(trace, settings, chosen.name, run, tools)


async def _again(
    trace: Trace,
    settings: Settings,
    model: str,
    run: Callable[[], Awaitable[None]],
    tools: Sequence[Tool] = TOOLS,
) -> Trace:
    """Return the trace of what `run` does, even if it fails."""
    recorded = Recording(trace.id, Span(trace.summary.kind))

    async def record() -> None:
        with recording(recorded):
            await run()

    running = asyncio.create_task(
        record()
    )  # a task of its own, since a recorded turn may have been cancelled
    try:
        await asyncio.wait([running])
    finally:
        running.cancel()
    if not running.cancelled():
        running.exception()  # the trace has it
    about = replace(trace.summary, model=model if trace.summary.model else "")
    redaction, surface = redaction_of(settings), trace.summary.surface
    made = made_by(settings, tools)
    serializer = Serializer("redacted", redaction, made, surface, trace.summary.process)
    summary, body, _ = serializer.serialize(recorded, about)
    return replace(read_trace(summary, body or b""), made_by=serializer.made_by)


def tool_context(trace: Trace, built: BuiltContext, pet: Companion | None = None) -> TurnContext:
    """Return the context for tools: with today's memory, or for recorded tools, which use none."""
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
    )
