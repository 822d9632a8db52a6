"""A model that says what was said then, call by call; and from a given call on asks another one."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from agent.errors import ModelError, ModelRejected, ModelUnavailable
from agent.models.failures import KnownFailure
from agent.tracing.compare import steps
from agent.tracing.trace import Trace
from memory.spans import Span

_ITEMS: TypeAdapter[list[Any]] = TypeAdapter(list[ResponseOutputItem])
_KINDS = {kind.__name__: kind for kind in (ModelUnavailable, ModelRejected)}


class Clock:
    """Stands where the recorded turn stood: at its beginning, then at the end of each call as it is taken
    again."""

    def __init__(self, started_at: datetime) -> None:
        self._started_at = started_at
        self.now = started_at

    def __call__(self) -> datetime:
        return self.now

    def move_to(self, seconds: float) -> None:
        self.now = self._started_at + timedelta(seconds=seconds)


class RecordedModel(Model):
    """`live` is asked from call `fork` on, counted from 1."""

    def __init__(
        self, trace: Trace, clock: Clock, fork: int | None = None, live: Model | None = None
    ) -> None:
        calls = [step for step in steps(trace) if step.kind == "call"]
        self._calls: Sequence[Span] = calls if fork is None else calls[: fork - 1]
        self._error = trace.root.error
        self._clock = clock
        self._fork = fork
        self._live = live
        self._asked = 0

    async def get_response(self, *args: Any, **request: Any) -> ModelResponse:
        self._asked += 1
        if self._asked > len(self._calls):
            if self._fork is not None and self._live is not None:
                return await self._live.get_response(*args, **request)
            raise over(self._asked)
        call = self._calls[self._asked - 1]
        self._clock.move_to(call.at + (call.took or 0.0))
        if call.error:
            raise _again(call.error, self._error)
        return ModelResponse(output=output_of(call), usage=_usage(call), response_id=None)

    def stream_response(self, *args: Any, **request: Any) -> AsyncIterator[Any]:
        raise NotImplementedError  # a replay shows nothing as it goes


def output_of(call: Span) -> list[Any]:
    """What the model wrote, as the Agents SDK has it."""
    items = [_whole(item, place) for place, item in enumerate(call.data.get("output", ()))]
    return _ITEMS.validate_python(items)


def _whole(item: dict[str, Any], place: int) -> dict[str, Any]:
    """With what a server may have left out."""
    if item.get("type") == "message":
        parts = [{"annotations": [], **part} for part in item.get("content", ())]
        return (
            {"id": f"message_{place}", "role": "assistant", "status": "completed"} | item | {"content": parts}
        )
    return item


def _usage(call: Span) -> Usage:
    counted = call.data.get("usage") or {}
    given, made = int(counted.get("input") or 0), int(counted.get("output") or 0)
    return Usage(requests=1, input_tokens=given, output_tokens=made, total_tokens=given + made)


def _again(error: str, meant: str | None) -> KnownFailure:
    """What a call ended in then, by the same name, and what was told of it."""
    name, _, text = error.partition(": ")
    kind, _, told = (meant or "").partition(": ")
    fault: KnownFailure = type(name, (KnownFailure,), {})(text)
    fault.error = _KINDS.get(kind, ModelUnavailable)(told or text)
    return fault


def over(asked: int) -> ModelError:
    return ModelUnavailable(f"call {asked} was not made then: nothing is recorded for it")
