"""Replays a trace with today's code, prompts, tools and memory, and lists the differences."""

from dataclasses import dataclass
from functools import partial

from agent.companion import Companion
from agent.errors import BadInput
from agent.replay.run import ReplayOptions, run_turn
from agent.replay.sandbox import copy_memories
from agent.tracing.compare import Difference, differences
from agent.tracing.trace import TURN, Trace, read_data


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
