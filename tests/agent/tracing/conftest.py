"""Traces of turns, looked at once they are written."""

import importlib.util
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import Companion
from agent.tracing.store import TraceFilter
from agent.tracing.trace import Trace
from memory.spans import Span

EVERY = TraceFilter(kinds=frozenset())

Looked = Callable[..., Awaitable[Trace]]


@pytest.fixture
def last() -> Looked:
    """`await last(pet)`: the newest turn's trace, as anybody reads it."""

    async def look(pet: Companion) -> Trace:
        await pet.components.recorder.flush()
        return await pet.traces.get("last", pet.clock())

    return look


@pytest.fixture
def kinds() -> Callable[[Span], Any]:
    """A tree as its kinds and names: `("turn", [("scene", []), ("call tiny", [])])`."""

    def shape(span: Span) -> Any:
        return (f"{span.kind} {span.name}".strip(), [shape(inner) for inner in span.spans])

    return shape


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """The server that the tests of the record have."""
    path = Path(__file__).parents[2] / "memory" / "conftest.py"
    spec = importlib.util.spec_from_file_location("tests_of_the_record", path)
    assert spec is not None
    assert spec.loader is not None
    record = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = record
    spec.loader.exec_module(record)
    with tempfile.TemporaryDirectory(prefix="hachi-postgresql-") as folder:
        started = record.Server(Path(folder) / "data")
        yield started
        started.stop()
