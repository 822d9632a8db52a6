"""A trace in the words of OpenTelemetry: what each span is called, and its attributes.

The names are those of the GenAI semantic conventions as of October 2026 (repository
open-telemetry/semantic-conventions-genai, status: development). They are written out here, as that
repository makes no package of them. What the conventions have no word for is called ``hachi.…``.

Spans are taken as `read_trace` gives them: plain values, after redaction.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from agent.tracing.trace import TURN, Summary
from memory.spans import Span

Attribute = str | int | float | bool | list[str]

AGENT = "hachi"
PROVIDER = "openai"
"""Whose API is spoken; the model may be anybody's."""
MEMORIES = "memories"
DOCUMENTS = "documents"

_ACTIONS = {"add": "create_memory", "merge": "update_memory", "replace": "update_memory"}
_SETTINGS = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty")


def operation_of(span: Span) -> str:
    """``gen_ai.operation.name``; the kind of a span that the conventions have no word for."""
    if span.kind == "decision":
        made = {_ACTIONS.get(str(one.get("action"))) for one in _items(span.data.get("decisions"))}
        return str(made.pop()) if len(made) == 1 and None not in made else "upsert_memory"
    known = {
        TURN: "invoke_agent",
        "call": "chat",
        "tool": "execute_tool",
        "search": "search_memory",
        "documents": "retrieval",
    }
    return known.get(span.kind, span.kind)


def name_of(span: Span) -> str:
    """What the span is called: ``chat gpt-5-mini``, ``execute_tool search_memories`` …"""
    about = {TURN: AGENT, "search": MEMORIES, "decision": MEMORIES, "documents": DOCUMENTS}
    return f"{operation_of(span)} {about.get(span.kind, span.name)}".strip()


def is_client(span: Span) -> bool:
    """Whether it waits for another program; all else happens in this one."""
    return span.kind == "call"


def attributes_of(
    span: Span, summary: Summary | None = None, *, content: bool = True
) -> dict[str, Attribute]:
    """Of one span. `summary`, of its trace, is for the root, which says whose turn it was. Without `content`
    nothing that anybody said, asked or was told is in it."""
    found: dict[str, Any] = {"gen_ai.operation.name": operation_of(span), "hachi.span.kind": span.kind}
    found |= _ABOUT.get(span.kind, _nothing)(span)
    if content:
        found |= _CONTENT.get(span.kind, _nothing)(span)
    if summary is not None:
        found |= of_trace(summary)
    if (error := error_type(span)) is not None:
        found["error.type"] = error
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def error_type(span: Span) -> str | None:
    """``error.type``: the exception's name; ``tool_error`` where a tool said that it did not work."""
    if span.error:
        return span.error.partition(":")[0].strip()
    return "tool_error" if span.kind == "tool" and span.data.get("ok") is False else None


