"""What a replay repeats: the clock, the model's outputs, the person's context and the tools' results."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter
from pydantic_core import from_json

from agent.errors import ModelRejected, ModelUnavailable
from agent.models.failures import KnownFailure
from agent.tracing.compare import steps
from agent.tracing.trace import Trace, usage_of
from memory.audience import Place
from memory.people.profile import Preferences, Profile, UserContext
from memory.people.profile_store import ProfileStore
from memory.process.spans import Span
from memory.sql.engine import Database
from tools.context import TurnContext
from tools.registry import Tool, ToolResult

_ITEMS: TypeAdapter[list[Any]] = TypeAdapter(list[ResponseOutputItem])
_ERRORS = {kind.__name__: kind for kind in (ModelUnavailable, ModelRejected)}


@dataclass
class ReplayClock:
    """Returns the time when the recorded turn began, then the time when each repeated call had ended."""

    started_at: datetime
    seconds: float = 0.0
    """Since the turn began."""

    def __call__(self) -> datetime:
        return self.started_at + timedelta(seconds=self.seconds)


class RecordedModel(Model):
    """From call `fork` on, counted from 1, it asks `live`."""

    def __init__(
        self, trace: Trace, clock: ReplayClock, fork: int | None = None, live: Model | None = None
    ) -> None:
        calls = [step for step in steps(trace) if step.kind == "call"]
        self._calls = calls if fork is None else calls[: fork - 1]
        self._turn_error = trace.root.error
        self._clock = clock
        self._live = live if fork is not None else None
        self._asked = 0

    async def get_response(self, *args: Any, **request: Any) -> ModelResponse:
        self._asked += 1
        if self._asked > len(self._calls):
            if self._live is not None:
                return await self._live.get_response(*args, **request)
            raise ModelUnavailable(f"call {self._asked} is not in the trace: the recorded turn made fewer")
        call = self._calls[self._asked - 1]
        self._clock.seconds = call.at + (call.took or 0.0)
        if call.error:
            raise _recorded_error(call.error, self._turn_error)
        counted = usage_of([call])
        usage = Usage(requests=1, input_tokens=counted.input, output_tokens=counted.output)
        return ModelResponse(output=output_of(call), usage=usage, response_id=None)

    def stream_response(self, *args: Any, **request: Any) -> AsyncIterator[Any]:
        raise NotImplementedError  # a replay does not stream


def output_of(call: Span) -> list[Any]:
    """Return the recorded output as items of the Agents SDK, with the fields that a server left out."""
    items = list(call.data.get("output", ()))
    for place, item in enumerate(items):
        if item.get("type") == "message":
            usual = {"id": f"message_{place}", "role": "assistant", "status": "completed"}
            parts = [{"annotations": [], **part} for part in item.get("content", ())]
            items[place] = usual | item | {"content": parts}
    return _ITEMS.validate_python(items)


def _recorded_error(error: str, turn_error: str | None) -> KnownFailure:
    """Return an exception with the recorded name and text, and with the ModelError of the turn."""
    name, _, text = error.partition(": ")
    kind, _, meaning = (turn_error or "").partition(": ")
    raised: KnownFailure = type(name, (KnownFailure,), {})(text)
    raised.error = _ERRORS.get(kind, ModelUnavailable)(meaning or text)
    return raised


class RecordedProfiles(ProfileStore):
    """Returns the person's context as it was recorded."""

    def __init__(self, known: Mapping[str, Any], database: Database) -> None:
        super().__init__(database)
        self._known = UserContext(
            profile=Profile.model_validate(known.get("profile") or {}),
            preferences=Preferences.model_validate(known.get("preferences") or {}),
            conversation_themes=tuple(known.get("conversation_themes") or ()),
            memory_summary=known.get("memory_summary"),
        )

    async def view(self, user: str, place: Place, now: datetime) -> UserContext:
        return replace(self._known)


def recorded_tools(tools: Sequence[Tool], trace: Trace) -> Sequence[Tool]:
    """Return the tools with the results that the trace has for the same arguments."""
    spans = list(trace.spans("tool"))
    return [RecordedTool(tool.function, iter([s for s in spans if s.name == tool.name])) for tool in tools]


@dataclass(frozen=True)
class RecordedTool(Tool):
    spans: Iterator[Span] = field(default_factory=lambda: iter(()))
    """The tool's recorded calls, in order."""

    async def call(self, turn: TurnContext, written: str) -> ToolResult:
        data = span.data if (span := next(self.spans, None)) else {}
        if data.get("arguments", "") != written or not data.get("result"):
            return ToolResult({"error": f"nothing is recorded of {self.name} with these arguments"}, ok=False)
        return ToolResult(from_json(data["result"]), bool(data.get("ok")))
