"""A model that repeats the recorded outputs call by call. From a fork on it asks another model."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from agent.errors import ModelRejected, ModelUnavailable
from agent.models.failures import KnownFailure
from agent.tracing.compare import steps
from agent.tracing.trace import Trace, usage_of
from memory.spans import Span

_ITEMS: TypeAdapter[list[Any]] = TypeAdapter(list[ResponseOutputItem])
_ERRORS = {kind.__name__: kind for kind in (ModelUnavailable, ModelRejected)}


class ReplayClock:
    """Returns the time when the recorded turn began, then the time when each repeated call had ended."""

    def __init__(self, started_at: datetime) -> None:
        self._started_at = started_at
        self.now = started_at

    def __call__(self) -> datetime:
        return self.now

    def move_to(self, seconds: float) -> None:
        self.now = self._started_at + timedelta(seconds=seconds)


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
        self._clock.move_to(call.at + (call.took or 0.0))
        if call.error:
            raise _recorded_error(call.error, self._turn_error)
        counted = usage_of([call])
        usage = Usage(requests=1, input_tokens=counted.input, output_tokens=counted.output)
        return ModelResponse(output=output_of(call), usage=usage, response_id=None)

    def stream_response(self, *args: Any, **request: Any) -> AsyncIterator[Any]:
        raise NotImplementedError  # a replay does not stream


def output_of(call: Span) -> list[Any]:
    """Return the recorded output as items of the Agents SDK."""
    items = [_completed(item, place) for place, item in enumerate(call.data.get("output", ()))]
    return _ITEMS.validate_python(items)


def _completed(item: dict[str, Any], place: int) -> dict[str, Any]:
    """Return the item with the fields that a server may have left out."""
    if item.get("type") != "message":
        return item
    parts = [{"annotations": [], **part} for part in item.get("content", ())]
    usual = {"id": f"message_{place}", "role": "assistant", "status": "completed"}
    return usual | item | {"content": parts}


def _recorded_error(error: str, turn_error: str | None) -> KnownFailure:
    """Return an exception with the recorded name and text, and with the ModelError of the turn."""
    name, _, text = error.partition(": ")
    kind, _, meaning = (turn_error or "").partition(": ")
    raised: KnownFailure = type(name, (KnownFailure,), {})(text)
    raised.error = _ERRORS.get(kind, ModelUnavailable)(meaning or text)
    return raised
