"""What a trace can be made into, loaded when it is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agent.traces.trace import Trace


def markdown() -> Callable[..., str] | None:
    """`as_markdown(trace, after=…)`; None where there is none."""
    return _named("agent.traces.exporting", "as_markdown")


def tests() -> Callable[[Trace], Mapping[str, str]] | None:
    """`make_test(trace)`: texts by the names of their files; None where there is none."""
    return _named("agent.replay.to_test", "make_test")


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name, None) if find_spec(module) else None
