"""Stand-ins for context, model and tools, which return what a trace recorded."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter, ValidationError

from agent.errors import BadInput, ModelError, ModelRejected, ModelUnavailable
from agent.models.choice.fallback import ChangedOver
from agent.models.failures import ExplainedFailure
from agent.models.wire.out import with_pictures
from agent.tracing.render.text import parsed_json
from agent.tracing.trace import TURN, Trace, last_attempt, read_data, usage_of, was_stopped
from agent.turn.context.gather import BuiltContext
from memory.facts.decide import Case
from memory.process.spans import Span, note, span
from tools.context import TurnContext
from tools.registry import READING, Tool, ToolResult

REPORTED = {kind.__name__: kind for kind in (ModelUnavailable, ModelRejected, ModelError, BadInput)}
_ITEMS: TypeAdapter[list[Any]] = TypeAdapter(list[ResponseOutputItem])


def context_of(trace: Trace) -> BuiltContext:
    """Return the context that the turn was built from. Raises BadInput with the reason if the trace cannot be
    replayed."""
    summary = trace.summary
    if summary.kind != TURN:
        raise BadInput(
            f"{summary.short} is {summary.kind!r}; only turns are replayed, with the work after them"
        )
    if summary.status in ("running", "killed"):
        raise BadInput(f"{summary.short} has not ended, so there is nothing to compare with")
    if read_data(trace.root, "incoming", "text") is None:
        why = "the user was anonymous" if summary.user is None else "HACHI_TRACE_CONTENT was none"
        raise BadInput(f"{summary.short} cannot be replayed: what was said was not recorded ({why})")
    built = next((span.data.get("context") for span in trace.spans("scene")), None)
    try:
        return BuiltContext.from_trace(built)
    except ValidationError as error:
        why = "it ended before its context was built, or an older Hachi recorded it"
        raise BadInput(f"{summary.short} cannot be replayed: {why}") from error


class RecordedModel(Model):
    """Returns the outputs and errors of the recorded calls in order. From call `fork` on, counted from 1, it
    asks `live`."""

    def __init__(
        self, trace: Trace, calls: Sequence[Span], fork: int | None = None, live: Model | None = None
    ) -> None:
        self._live = live
        self._recorded = ScriptedModel(_steps(calls, trace, fork and fork - 1))
        if live is None:
            more = f"NotRecorded: call {len(calls) + 1} is not in the trace: the recorded turn made fewer"
            stopped = was_stopped(trace.root)
            self._recorded.enqueue(ModelStep.respond(_cancelled) if stopped else _failing(more, ""))

    @classmethod
    def of_turn(cls, trace: Trace, fork: int | None = None, live: Model | None = None) -> "RecordedModel":
        calls = [step for step in last_attempt(trace) if step.kind == "call"]
        retried = [call for call, then in pairwise(calls) if call.error and call.name == then.name]
        return cls(trace, [call for call in calls if call not in retried], fork, live)

    def _next(self) -> Model:
        return self._live if self._live and not self._recorded.remaining_steps else self._recorded

    async def get_response(self, *args: Any, **request: Any) -> ModelResponse:
        return await self._next().get_response(*_without_pictures(args), **request)

    async def stream_response(self, *args: Any, **request: Any) -> AsyncIterator[Any]:
        async for event in self._next().stream_response(*_without_pictures(args), **request):
            yield event


def _without_pictures(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call without pictures, because the trace does not contain them."""
    system, items, *more = args
    text = {"type": "input_text", "text": "(There was a picture here, which the trace does not hold.)"}
    return (system, with_pictures(items, lambda _: text) if isinstance(items, list) else items, *more)


def _steps(calls: Sequence[Span], trace: Trace, most: int | None) -> list[ModelStep]:
    """Return the first `most` calls. A call by the second model includes the failed one that it replaced."""
    steps = list[ModelStep]()
    for call, following in zip(calls, [*calls[1:], None], strict=False):
        if most == 0:
            break
        replaced = bool(call.error and following and following.name != call.name)
        steps.append(_step(call, trace, ChangedOver if replaced else ExplainedFailure))
        most = most and most - (not replaced)
    return steps


