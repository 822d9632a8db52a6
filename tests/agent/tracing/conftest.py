"""Fixtures for traces."""

from collections.abc import Awaitable, Callable

import pytest

from agent import Companion
from agent.tracing.trace import Trace

Looked = Callable[..., Awaitable[Trace]]


@pytest.fixture
def last() -> Looked:
    """`await last(pet)`: the newest turn's trace, read from the database."""

    async def look(pet: Companion) -> Trace:
        await pet.components.recorder.flush()
        return await pet.traces.get("last", pet.clock())

    return look
