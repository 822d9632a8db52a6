"""Taking a recorded turn again, on today's code, prompts, tools and memory."""

import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.companion import Companion
from agent.errors import FAULTS, BadInput
from agent.messages import Incoming
from agent.replay.model import Clock, RecordedModel
from agent.replay.scratch import Told, copy, moment_of
from agent.replay.tools import Handling, handled
from agent.traces.comparing import Difference, differences
from agent.traces.trace import TURN, Trace
from agent.turn import House, take_turn
from memory.audience import Place

if TYPE_CHECKING:
    from agents.models.interface import Model

    from agent.settings import Settings


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a turn went when it was taken again."""

    before: Trace
    after: Trace
    differences: tuple[Difference, ...]
    """In the order in which things happened; the first is what the others may follow from."""
    forked_at: int | None = None
    """From this call on another model was asked, and what follows is expected to differ."""

    @property
    def same(self) -> bool:
        return not self.differences


async def replay(
    pet: Companion,
    trace: Trace,
    *,
    tools: Handling = "live",
    fork: int | None = None,
    live: "Model | None" = None,
) -> Replayed:
    """Take the turn again on a copy of what is remembered; nothing real is written, and no model is asked.

    With `fork` the model of the settings, or `live`, is asked from that call on (counted from 1). Raises
    BadInput where the trace does not hold what was said.
    """
    _can_be_replayed(trace, fork)
    moment = await moment_of(pet, trace)
    clock = Clock(trace.summary.started_at)
    chosen = pet.chosen_model()
    recorded = RecordedModel(trace, clock, fork, live or chosen.model)
    try:
        with tempfile.TemporaryDirectory(prefix="hachi-replay-", ignore_cleanup_errors=True) as folder:
            settings = _scratch_settings(pet.settings, Path(folder))
            async with Companion.open(settings, clock=clock, model=recorded, upkeep=False) as scratch:
                await copy(pet, scratch, moment, trace)
                name = trace.summary.model if fork is None else chosen.name
                house = _house(await scratch.house(), trace, tools)
                await house.aftercare.stop()  # what is done beside the turn would be seen in it, or not
                scratch.indexing.begun = not _searched_itself(trace)
                house = replace(house, model=replace(chosen, name=name, model=recorded))
                with suppress(*FAULTS):  # it is in the trace
                    await take_turn(house, _incoming(trace), trace_id=trace.id)
                await house.recorder.flush()
                after = await scratch.traces.get(trace.id, clock())
    finally:
        await chosen.close()
    found = tuple(differences(trace, after))
    return Replayed(trace, after, found, fork)


def _can_be_replayed(trace: Trace, fork: int | None) -> None:
    if trace.summary.kind != TURN:
        raise BadInput(f"{trace.summary.short} is work after a turn; replay the turn itself")
    if trace.summary.status in ("running", "killed"):
        raise BadInput(f"{trace.summary.short} has not ended, so there is nothing to compare with")
    if not trace.root.data.get("incoming", {}).get("text"):
        raise BadInput(
            f"{trace.summary.short} holds nothing of what was said (HACHI_TRACE_CONTENT, anonymous)"
        )
    if fork is not None and not 1 <= fork <= max(1, trace.summary.calls):
        raise BadInput(f"{trace.summary.short} has {trace.summary.calls} calls; fork at one of them")


def _scratch_settings(settings: "Settings", folder: Path) -> "Settings":
    """As they are, in a place of its own, without what would ask a model beside the turn."""
    return settings.model_copy(
        update={
            "home": folder,
            "database_url": None,
            "qdrant_url": None,
            "traces": True,
            "traces_url": None,
            "look_back": "off",
            "judge": False,
        }
    )


def _searched_itself(trace: Trace) -> bool:
    """Whether the turn's own message was in the index when it searched, as where a process had just begun."""
    searches = (span.data.get("candidates", ()) for span in trace.spans("search"))
    return any(one["id"] == trace.summary.message_id for found in searches for one in found)


def _house(house: House, trace: Trace, tools: Handling) -> House:
    scene: dict[str, Any] = next((span.data.get("scene") or {} for span in trace.spans("scene")), {})
    told = Told(scene.get("known") or {}, house.database)
    return replace(house, contexts=told, tools=handled(house.tools, trace, tools))


def _incoming(trace: Trace) -> Incoming:
    said = trace.root.data["incoming"]
    return Incoming(
        text=said["text"],
        user=trace.summary.user,
        sent_at=datetime.fromisoformat(said["sent_at"]),
        place=Place.of_key(trace.summary.place),
        conversation=said.get("conversation"),
        author=said.get("author"),
        instructions=said.get("instructions") or "",
        earlier=tuple((role, text) for role, text in said.get("earlier") or ()),
    )