def _step(call: Span, trace: Trace, raises: type[ExplainedFailure]) -> ModelStep:
    if call.error is not None:
        return _failing(call.error, trace.root.error or "", raises)
    counted = usage_of([call])
    usage = Usage(requests=1, input_tokens=counted.input, output_tokens=counted.output)
    return ModelStep(output=output_of(call), usage=usage)


def _failing(error: str, turn_error: str, raises: type[ExplainedFailure] = ExplainedFailure) -> ModelStep:
    """Return a step that raises an exception with the recorded name and text, for the same error."""
    name, _, text = error.partition(": ")
    if name.startswith(asyncio.CancelledError.__name__):
        return ModelStep.respond(_cancelled)
    kind, _, meaning = turn_error.partition(": ")
    reported = REPORTED.get(kind)
    raised: ExplainedFailure = type(name, (raises,), {})(text)
    raised.error = reported(meaning) if reported else ModelUnavailable(meaning or text)
    return ModelStep.raise_error(raised)


def _cancelled(_: Any) -> Any:
    raise asyncio.CancelledError


def output_of(call: Span) -> list[Any]:
    """Return the recorded output as items of the Agents SDK, with defaults for fields that the server left
    out."""
    items = list(call.data.get("output", ()))
    for place, item in enumerate(items):
        if item.get("type") == "message":
            usual = {"id": f"message_{place}", "role": "assistant", "status": "completed"}
            parts = [{"annotations": [], **part} for part in item.get("content", ())]
            items[place] = usual | item | {"content": parts}
    return _ITEMS.validate_python(items)


def described_tools(descriptions: Mapping[str, Any]) -> list[Tool]:
    """Return tools with the descriptions that a trace recorded. They cannot be called."""

    async def nobody(*_: Any) -> ToolResult:
        raise AssertionError("a recorded tool answers as recorded")

    return [Tool(name, one["description"], one["parameters"], nobody) for name, one in descriptions.items()]


def recorded_tools(
    tools: Sequence[Tool], trace: Trace, importance_floor: float, today: Collection[str] = (), *, live: bool
) -> Sequence[Tool]:
    """Return the tools with today's descriptions and the recorded results; those named in `today` run. A
    `live` model writes its own arguments: if nothing is recorded for them, a tool that only reads is run, and
    any other tool returns the result of its next recorded call."""
    spans = [one for one in last_attempt(trace) if one.kind == "tool"]
    return [
        tool
        if tool.name in today
        else _recorded(tool, [one for one in spans if one.name == tool.name], importance_floor, live)
        for tool in tools
    ]


def _recorded(tool: Tool, calls: list[Span], importance_floor: float, live: bool) -> Tool:
    """Return the tool with recorded results: a call returns the result of the first unused recorded call with
    the same arguments."""

    async def run(turn: TurnContext, written: str) -> ToolResult:
        arguments = _arguments(written)
        call = next((one for one in calls if _arguments(one.data.get("arguments", "")) == arguments), None)
        if call is None and live:
            if tool.name in READING:
                return await tool.run(turn, written)
            call = next(iter(calls), None)
        if call is None:
            return ToolResult({"error": f"nothing is recorded of {tool.name} with these arguments"}, ok=False)
        calls.remove(call)
        for decision in call.spans:
            decide_again(decision, importance_floor)
        if "result" not in call.data:
            raise asyncio.CancelledError
        return ToolResult(call.data["result"], bool(call.data.get("ok")))

    return replace(tool, run=run)


def _arguments(written: str) -> Any:
    value = parsed_json(written)
    return written if value is None else value


def decide_again(recorded: Span, importance_floor: float) -> None:
    """Record today's decisions in the recorded cases. Older versions recorded no cases: then the recorded
    decisions are repeated. Spans that are not decisions are ignored."""
    if recorded.kind != "decision" or "decisions" not in recorded.data:
        return
    with span("decision"):
        try:
            cases = [Case.from_trace(one) for one in recorded.data["cases"]]
        except (KeyError, ValidationError):
            note(decisions=recorded.data["decisions"])
        else:
            note(decisions=[case.decide(importance_floor)[0] for case in cases])
