"""What a search of then finds otherwise in today's memory, and at what gate it ended."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

from agent.companion import Companion
from agent.tracing.differences import Difference
from agent.tracing.trace import Trace, given_of
from agent.tracing.why.gates import Asked
from agent.tracing.why.memories import why
from memory.errors import NotFound


async def found_otherwise(pet: Companion, before: Trace, after: Trace) -> AsyncIterator[Difference]:
    """Yield the memories that only one of the two turns was given, each with the gate at which the other one
    ended."""
    now = pet.clock()
    today = replace(after, summary=replace(after.summary, started_at=now))
    then, at_present = (_given(trace) for trace in (before, after))
    for ids, other in ((then - at_present, today), (at_present - then, before)):
        for id in sorted(ids):
            with suppress(NotFound):  # a message
                [one] = await why(pet.components.database, Asked(now, None, other), id)
                gate, text = one.stopped_at, one.content or "(forgotten)"
                what = f"{gate.name}: {gate.value}" if gate else "differs"
                if other is today:
                    yield Difference(f"no longer given “{text}”", what, text, "")
                else:
                    yield Difference(f"given now “{text}”", f"then {what}", "", text)


def _given(trace: Trace) -> set[str]:
    return {id for search in trace.spans("search") for id in given_of(search)}
