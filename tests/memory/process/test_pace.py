"""Long work on the event loop lets others run."""

import asyncio
import time

from waiting import longest_step

from memory.process.pace import SLICE, unhurried


def work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_long_work_yields_and_short_work_does_not() -> None:
    async def long() -> None:
        async for _ in unhurried(range(100)):
            work(SLICE / 10)

    assert await longest_step(long()) < 3 * SLICE
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "ran")
    assert [n async for n in unhurried(range(1_000))] == [*range(1_000)]
    assert others == []
