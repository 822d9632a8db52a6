"""One model call as a trace keeps it: the exact request and the exact output."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from agents import ModelSettings

from memory.spans import OpenSpan, begin


class Call:
    """Records nothing if there is no recording."""

    def __init__(self, open_span: OpenSpan | None) -> None:
        self._open = open_span

    def began(self) -> None:
        """The first part of the output has come."""
        if self._open:
            self._open.span.data.setdefault("first", self._open.elapsed())

    def answered(self, output: Sequence[Any], usage: Any) -> None:
        """The output as the model gave it, before anything is repaired."""
        if self._open:
            self._open.span.data["output"] = [copy(item) for item in output]
            details = getattr(usage, "input_tokens_details", None)
            self._open.span.data["usage"] = usage and {
                "input": getattr(usage, "input_tokens", 0),
                "output": getattr(usage, "output_tokens", 0),
                "cached": getattr(details, "cached_tokens", 0) or 0,
            }


@contextmanager
def recorded_call(
    model: str, system: str | None, input: Any, tools: Sequence[Any], settings: ModelSettings
) -> Iterator[Call]:
    """Record a call around the block. Exceptions are noted and raised."""
    open_span = begin("call", model)
    if open_span:
        open_span.span.data["request"] = {
            "system": system,
            "input": list(input) if isinstance(input, list) else input,
            "tools": [tool.name for tool in tools],
            "settings": {  # retries are ours, not the model's
                name: value for name, value in vars(settings).items() if value is not None and name != "retry"
            },
        }
    try:
        yield Call(open_span)
    except BaseException as error:
        if open_span:
            open_span.end(error)
        raise
    if open_span:
        open_span.end()
