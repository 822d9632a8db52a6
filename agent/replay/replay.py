"""Replays a turn: today's prompts, tools' descriptions, settings and code, with the recorded parts."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from agents.models.interface import Model

from agent.companion import Companion
from agent.errors import BadInput
from agent.models.choose import ChosenModel
from agent.replay.cassette import RecordedModel, context_of, recorded_tools
from agent.replay.today import found_otherwise
from agent.replay.work import work_again
from agent.settings import Settings
from agent.tracing.compare import Difference, differences
from agent.tracing.serialization import Serializer, read_trace
from agent.tracing.setup import made_by, redaction_of
from agent.tracing.trace import Summary, Trace, TraceWithJobs
from agent.turn.context.build import BuiltContext
from agent.turn.context.persona import read_persona
from agent.turn.context.prompt import budgets_of, build_messages_for_model
from agent.turn.loop import run_agent
from memory.audience import Place
from memory.errors import NotFound
from memory.process.spans import Recording, Span, note, recording
from tools.context import TurnContext
from tools.registry import TOOLS, Tool

READING = frozenset({"search_memories", "get_recent_memories", "search_knowledge"})
"""The tools that only read: today's memory is asked with these alone."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    memory: Literal["recorded", "today"] = "recorded"
    """Whether the tools repeat what they found, or look into today's memory."""
    fork: int | None = None
    """The call, counted from 1, from which on `live` is asked. Earlier calls repeat the recorded outputs."""
    live: Model | None = None
    """None selects the model of the settings."""


@dataclass(frozen=True, slots=True)
class Replayed:
    before: TraceWithJobs
    after: Trace
    """The turn as it went again."""
    differences: tuple[Difference, ...]
    """What it was made by that has changed, by its name; then what went otherwise in the turn and in the work
    after it, in order: later ones may follow from the first."""
    options: ReplayOptions

    @property
    def behaves_otherwise(self) -> bool:
        return not all(one.cause for one in self.differences)

    @property
    def same(self) -> bool:
        return not self.differences


async def replay(pet: Companion, whole: TraceWithJobs, options: ReplayOptions | None = None) -> Replayed:
    """Run the turn and the work after it again. Writes nothing, and asks no model before a fork. Raises
    BadInput if the turn cannot be replayed."""
    options = options or ReplayOptions()
    trace, settings = whole.trace, pet.settings
    built, calls = context_of(trace), trace.summary.calls
    if options.fork is not None and not 1 <= options.fork <= max(1, calls):
        raise BadInput(f"{trace.summary.short} has {calls} calls; fork at one of them")
    today = options.memory == "today"
    tools = recorded_tools(
        pet.components.extensions.tools, trace, settings.importance_floor, READING if today else ()
    )
    prompt = replace(built.prompt, persona=read_persona(settings.persona), budgets=budgets_of(settings))
    turn = _tool_context(trace, built, pet if today else None)
    chosen = pet.components.models.choose()
    try:
        live = None if options.fork is None else options.live or chosen.model
        asked = chosen.settings if live else replace(chosen.settings, retry=None)  # the trace has the retries
        model = replace(chosen, model=RecordedModel.of_turn(trace, options.fork, live), settings=asked)
        after = await run_turn(trace, replace(built, prompt=prompt), settings, model, tools, turn)
    finally:
        await chosen.close()
    found = differences(trace, after)
    found[:0] = [one async for one in found_otherwise(pet, trace, after)] if today else []
    upkeep = await pet.components.models.upkeep() if whole.jobs else chosen
    for job in whole.jobs:
        again = await _again(
            *(job, settings, upkeep.name, partial(work_again, job, settings, upkeep)),
            tools,
        )
        found += differences(job, again)
    ordered = sorted(dict.fromkeys(found), key=lambda one: not one.cause)
    return Replayed(whole, after, tuple(ordered), options)


@dataclass(frozen=True, slots=True)
class NotReplayed:
    summary: Summary
    why: str


async def replay_each(
    pet: Companion, turns: Iterable[Summary], options: ReplayOptions | None = None
) -> AsyncIterator[Replayed | NotReplayed]:
    """Replay these turns one after the other. What cannot be replayed says why."""
    for summary in turns:
        try:
            whole = await pet.traces.get_with_jobs(summary.id, pet.clock())
            yield await replay(pet, whole, options)
        except (BadInput, NotFound) as error:
            yield NotReplayed(summary, str(error))


def causes(replayed: Iterable[Replayed]) -> list[tuple[str, int, int]]:
    """Return each first difference, with how many turns it is the first of, and how many of these went
    otherwise; the most frequent first."""
    turns = defaultdict[str, list[Replayed]](list)
    for one in replayed:
        for first in one.differences[:1]:
            turns[f"{first.where} {first.what}"].append(one)
    found = [(what, len(ones), sum(one.behaves_otherwise for one in ones)) for what, ones in turns.items()]
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

    async def run() -> None:
        note(incoming=trace.root.data["incoming"])
        result = await run_agent(
            chosen,
            settings,
            build_messages_for_model(built.prompt),
            turn or _tool_context(trace, built),
            (lambda _: None) if streamed else None,
            tools,
            built.prompt.client,
        )
        note(reply={"message": result.answer.message, "calls": result.calls})

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


def _tool_context(trace: Trace, built: BuiltContext, pet: Companion | None = None) -> TurnContext:
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
        accept=nothing,
        accept_task=nothing,
        tasks=parts.tasks if parts else nothing,
        knowledge=parts.documents if parts else nothing,
        knowledge_characters=built.prompt.budgets.knowledge.characters,
        zone=built.prompt.known.zone,
    )
