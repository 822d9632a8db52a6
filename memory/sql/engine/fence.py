"""Check at the start of a writing transaction that the process has not lost its claim on the job."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy.ext.asyncio import AsyncConnection

Check = Callable[[AsyncConnection], Awaitable[None]]
_fence: ContextVar[tuple[asyncio.Task[object] | None, Check] | None] = ContextVar("fence", default=None)


@contextmanager
def fenced(check: Check) -> Iterator[None]:
    """Call `check` at the start of each writing transaction of this task in the block. Tasks that it starts
    are not checked."""
    token = _fence.set((asyncio.current_task(), check))
    try:
        yield
    finally:
        _fence.reset(token)


def lift_fence() -> None:
    """Stop checking in this task, because the job is done."""
    _fence.set(None)


@contextmanager
def unfenced() -> Iterator[None]:
    """Skip the check in the block, whose statements test the claim themselves."""
    token = _fence.set(None)
    try:
        yield
    finally:
        _fence.reset(token)


async def check_fence(connection: AsyncConnection) -> None:
    if (fence := _fence.get()) and fence[0] is asyncio.current_task():
        await fence[1](connection)
