"""Let other tasks of the event loop run during long work."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

SLICE = 0.02
"""Seconds that work may hold the event loop."""


class _Step(threading.local):
    """The running step of this thread's event loop."""

    began: float | None = None
    """The time of the first `pause` in this step; None before."""

    def end(self) -> None:
        self.began = None


_step = _Step()


async def pause() -> None:
    """Let other tasks run if this step of the event loop took longer than `SLICE`. Cheap enough for each
    row."""
    now = perf_counter()
    if _step.began is None:
        _step.began = now
        asyncio.get_running_loop().call_soon(_step.end)  # the loop calls it in its next step
    elif now - _step.began > SLICE:
        _step.end()
        await asyncio.sleep(0)


async def unhurried(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items, with a `pause` before each."""
    for item in items:
        await pause()
        yield item
