"""Fixtures for traces."""

import pytest

from agent.tracing.trace import Trace
from hachi import Companion


@pytest.fixture
def last():
    """`await last(pet)`: the newest turn's trace, read from the database."""

    async def look(pet: Companion) -> Trace:
        await pet.components.recorder.flush()
        return await pet.traces.get("last", pet.clock())

    return look
