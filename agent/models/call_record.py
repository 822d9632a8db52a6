"""Record one model call in the trace: the exact request and the exact output."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from agents import AgentOutputSchemaBase, ModelSettings
from openai.types.responses import ResponseOutputMessage

from agent.models.wire.errors import TooLong
from memory.process.spans import Span, span, waited_after


class Call:
    """Adds the response to the call's span; does nothing outside a recording."""

    def __init__(self, recorded: Span | None) -> None:
        self._data = {} if recorded is None else recorded.data
        self._began = time.perf_counter()

    def began(self) -> None:
        """Note that the first letter of the output arrived."""
        self._data.setdefault("first", time.perf_counter() - self._began)

    def answered(self, output: Sequence[Any], usage: Any) -> None:
        """Record the model's output before any repair, and why it ended."""
        self._data["finish"] = finish_of(output)
        self._data["output"] = [copy(item) for item in output]
        details = getattr(usage, "input_tokens_details", None)
        self._data["usage"] = usage and {
            "input": getattr(usage, "input_tokens", 0),
            "output": getattr(usage, "output_tokens", 0),
            "cached": getattr(details, "cached_tokens", 0) or 0,
        }


def finish_of(output: Sequence[Any]) -> str:
    """Return why an answer ended: `stop`, `tool_calls`, or (cut off) `length` or `content_filter`."""
    messages = [item for item in output if isinstance(item, ResponseOutputMessage)]
    if messages and messages[-1].status == "incomplete":
        return str(getattr(messages[-1], "finish", "length"))
    return "tool_calls" if any(item.type == "function_call" for item in output) else "stop"


@contextmanager
def recorded_call(
    model: str,
    system: str | None,
    input: Any,
    tools: Sequence[Any],
    settings: ModelSettings,
    schema: AgentOutputSchemaBase | None,
) -> Iterator[Call]:
    """Record a call around the block; `schema` is the one that the provider has to enforce. Exceptions are
    recorded and re-raised."""
    chosen = {name: value for name, value in vars(settings).items() if value is not None}
    request = {
        "system": system,
        "input": list(input) if isinstance(input, list) else input,
        "tools": [tool.name for tool in tools],
        "settings": chosen,
        "response_format": schema
        and {
            "name": schema.name(),
            "strict": schema.is_strict_json_schema(),
            "schema": schema.json_schema(),
        },
    }
    waited_after("call")
    with span("call", model, nesting=False, request=request) as recorded:
        call = Call(recorded)
        try:
            yield call
        except Exception as error:
            if recorded and "first" in recorded.data:
                recorded.data["lost"] = True  # broken off in mid-stream
            if recorded and isinstance(error, TooLong):
                recorded.data["too_long"] = True  # the turn tries again with a shorter prompt
            raise
