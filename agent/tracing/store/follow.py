"""Watches the traces of all processes on the same database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from time import perf_counter

from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary

NEWEST = 200
"""The number of newest traces that are read at a time. Changes of older ones are missed."""
PAUSE, STEP = 0.5, 0.1
"""Seconds between two reads, and between two checks whether to stop."""
PAUSE_RATIO = 10
"""The pause after a slow read, as a multiple of its duration."""


async def follow(
    traces: Traces,
    wanted: TraceFilter,
    clock: Callable[[], datetime],
    what: Callable[[Summary], object],
    stopping: Callable[[], bool] = lambda: False,
) -> AsyncIterator[Sequence[Summary]]:
    """Yield the newest traces, oldest first. Then, repeatedly, yield those that are new or for which `what`
    returns a new value."""
    known: dict[str, object] = {}
    oldest: datetime | None = None
    while not stopping():
        began = perf_counter()
        newest = await traces.list(wanted, clock(), NEWEST)
        changed = [one for one in reversed(newest) if known.get(one.id, ...) != what(one)]
        if not known and len(newest) == NEWEST:
            oldest = newest[-1].started_at
        known = {one.id: what(one) for one in newest}
        # older traces appear when others are deleted
        yield [one for one in changed if oldest is None or one.started_at >= oldest]
        pause = max(PAUSE, PAUSE_RATIO * (perf_counter() - began))
        for _ in range(int(pause / STEP)):
            await asyncio.sleep(STEP)
            if stopping():
                return
