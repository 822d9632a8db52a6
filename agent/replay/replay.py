"""A replay: a recorded turn against today's code, prompts, tools and memory, and what is not the same."""

from dataclasses import dataclass

from agent.companion import Companion
from agent.errors import BadInput
from agent.replay.scratch import copy, moment_of
from agent.replay.taking import Way, take_again
from agent.tracing.compare import Difference, differences
from agent.tracing.trace import TURN, Trace


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a turn went when it was taken again."""

    before: Trace
    after: Trace
    differences: tuple[Difference, ...]
    """In the order in which things happened; the first is what the others may follow from."""
    way: Way

    @property
    def same(self) -> bool:
        return not self.differences


async def replay(pet: Companion, trace: Trace, way: Way | None = None) -> Replayed:
    """Take the turn again on a copy of what is remembered now, without what was said from then on. Nothing
    real is written, and no model is asked but from a fork on. Raises BadInput where it cannot be."""
    way = way or Way()
    can_be_taken_again(trace)
    if way.fork is not None and not 1 <= way.fork <= max(1, trace.summary.calls):
        raise BadInput(f"{trace.summary.short} has {trace.summary.calls} calls; fork at one of them")
    moment = await moment_of(pet, trace)
    chosen = pet.components.models.choose()

    async def fill(scratch: Companion) -> None:
        await copy(pet, scratch, moment, trace)

    try:
        after = await take_again(trace, pet.settings, chosen, fill, way)
    finally:
        await chosen.close()
    return Replayed(trace, after, tuple(differences(trace, after)), way)


def can_be_taken_again(trace: Trace) -> None:
    """Raises BadInput, which says why not."""
    short = trace.summary.short
    if trace.summary.kind != TURN:
        raise BadInput(f"{short} is work after a turn; replay the turn that it belongs to")
    if trace.summary.status in ("running", "killed"):
        raise BadInput(f"{short} has not ended, so there is nothing to compare with")
    if not trace.root.data.get("incoming", {}).get("text"):
        why = "who spoke was anonymous" if trace.summary.user is None else "HACHI_TRACE_CONTENT was none"
        raise BadInput(f"{short} holds nothing of what was said ({why}), so it cannot be taken again")
