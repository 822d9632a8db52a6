"""Why a fact is remembered: what the person said, what was decided then, and what it replaced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.companion import Companion
from agent.tracing.filters import TraceFilter
from agent.tracing.trace import Summary
from memory.errors import NotFound
from memory.records import Memory, MemoryUpdate, Message


@dataclass(frozen=True, slots=True)
class Why:
    message: Message | None
    """What the person said."""
    turn: Summary | None
    """The trace of the turn in which they said it."""
    decision: tuple[str, str] | None
    """What was done with the fact when it was told (add, merge, replace), and the reason."""
    steps: Sequence[MemoryUpdate]
    """What it replaced, and what replaced that, oldest first."""
    said: Mapping[str, Message]
    """What the person said for a fact of the steps, by that fact's id."""


async def why_remembered(pet: Companion, memory: Memory, user: str) -> Why:
    steps = await pet.memories.history(memory.id, user=user)
    told = {step.old_id: await _own(pet, step.old_message_id, user) for step in steps}
    said = {id: message for id, message in told.items() if message}
    message = await _own(pet, memory.message_id, user)
    turn = await turn_of(pet, message.id, user) if message else None
    decision = await _decision(pet, turn, memory.id) if turn else None
    return Why(message, turn, decision, steps, said)


async def turn_of(pet: Companion, message: str, user: str) -> Summary | None:
    """The trace of the turn that answered the person's message, if it is kept."""
    await pet.components.recorder.flush()
    found = await pet.traces.list(TraceFilter(user=user, message_id=message), pet.clock(), 1)
    return found[0] if found else None


async def _own(pet: Companion, id: str | None, user: str) -> Message | None:
    """The message, if it is the person's own and not forgotten."""
    try:
        return await pet.conversations.message(id, user=user) if id else None
    except NotFound:
        return None


async def _decision(pet: Companion, turn: Summary, id: str) -> tuple[str, str] | None:
    """What the turn, or the work after it, recorded on storing this memory."""
    try:
        found = await pet.traces.get_with_jobs(turn.id, pet.clock())
    except NotFound:
        return None
    for trace in (found.trace, *found.jobs):
        for span in trace.spans("decision"):
            for decision in span.data.get("decisions", ()):
                if decision.get("id") == id:
                    return decision["action"], decision["reason"]
    return None
