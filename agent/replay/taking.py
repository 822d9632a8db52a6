"""One recorded turn, taken again in a place of its own: on today's code, prompts and tools, by the clock and
under the ids that it had."""

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
from agent.replay.model import Clock, RecordedModel
from agent.replay.scratch import Told
from agent.replay.tools import Handling, handled
from agent.settings import Settings
from agent.tracing.trace import Trace
from agent.turn.turn import TurnDependencies, take_turn
from agent.types import TurnRequest
from memory.audience import Place

Fill = Callable[[Companion], Awaitable[None]]
"""Puts what was remembered into an empty companion."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a turn is taken again."""

    tools: Handling = "live"
    fork: int | None = None
    """The call, counted from 1, from which on `live` is asked instead of the record."""
    live: Model | None = None
    persona: str | None = None
    """Who the companion is, if not as the settings say."""


async def take_again(trace: Trace, settings: Settings, chosen: ChosenModel, fill: Fill, way: Way) -> Trace:
    """What comes of it; a turn that fails is a trace too. `chosen` is asked the way today's model is, and
    never called but from a fork on."""
    clock = Clock(trace.summary.started_at)
    recorded = RecordedModel(trace, clock, way.fork, way.live or chosen.model)
    with tempfile.TemporaryDirectory(prefix="hachi-replay-", ignore_cleanup_errors=True) as folder:
        alone = _alone(settings, Path(folder))
        async with Companion.open(alone, clock=clock, model=recorded, upkeep=False) as scratch:
            await fill(scratch)
            runtime = await scratch.runtime()
            house = runtime.turn
            await runtime.worker.stop()  # what is done beside the turn would be seen in it, or not
            scratch.components.sync.begun = not _searched_itself(trace)
            name = trace.summary.model if way.fork is None else chosen.name
            house = replace(house, model=replace(chosen, name=name, model=recorded))
            with suppress(*FAULTS):  # it is in the trace
                await take_turn(_as_then(house, trace, way), _request(trace), trace_id=trace.id)
            await house.recorder.flush()
            return await scratch.traces.get(trace.id, clock())


def _alone(settings: Settings, folder: Path) -> Settings:
    """As they are, but in this folder, and without what would ask a model beside the turn."""
    apart: dict[str, Any] = {"home": folder, "database_url": None, "qdrant_url": None, "traces_url": None}
    return settings.model_copy(update=apart | {"traces": True, "look_back": "off", "judge": False})


def _as_then(house: TurnDependencies, trace: Trace, way: Way) -> TurnDependencies:
    scene: dict[str, Any] = next((span.data.get("scene") or {} for span in trace.spans("scene")), {})
    told = Told(scene.get("known") or {}, house.database)
    persona = house.persona if way.persona is None else way.persona
    tools = handled(house.tools, trace, way.tools)
    return replace(house, contexts=told, tools=tools, persona=persona)


def _searched_itself(trace: Trace) -> bool:
    """Whether the turn's own message was in the index when it searched, as where a process had just begun."""
    searches = (span.data.get("candidates", ()) for span in trace.spans("search"))
    return any(one["id"] == trace.summary.message_id for found in searches for one in found)


def _request(trace: Trace) -> TurnRequest:
    said = trace.root.data["incoming"]
    return TurnRequest(
        text=said["text"],
        user=trace.summary.user,
        sent_at=datetime.fromisoformat(said["sent_at"]),
        place=Place.of_key(trace.summary.place),
        conversation=said.get("conversation"),
        author=said.get("author"),
        instructions=said.get("instructions") or "",
        earlier=tuple((role, text) for role, text in said.get("earlier") or ()),
    )
