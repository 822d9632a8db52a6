"""What a writing transaction checks first: that the claim under which it works still holds."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy.ext.asyncio import AsyncConnection

Check = Callable[[AsyncConnection], Awaitable[None]]
_fence: ContextVar[tuple[asyncio.Task[object] | None, Check] | None] = ContextVar("fence", default=None)


@contextmanager
def fenced(check: Check) -> Iterator[None]:
    """Call `check` at the beginning of each transaction that this task, not those it starts, writes in the
    block."""
    token = _fence.set((asyncio.current_task(), check))
    try:
        yield
    finally:
        _fence.reset(token)


def lift_fence() -> None:
    """Check nothing more in this task: the job is done."""
    _fence.set(None)


@contextmanager
def unfenced() -> Iterator[None]:
    """Check nothing while the block runs: it says itself which claim it writes for."""
    token = _fence.set(None)
    try:
        yield
    finally:
        _fence.reset(token)


async def check_fence(connection: AsyncConnection) -> None:
    if (fence := _fence.get()) and fence[0] is asyncio.current_task():
        await fence[1](connection)
