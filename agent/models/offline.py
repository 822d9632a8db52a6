"""The stand-in for a language model: it answers when none is configured, and says so.

It quotes instead of parsing. What a person states is kept word for word through the `remember` tool; a
question is answered with what the search tools bring, each with who said it and when. `OfflineModel` is a
`Model` of the Agents SDK, so a turn runs the real loop with the real tools. It keeps nothing between calls.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

from agents import (
    AgentOutputSchemaBase,
    Handoff,
    Model,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    Tool,
    TResponseInputItem,
    Usage,
    generation_span,
)
from agents.items import TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from agent.models.offline_answers import Call, memories, message, read_turn, wanted

NAME = "offline"
ANNOUNCEMENT = (
    "No language model is configured: this is Hachi's small rule-based stand-in. "
    "Set OPENAI_API_KEY or OPENAI_BASE_URL for a real one."
)
ROUNDS = 4
"""Rounds of tool calls in one turn, after which it answers with what it has."""


class OfflineModel(Model):
    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff],
        tracing: ModelTracing,
        **_: Any,
    ) -> ModelResponse:
        """Tool calls, or the answer. Tokens are reported as zero: none are used."""
        items = [{"role": "user", "content": input}] if isinstance(input, str) else [dict(i) for i in input]
        with generation_span(model=NAME, disabled=tracing.is_disabled()) as span:
            output = _respond(system_instructions or "", items, {tool.name for tool in tools})
            if tracing.include_data():
                system = {"role": "system", "content": system_instructions}
                span.span_data.input = [system, *items] if system_instructions else items
                span.span_data.output = [item.model_dump() for item in output]
        return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *arguments: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """The same, the answer word by word and then whole."""
        response = await self.get_response(*arguments, **named)
        for event in _events(response.output):
            yield event


def _respond(instructions: str, items: list[dict[str, Any]], tools: set[str]) -> list[TResponseOutputItem]:
    """New tool calls while the turn needs any, then the answer as JSON."""
    last = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=-1)
    said = [(item["role"], _text(item.get("content"))) for item in items[: last + 1] if "role" in item]
    turn = read_turn(instructions, said, _results(items[last + 1 :]))
    rounds = sum(one.get("type") != "function_call" == two.get("type") for one, two in pairwise(items[last:]))
    calls = [call for call in dict.fromkeys(wanted(turn)) if call not in turn.results and call.name in tools]
    if calls and rounds < ROUNDS:
        made = sum(item.get("type") == "function_call" for item in items)
        return [_tool_call(call, number) for number, call in enumerate(calls, start=made + 1)]
    left = [] if any(call.name == "remember" for call in turn.results) else memories(turn)
    answer = json.dumps({"message": message(turn), "memories": left}, ensure_ascii=False)
    text = ResponseOutputText(type="output_text", text=answer, annotations=[])
    return [
        ResponseOutputMessage(
            id="offline_answer", type="message", role="assistant", status="completed", content=[text]
        )
    ]


def _tool_call(call: Call, number: int) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"offline_{number}", name=call.name, arguments=call.arguments
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _results(items: list[dict[str, Any]]) -> dict[Call, dict[str, Any]]:
    outputs = {item.get("call_id"): _text(item.get("output")) for item in items if "output" in item}
    made = [item for item in items if item.get("type") == "function_call" and item["call_id"] in outputs]
    return {
        Call.of(item["name"], **json.loads(item["arguments"])): _read_result(outputs[item["call_id"]])
        for item in made
    }


def _read_result(output: str) -> dict[str, Any]:
    """A tool's JSON object; anything else is what the loop says of a tool that failed."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"error": output}


def _events(output: list[TResponseOutputItem]) -> Iterator[TResponseStreamEvent]:
    texts = [item.content[0] for item in output if isinstance(item, ResponseOutputMessage)]
    text = "".join(part.text for part in texts if isinstance(part, ResponseOutputText))
    pieces = re.findall(r"\s*\S+|\s+$", text)
    for number, piece in enumerate(pieces):
        yield ResponseTextDeltaEvent(
            type="response.output_text.delta",
            delta=piece,
            item_id="offline_answer",
            content_index=0,
            output_index=0,
            logprobs=[],
            sequence_number=number,
        )
    whole = Response(
        id="offline",
        created_at=0,
        model=NAME,
        object="response",
        output=output,
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
    )
    yield ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=len(pieces))
