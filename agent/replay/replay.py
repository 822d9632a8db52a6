"""Replays a turn: today's prompts, tools' descriptions, settings and code, with the recorded parts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.models.interface import Model

from agent.companion import Companion
from agent.errors import BadInput
from agent.models.choose import ChosenModel
from agent.replay.cassette import RecordedModel, context_of, recorded_tools
from agent.settings import Settings
from agent.tracing.compare import Difference, differences
from agent.tracing.serialization import Serializer, read_trace
from agent.tracing.setup import made_by, redaction_of
from agent.tracing.trace import TURN, Trace
from agent.turn.context import BuiltContext
from agent.turn.loop import run_agent
from agent.turn.persona import read_persona
from agent.turn.prompt import budgets_of, build_messages_for_model
from memory.audience import Place
from memory.process.spans import Recording, Span, recording
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
    before: Trace
    after: Trace
    differences: tuple[Difference, ...]
    """What changed, by its name, then what went otherwise in order; later ones may follow from the first."""
    options: ReplayOptions

    @property
    def same(self) -> bool:
        return not self.differences


async def replay(pet: Companion, trace: Trace, options: ReplayOptions | None = None) -> Replayed:
    """Run the turn again. Writes nothing, and asks no model before a fork. Raises BadInput if the turn cannot
    be replayed."""
    options = options or ReplayOptions()
    built, calls = context_of(trace), trace.summary.calls
    if options.fork is not None and not 1 <= options.fork <= max(1, calls):
        raise BadInput(f"{trace.summary.short} has {calls} calls; fork at one of them")
    tools = recorded_tools(TOOLS, trace, READING if options.memory == "today" else ())
    prompt = replace(
        built.prompt, persona=read_persona(pet.settings.persona), budgets=budgets_of(pet.settings)
    )
    turn = _tool_context(trace, built, pet if options.memory == "today" else None)
    chosen = pet.components.models.choose()
    try:
        live = None if options.fork is None else options.live or chosen.model
        model = replace(chosen, model=RecordedModel(trace, options.fork, live))
        after = await run_turn(trace, replace(built, prompt=prompt), pet.settings, model, tools, turn)
    finally:
        await chosen.close()
    return Replayed(trace, after, tuple(differences(trace, after)), options)


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
    root = Span(TURN, data={"incoming": trace.root.data["incoming"]})
    recorded = Recording(trace.id, root)
    streamed = any("first" in call.data for call in trace.spans("call"))
    client = built.prompt.client

    async def run() -> None:
        with recording(recorded):
            result = await run_agent(
                chosen,
                settings,
                build_messages_for_model(built.prompt),
                turn or _tool_context(trace, built),
                (lambda _: None) if streamed else None,
                tools,
                client,
            )
            root.data["reply"] = {"message": result.answer.message, "calls": result.calls}

    running = asyncio.create_task(run())  # a task of its own, since a recorded turn may have been cancelled
    try:
        await asyncio.wait([running])
    finally:
        running.cancel()
    if not running.cancelled():
        running.exception()  # the trace has it
    about = replace(trace.summary, model=chosen.name)
    redaction, surface = redaction_of(settings), trace.summary.surface
    serializer = Serializer("redacted", redaction, made_by(settings), surface, trace.summary.process)
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
