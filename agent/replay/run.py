"""Runs one recorded turn in a temporary companion."""

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.models.interface import Model

from agent.companion import Companion
from agent.errors import FAULTS
from agent.models.choose import ChosenModel
from agent.replay.model import RecordedModel, ReplayClock
from agent.replay.sandbox import RecordedProfiles, recorded_context
from agent.replay.tools import ToolMode, tools_for
from agent.settings import Settings
from agent.tracing.trace import Trace
from agent.turn.turn import TurnDependencies, take_turn
from agent.types import TurnRequest
from memory.audience import Place

Fill = Callable[[Companion], Awaitable[None]]
"""Copies the stored memory into an empty companion."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    tools: ToolMode = "live"
    fork: int | None = None
    """The call, counted from 1, from which on `live` is asked. Earlier calls repeat the recorded outputs."""
    live: Model | None = None
    persona: str | None = None
    """None selects the persona of the settings."""


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
            sandbox.components.sync.begun = not _saw_own_message(trace)
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
    known: dict[str, Any] = recorded_context(trace).get("known") or {}
    persona = deps.sources.persona if options.persona is None else options.persona
    profiles = RecordedProfiles(known, deps.database)
    return replace(
        deps,
        sources=replace(deps.sources, profiles=profiles, persona=persona),
        tools=tools_for(options.tools, deps.tools, trace),
    )


def _saw_own_message(trace: Trace) -> bool:
    """Return whether searches found the turn's own message, as happens in a process that has just started."""
    candidates = (one for span in trace.spans("search") for one in span.data.get("candidates", ()))
    return any(one["id"] == trace.summary.message_id for one in candidates)


def _request(trace: Trace) -> TurnRequest:
    given = trace.root.data["incoming"]
    return TurnRequest(
        text=given["text"],
        user=trace.summary.user,
        sent_at=datetime.fromisoformat(given["sent_at"]),
        place=Place.of_key(trace.summary.place),
        conversation=given.get("conversation"),
        author=given.get("author"),
        instructions=given.get("instructions") or "",
        earlier=tuple((role, text) for role, text in given.get("earlier") or ()),
    )
