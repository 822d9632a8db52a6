"""Count how often other tasks run while something occupies their event loop."""

import asyncio
from collections.abc import Awaitable
from itertools import count

import pytest

from memory.process import pace


async def turns_of_others(act: Awaitable[object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often another task runs while `act` does. Each time that the act reads the clock, a
    millisecond passes, however fast the machine is."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticks = count()
    monkeypatch.setattr(pace, "perf_counter", lambda: next(ticks) / 1_000)
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    turns = 0
    try:
        await act
    finally:
        ticking.cancel()
    return turns
