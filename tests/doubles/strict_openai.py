"""What OpenAI's two APIs refuse, according to their reference and guides of 24 November 2026.

    server.refuses = strict_openai.refusal

Reasoning items are recognised only by their encrypted content, since the server stores nothing. The content
is sent if `include` asks for it; models without reasoning refuse that.
"""

import json
from collections.abc import Iterator
from typing import Any

from scripted_server import Asked, Raw

LISTED = frozenset(
    "type properties required additionalProperties items enum const anyOf $ref $defs description title "
    "pattern format multipleOf maximum exclusiveMaximum minimum exclusiveMinimum minItems maxItems".split()
)
"""Keywords of strict schemas (platform.openai.com/docs/guides/structured-outputs, "Supported schemas")."""
RESPONSES = frozenset(
    "model input instructions include tools tool_choice parallel_tool_calls text reasoning store stream "
    "max_output_tokens temperature top_p metadata truncation".split()
)
CHAT = frozenset(
    "model messages tools tool_choice parallel_tool_calls response_format reasoning_effort store stream "
    "stream_options max_completion_tokens temperature top_p stop seed metadata verbosity presence_penalty "
    "frequency_penalty".split()
)


def refusal(asked: Asked, *, reasons: bool = True) -> Raw | None:
    """Return the API's error for a request that it refuses; None if it accepts the request."""
    responses = asked.path.endswith("/responses")
    for param, message, status in _faults(asked, responses, reasons):
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
        return Raw(json.dumps({"error": error}).encode(), "application/json", status)
    return None


def _faults(asked: Asked, responses: bool, reasons: bool) -> Iterator[tuple[str, str, int]]:
    for name in asked.json.keys() - (RESPONSES if responses else CHAT):
        yield name, f"Unknown parameter: '{name}'.", 400
    if not reasons and asked.json.get("include"):
        yield "include", "Encrypted content is not supported with this model.", 400
    if reasons:
        for name in {"temperature", "top_p", "stop"} & asked.json.keys():
            yield name, f"Unsupported parameter: '{name}' is not supported with this model.", 400
    form = asked.form or {}
    schema = form.get("schema") or (form.get("json_schema") or {}).get("schema")
    for name in _unlisted(schema):
        yield "text.format.schema", f"Invalid schema: '{name}' is not permitted.", 400
    if asked.json.get("store") is not False:
        yield "store", "the tests store nothing", 400
    yield from _items(asked.json["input"], reasons) if responses else _messages(asked.json["messages"])


def _unlisted(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for name, part in schema.items():
        if name not in LISTED:
            yield name
        inner = part.values() if name in ("properties", "$defs") else part if name == "anyOf" else [part]
        for one in inner if name in ("properties", "$defs", "anyOf", "items") else ():
            yield from _unlisted(one)
    if "properties" in schema and set(schema["required"]) != set(schema["properties"]):
        yield "required"


def _items(items: list[dict[str, Any]], reasons: bool) -> Iterator[tuple[str, str, int]]:
    calls, reasoning = list[str](), set[str]()
    for item in items:
        kind = item.get("type", "message")
        if kind == "reasoning":
            if not item.get("encrypted_content"):
                what = "Items are not persisted when `store` is set to false."
                yield "input", f"Item with id '{item.get('id')}' not found. {what}", 404
            reasoning.add(item["encrypted_content"])
        elif kind == "function_call":
            if item["call_id"] in calls:
                yield "input", f"Duplicate call_id: {item['call_id']}.", 400
            if reasons and item.get("id") and not reasoning:
                yield "input", f"Item '{item['id']}' was provided without its required 'reasoning' item.", 400
            calls.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in calls:
                yield "input", f"No tool call found for function call output {item['call_id']}.", 400
        elif item.get("role") not in ("user", "assistant", "system", "developer"):
            yield "input", f"Invalid value: {item.get('role')}.", 400
        if extra := item.keys() & {"provider_data", "finish"}:
            yield "input", f"Unknown parameter: 'input[0].{extra.pop()}'.", 400


def _messages(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str, int]]:
    waiting = list[str]()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield "messages", "messages with role 'tool' must follow a message with 'tool_calls'.", 400
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield "messages", f"tool_call_ids did not have response messages: {waiting}", 400
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(waiting)) < len(waiting):
            yield "messages", "Duplicate value for 'tool_call_id'.", 400
        for name in message.keys() - {"role", "content", "tool_calls", "name", "refusal"}:
            yield "messages", f"Unknown parameter: 'messages[0].{name}'.", 400
