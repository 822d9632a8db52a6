"""Tools in a replay: they run on the copy, return recorded results, or do nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic_core import from_json

from agent.tracing.trace import Trace
from memory.spans import Span
from tools.context import TurnContext
from tools.registry import Tool, ToolResult

ToolMode = Literal["live", "recorded", "stub"]
"""`live`: today's tools run on the copied memory. `recorded`: the same arguments give the recorded results.
`stub`: no tool does anything."""

STUB_RESULT = ToolResult({"note": "not done: this is a replay without tools"}, ok=True)


def tools_for(mode: ToolMode, tools: Sequence[Tool], trace: Trace) -> Sequence[Tool]:
    if mode == "live":
        return tools
    if mode == "stub":
        return [StubTool(tool.function) for tool in tools]
    spans = list(trace.spans("tool"))
    return [RecordedTool(tool.function, iter([s for s in spans if s.name == tool.name])) for tool in tools]


@dataclass(frozen=True)
class StubTool(Tool):
    async def call(self, turn: TurnContext, written: str) -> ToolResult:
        return STUB_RESULT


@dataclass(frozen=True)
class RecordedTool(Tool):
    spans: Iterator[Span] = field(default_factory=lambda: iter(()))
    """The tool's recorded calls, in order."""

    async def call(self, turn: TurnContext, written: str) -> ToolResult:
        data = span.data if (span := next(self.spans, None)) else {}
        if data.get("arguments", "") != written or not data.get("result"):
            return ToolResult({"error": f"nothing is recorded of {self.name} with these arguments"}, ok=False)
        return ToolResult(from_json(data["result"]), bool(data.get("ok")))
