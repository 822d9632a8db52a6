"""How long others wait while something runs on their event loop."""

import asyncio
import time
from collections.abc import Awaitable


async def longest_step(act: Awaitable[object]) -> float:
    """Seconds: the most that the event loop works between two rounds while `act` runs. It is counted on the
    processor's clock, so that a busy machine changes nothing."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - began)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.005)
    try:
        await act
    finally:
        await asyncio.sleep(0.005)
        ticking.cancel()
    return longest