def of_trace(summary: Summary) -> dict[str, Attribute]:
    """What a trace's root says of the whole. The person is a pseudonym: the beginning of a hash."""
    found: dict[str, Attribute | None] = {
        "gen_ai.agent.name": AGENT,
        "gen_ai.conversation.id": summary.conversation,
        "gen_ai.request.model": summary.model,
        "enduser.pseudo.id": summary.user and pseudonym(summary.user),
        "hachi.trace.id": summary.id,
        "hachi.turn.id": summary.turn_id,
        "hachi.status": summary.status,
        "hachi.place": summary.place or "dm",
        "hachi.surface": summary.surface,
        "gen_ai.usage.input_tokens": summary.usage.input,
        "gen_ai.usage.output_tokens": summary.usage.output,
        "gen_ai.usage.cache_read.input_tokens": summary.usage.cached,
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def pseudonym(user: str) -> str:
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _nothing(_span: Span) -> dict[str, Any]:
    return {}


def _call(span: Span) -> dict[str, Any]:
    usage, asked = _mapping(span.data.get("usage")), _mapping(span.data.get("request"))
    settings = _mapping(asked.get("settings"))
    return {
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": span.name,
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
        "gen_ai.usage.cache_read.input_tokens": usage.get("cached"),
        "gen_ai.response.time_to_first_chunk": span.data.get("first"),
        **{f"gen_ai.request.{name}": settings[name] for name in _SETTINGS if name in settings},
    }


def _call_content(span: Span) -> dict[str, Any]:
    asked = _mapping(span.data.get("request"))
    system, given = asked.get("system"), asked.get("input")
    said = [{"role": "user", "content": given}] if isinstance(given, str) else _items(given)
    return {
        "gen_ai.system_instructions": system and _json([{"type": "text", "content": system}]),
        "gen_ai.input.messages": _json([_message(item) for item in said]),
        "gen_ai.output.messages": _json([_message(item) for item in _items(span.data.get("output"))]),
    }


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of the Responses API as the conventions' message."""
    kind = item.get("type", "message")
    if kind == "function_call":
        call = {"type": "tool_call", "id": item.get("call_id"), "name": item.get("name")}
        return {"role": "assistant", "parts": [call | {"arguments": item.get("arguments")}]}
    if kind == "function_call_output":
        result = {"type": "tool_call_response", "id": item.get("call_id"), "response": item.get("output")}
        return {"role": "tool", "parts": [result]}
    if kind != "message":
        return {"role": "assistant", "parts": [dict(item)]}
    return {"role": item.get("role", "assistant"), "parts": list(_parts(item.get("content")))}


def _parts(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "content": content}
        return
    for part in _items(content):
        text = part.get("text", part.get("refusal"))
        yield dict(part) if text is None else {"type": "text", "content": text}


def _tool(span: Span) -> dict[str, Any]:
    return {
        "gen_ai.tool.name": span.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": span.data.get("call_id"),
    }


def _tool_content(span: Span) -> dict[str, Any]:
    return {
        "gen_ai.tool.call.arguments": _text(span.data.get("arguments")),
        "gen_ai.tool.call.result": _text(span.data.get("result")),
    }


def _search(span: Span) -> dict[str, Any]:
    return {
        "gen_ai.memory.store.id": MEMORIES,
        "gen_ai.memory.record.count": len(span.data.get("found") or ()),
        "hachi.search.limit": span.data.get("limit"),
    }


def _search_content(span: Span) -> dict[str, Any]:
    known = {one.get("id"): one for one in _items(span.data.get("candidates"))}
    records = [
        {"id": id, "score": score, "content": known.get(id, {}).get("content", "")}
        for id, score in _pairs(span.data.get("found"))
    ]
    return {"gen_ai.memory.query.text": span.data.get("query"), "gen_ai.memory.records": _json(records)}


def _documents(span: Span) -> dict[str, Any]:
    return {"gen_ai.data_source.id": DOCUMENTS, "gen_ai.request.top_k": span.data.get("limit")}


def _documents_content(span: Span) -> dict[str, Any]:
    found = [{"id": id, "score": score} for id, score in _pairs(span.data.get("found"))]
    return {
        "gen_ai.retrieval.query.text": span.data.get("query"),
        "gen_ai.retrieval.documents": _json(found),
    }


def _decision(span: Span) -> dict[str, Any]:
    made = _items(span.data.get("decisions"))
    written = [str(one["id"]) for one in made if one.get("id") and one.get("action") != "ignore"]
    return {
        "gen_ai.memory.store.id": MEMORIES,
        "gen_ai.memory.record.count": len(written),
        "gen_ai.memory.record.id": written[0] if len(written) == 1 else None,
        "hachi.decision.actions": [str(one.get("action")) for one in made],
    }


def _decision_content(span: Span) -> dict[str, Any]:
    records = [
        {"id": one.get("id"), "content": one.get("content"), "metadata": {"action": one.get("action")}}
        for one in _items(span.data.get("decisions"))
    ]
    return {"gen_ai.memory.records": _json(records)}


def _answer(span: Span) -> dict[str, Any]:
    return {"hachi.answer.well_formed": span.data.get("well_formed")}


_ABOUT = {
    "call": _call,
    "tool": _tool,
    "search": _search,
    "documents": _documents,
    "decision": _decision,
    "answer": _answer,
}
_CONTENT = {
    "call": _call_content,
    "tool": _tool_content,
    "search": _search_content,
    "documents": _documents_content,
    "decision": _decision_content,
}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Mapping[str, Any]]:
    """Those of a list that are objects: with no content kept there is none."""
    found = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return [item for item in found if isinstance(item, Mapping)]


def _pairs(value: Any) -> Iterator[tuple[str, float]]:
    for pair in value or ():
        if isinstance(pair, Sequence) and len(pair) == 2:
            yield str(pair[0]), pair[1]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """Empty for nothing."""
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""


def otel_trace_id(summary: Summary) -> str:
    """32 hexadecimal digits. Work after a turn belongs to the turn's."""
    return (summary.turn_id or summary.id).removeprefix("trace_")


def otel_span_id(trace_id: str, place: int) -> str:
    """16 hexadecimal digits: always the same for the span that is at this place, from 0, in `descend`."""
    return sha256(f"{trace_id} {place}".encode()).hexdigest()[:16]
