"""The stand-in as the Agents SDK sees it."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import pairwise
from typing import Any

from agents.agent_output import AgentOutputSchemaBase
from agents.handoffs import Handoff
from agents.items import ModelResponse, TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from agents.model_settings import ModelSettings
from agents.models.interface import Model, ModelTracing
from agents.tool import Tool
from agents.tracing import generation_span
from agents.usage import Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)
from openai.types.responses.response_prompt_param import ResponsePromptParam

from agent.offline import NAME
from agent.offline.calls import Call, wanted
from agent.offline.dialogue import reply
from agent.offline.scene import Turn, scene
from agent.offline.words import clean

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
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: ResponsePromptParam | None,
    ) -> ModelResponse:
        """Tool calls, or the answer. Tokens are reported as zero: none are counted where none are paid."""
        with generation_span(model=NAME, disabled=tracing.is_disabled()) as span:
            output = _respond(system_instructions, input, tools)
            if tracing.include_data():
                span.span_data.input = _shown(system_instructions, input)
                span.span_data.output = [item.model_dump() for item in output]
        return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: ResponsePromptParam | None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """The same, the text of the answer word by word and then the whole."""
        response = await self.get_response(
            system_instructions,
            input,
            model_settings,
            tools,
            output_schema,
            handoffs,
            tracing,
            previous_response_id=previous_response_id,
            conversation_id=conversation_id,
            prompt=prompt,
        )
        for event in _events(response.output):
            yield event


def _respond(
    instructions: str | None, input: str | list[TResponseInputItem], tools: list[Tool]
) -> list[TResponseOutputItem]:
    items = _items(input)
    last = max((i for i, item in enumerate(items) if item.get("role") == "user"), default=-1)
    now = scene(clean(instructions or ""), list(_turns(items[: last + 1])))
    after = items[last + 1 :]
    results = _results(after)
    at_hand = {tool.name for tool in tools}
    calls = [
        call for call in dict.fromkeys(wanted(now, results)) if call not in results and call.name in at_hand
    ]
    if calls and _rounds(after) < ROUNDS:
        made = sum(item.get("type") == "function_call" for item in items)
        return [_function_call(call, made + number) for number, call in enumerate(calls, start=1)]
    message, memories = reply(now, results)
    return [_answer(json.dumps({"message": message, "memories": memories}, ensure_ascii=False))]


# What comes in ---------------------------------------------------------------------------------------


def _items(input: str | list[TResponseInputItem]) -> list[dict[str, Any]]:
    if isinstance(input, str):
        return [{"role": "user", "content": input}]
    return [dict(item) for item in input]


def _text(content: object) -> str:
    """The text of an item: a string, or a list of parts some of which have text."""
    if isinstance(content, str):
        return content
    parts: Iterable[object] = content if isinstance(content, list) else ()
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _turns(items: list[dict[str, Any]]) -> Iterator[Turn]:
    for item in items:
        if item.get("role") in ("user", "assistant"):
            yield item["role"], _text(item.get("content"))


def _results(items: list[dict[str, Any]]) -> dict[Call, dict[str, Any]]:
    """What each call of this turn brought."""
    outputs = {item.get("call_id"): item for item in items if item.get("type") == "function_call_output"}
    results = {}
    for item in items:
        if item.get("type") == "function_call" and item.get("call_id") in outputs:
            call = Call.of(item["name"], **json.loads(item["arguments"]))
            results[call] = _read(_text(outputs[item["call_id"]].get("output")))
    return results


def _read(output: str) -> dict[str, Any]:
    """A tool's JSON. What is no JSON object is what the runner says of a tool that failed."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return {"error": output}
    return found if isinstance(found, dict) else {"error": output}


def _rounds(items: list[dict[str, Any]]) -> int:
    """Model calls that asked for tools: runs of function calls."""
    kinds = ["", *(str(item.get("type")) for item in items)]
    return sum(kind == "function_call" and before != kind for before, kind in pairwise(kinds))


# What goes out ---------------------------------------------------------------------------------------


def _function_call(call: Call, number: int) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"offline_{number}", name=call.name, arguments=call.arguments
    )


def _answer(text: str) -> ResponseOutputMessage:
    return ResponseOutputMessage(
        id="offline_answer",
        type="message",
        role="assistant",
        status="completed",
        content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
    )


def _events(output: list[TResponseOutputItem]) -> Iterator[TResponseStreamEvent]:
    number = 0
    for item in output:
        for piece in _pieces(item):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                delta=piece,
                item_id="offline_answer",
                content_index=0,
                output_index=0,
                logprobs=[],
                sequence_number=number,
            )
            number += 1
    whole = Response(
        id="offline",
        created_at=0,
        model=NAME,
        object="response",
        output=output,
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        status="completed",
    )
    yield ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=number)


def _pieces(item: TResponseOutputItem) -> list[str]:
    if not isinstance(item, ResponseOutputMessage):
        return []
    text = "".join(part.text for part in item.content if isinstance(part, ResponseOutputText))
    return re.findall(r"\s*\S+|\s+$", text)


def _shown(instructions: str | None, input: str | list[TResponseInputItem]) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": instructions}] if instructions else []
    return [*system, *_items(input)]
