"""Replays a turn in a temporary companion, with today's code, prompts, tools and memory, and lists the
differences."""

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from agents.models.interface import Model
from pydantic import TypeAdapter

from agent.companion import Companion
from agent.errors import FAULTS, BadInput
from agent.models.choose import ChosenModel
from agent.replay.recorded import RecordedModel, RecordedProfiles, ReplayClock, recorded_tools
from agent.replay.sandbox import copy_memories, recorded_context
from agent.settings import Settings
from agent.tracing.compare import Difference, differences
from agent.tracing.trace import TURN, Trace, read_data
from agent.turn.turn import TurnDependencies, take_turn
from agent.types import TurnRequest
from agent.types.client import ClientTurn
from memory.audience import Place

Fill = Callable[[Companion], Awaitable[None]]
"""Copies the stored memory into an empty companion."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    tools: Literal["live", "recorded"] = "live"
    """Whether today's tools run on the copied memory, or repeat the recorded results."""
    fork: int | None = None
    """The call, counted from 1, from which on `live` is asked. Earlier calls repeat the recorded outputs."""
    live: Model | None = None
    persona: str | None = None
    """None selects the persona of the settings."""


@dataclass(frozen=True, slots=True)
class Replayed:
    before: Trace
    after: Trace
    differences: tuple[Difference, ...]
    """In the order of events; later differences may follow from the first."""
    options: ReplayOptions

    @property
    def same(self) -> bool:
        return not self.differences


async def replay(pet: Companion, trace: Trace, options: ReplayOptions | None = None) -> Replayed:
    """Run the turn again on a copy of today's memory, without anything said from that turn on. Writes nothing
    to `pet` and asks no model before a fork. Raises BadInput if the turn cannot be replayed."""
    options = options or ReplayOptions()
    check_replayable(trace)
    calls = trace.summary.calls
    if options.fork is not None and not 1 <= options.fork <= max(1, calls):
        raise BadInput(f"{trace.summary.short} has {calls} calls; fork at one of them")
    chosen = pet.components.models.choose()
    try:
        after = await run_turn(trace, pet.settings, chosen, partial(copy_memories, pet, trace), options)
    finally:
        await chosen.close()
    return Replayed(trace, after, tuple(differences(trace, after)), options)


_CLIENT: TypeAdapter[ClientTurn | None] = TypeAdapter(ClientTurn | None)


def check_replayable(trace: Trace) -> None:
    """Raise BadInput with the reason if the trace cannot be replayed."""
    short = trace.summary.short
    if trace.summary.kind != TURN:
        raise BadInput(f"{short} is a background job; replay the turn that it belongs to")
    if trace.summary.status in ("running", "killed"):
        raise BadInput(f"{short} has not ended, so there is nothing to compare with")
    if not read_data(trace.root, "incoming", "text"):
        why = "the user was anonymous" if trace.summary.user is None else "HACHI_TRACE_CONTENT was none"
        raise BadInput(f"{short} cannot be replayed: what was said was not recorded ({why})")


async def run_turn(
    trace: Trace, settings: Settings, chosen: ChosenModel, fill: Fill, options: ReplayOptions
) -> Trace:
    """Return the trace of the new run, even if it fails. `chosen` is the live model, which is called only
    from a fork on."""
    clock = ReplayClock(trace.summary.started_at)
    model = RecordedModel(trace, clock, options.fork, options.live or chosen.model)
    with tempfile.TemporaryDirectory(prefix="hachi-replay-", ignore_cleanup_errors=True) as folder:
        sandboxed = sandbox_settings(settings, folder)
        async with Companion.open(sandboxed, clock=clock, model=model, upkeep=False) as sandbox:
            await fill(sandbox)
            runtime = await sandbox.runtime()
            await runtime.worker.stop()  # background jobs must not change what the turn sees
            name = trace.summary.model if options.fork is None else chosen.name
            deps = replace(runtime.turn, model=replace(chosen, name=name, model=model))
            with suppress(*FAULTS):  # the trace already has them
                await take_turn(_as_recorded(deps, trace, options), _request(trace), trace_id=trace.id)
            await deps.recorder.flush()
            return await sandbox.traces.get(trace.id, clock())


def sandbox_settings(settings: Settings, folder: str) -> Settings:
    """Return settings that use only this folder and no model besides the turn's own."""
    apart = {"home": Path(folder), "database_url": None, "qdrant_url": None, "traces_url": None}
    return settings.model_copy(update={**apart, "traces": True, "look_back": "off", "judge": False})


def _as_recorded(deps: TurnDependencies, trace: Trace, options: ReplayOptions) -> TurnDependencies:
    context = recorded_context(trace)
    known: dict[str, Any] = context.get("known") or {}
    persona = deps.context.persona if options.persona is None else options.persona
    profiles = RecordedProfiles(known, deps.database)
    return replace(
        deps,
        context=replace(
            deps.context,
            profiles=profiles,
            persona=persona,
            reminds=lambda _: bool(context.get("reminders")),
        ),
        tools=recorded_tools(deps.tools, trace) if options.tools == "recorded" else deps.tools,
    )


def _saw_own_message(trace: Trace) -> bool:
    """Return whether searches found the turn's own message, as happens in a process that has just started."""
    candidates = (one for span in trace.spans("search") for one in span.data.get("candidates", ()))
    return any(one["id"] == trace.summary.message_id for one in candidates)


def _request(trace: Trace) -> TurnRequest:
    given = trace.root.data["incoming"]
    texts = {
        name: given[name] for name in ("text", "conversation", "author", "instructions") if name in given
    }
    return TurnRequest(
        **texts,
        user=trace.summary.user,
        sent_at=datetime.fromisoformat(given["sent_at"]),
        place=Place.of_key(trace.summary.place),
        earlier=tuple((role, text) for role, text in given.get("earlier") or ()),
        client=_CLIENT.validate_python(given.get("client")),
    )
