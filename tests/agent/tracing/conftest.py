"""Fixtures for traces."""

import importlib.util
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """The PostgreSQL server of the memory tests."""
    path = Path(__file__).parents[2] / "memory" / "conftest.py"
    spec = importlib.util.spec_from_file_location("memory_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    memory_conftest = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = memory_conftest
    spec.loader.exec_module(memory_conftest)
    with tempfile.TemporaryDirectory(prefix="hachi-postgresql-") as folder:
        started = memory_conftest.Server(Path(folder) / "data")
        yield started
        started.stop()
