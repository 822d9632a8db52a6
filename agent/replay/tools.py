"""Tools in a replay: at work on the copy, with the results they had then, or doing nothing at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic_core import from_json

from agent.tracing.trace import Trace
from tools.context import TurnContext
from tools.registry import Tool, ToolResult

Handling = Literal["live", "recorded", "stub"]
"""`live`: today's tools, on the copy of what is remembered. `recorded`: what they answered then, for the same
arguments. `stub`: none does anything."""

STUBBED = ToolResult({"note": "not done: this is a replay without tools"}, ok=True)


def handled(tools: Sequence[Tool], trace: Trace, how: Handling) -> Sequence[Tool]:
    if how == "live":
        return tools
    if how == "stub":
        return [Stub(tool.function) for tool in tools]
    results = [
        (span.name, str(span.data.get("arguments", "")), span.data.get("result", ""), span.data.get("ok"))
        for span in trace.spans("tool")
    ]
    return [
        Recorded(tool.function, iter([(a, r, bool(ok)) for name, a, r, ok in results if name == tool.name]))
        for tool in tools
    ]


@dataclass(frozen=True)
class Stub(Tool):
    async def call(self, turn: TurnContext, written: str) -> ToolResult:
        return STUBBED


@dataclass(frozen=True)
class Recorded(Tool):
    results: Iterator[tuple[str, str, bool]] = field(default_factory=lambda: iter(()))
    """(arguments, result, ok), in the order of the calls."""

    async def call(self, turn: TurnContext, written: str) -> ToolResult:
        arguments, result, ok = next(self.results, ("", "", False))
        if arguments != written or not result:
            return ToolResult({"error": f"nothing is recorded of {self.name} with these arguments"}, ok=False)
        return ToolResult(from_json(result), ok)
