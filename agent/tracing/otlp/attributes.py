"""A span's name and attributes for OpenTelemetry.

Names follow the GenAI semantic conventions as of October 2026 (repository
open-telemetry/semantic-conventions-genai, status: development). Attributes that viewers such as Phoenix show
have the names that these expect; all others begin with ``hachi.``.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from agent.tracing.redact import map_texts
from agent.tracing.trace import (
    TURN,
    Trace,
    mappings,
    read_data,
    scored_ids,
    shown_ids,
    tool_failed,
    was_stopped,
)
from memory.process.spans import Span
from memory.text import storable

AGENT = "hachi"
PROVIDER = "openai"
"""The provider whose API is used, even if the model is another provider's."""
_KINDS = {
    TURN: ("invoke_agent", AGENT, "AGENT"),
    "call": ("chat", None, "LLM"),
    "tool": ("execute_tool", None, "TOOL"),
    "search": ("search_memory", "memories", "RETRIEVER"),
    "documents": ("retrieval", "documents", "RETRIEVER"),
    "decision": ("upsert_memory", "memories", "CHAIN"),
}
"""By kind of span: ``gen_ai.operation.name``, the rest of its name (None: the model or tool), and
``openinference.span.kind``. Other spans are named after their kind."""


def _kind(span: Span) -> tuple[str, str, str]:
    operation, subject, viewed = _KINDS.get(span.kind, (span.kind, None, "CHAIN"))
    return operation, subject or span.name, viewed


def span_name(span: Span) -> str:
    """Return ``chat gpt-5-mini``, ``execute_tool search_memories`` …"""
    return " ".join(_kind(span)[:2]).strip()


def error_type(span: Span) -> str | None:
    """Return ``error.type``: the exception's name, or ``tool_error`` if a tool reported that it failed."""
    if was_stopped(span):
        return None
    if span.error:
        return span.error.partition(":")[0].strip()
    return "tool_error" if span.kind == "tool" and tool_failed(span) else None


def attributes_of(span: Span, trace: Trace | None = None) -> dict[str, Any]:
    """Return a span's attributes, with those of the whole `trace` if it is passed."""
    operation, _, viewed = _kind(span)
    found: dict[str, Any] = {"gen_ai.operation.name": operation, "hachi.span.kind": span.kind}
    found |= {"openinference.span.kind": viewed, "error.type": error_type(span)}
    if read := _ATTRIBUTES.get(span.kind):
        found |= read(span)
    found |= _of_trace(trace) if trace else {}
    # without unpaired surrogates, which would block the whole export
    return {name: map_texts(value, storable) for name, value in found.items() if value not in (None, "", [])}


def _of_trace(trace: Trace) -> dict[str, Any]:
    """Return the root span's attributes for the whole trace. The person is a pseudonym. A conversation is a
    session, which contains turns but no jobs or calls. Only the spans of calls have tokens."""
    summary, person = trace.summary, trace.summary.user and pseudonym(trace.summary.user)
    session = summary.conversation if summary.kind == TURN else ""
    if summary.user and person:
        session = session.replace(summary.user, person)
    return {
        **_shown(*(read_data(trace.root, *path) for path in (("incoming", "text"), ("reply", "message")))),
        "session.id": session,
        "gen_ai.conversation.id": session,
        "user.id": person,
        "gen_ai.agent.name": AGENT,
        "gen_ai.request.model": summary.model,
        "hachi.trace.id": summary.id,
        "hachi.turn.id": summary.turn_id,
        "hachi.status": summary.status,
        "hachi.place": summary.place or "dm",
        "hachi.surface": summary.surface,
    }


def _shown(shown_input: Any, output: Any) -> dict[str, str]:
    """Return what a viewer shows as the input and output of a span."""
    shown = dict[str, str]()
    for name, value in {"input": shown_input, "output": output}.items():
        shown[f"{name}.value"] = _json(value)
        if value and not isinstance(value, str):
            shown[f"{name}.mime_type"] = "application/json"
    return shown


def pseudonym(user: str) -> str:
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _call(span: Span) -> dict[str, Any]:
    request = span.data.get("request") or {}
    settings, system, sent = (request.get(name) for name in ("settings", "system", "input"))
    items = [{"role": "user", "content": sent}] if isinstance(sent, str) else mappings(sent)
    finish, usage, output = span.data.get("finish"), span.data.get("usage") or {}, span.data.get("output")
    # the conventions require a finish reason for each answer
    answers = [_message(item) | {"finish_reason": finish or "stop"} for item in mappings(output)]
    return {
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": span.name,
        **{f"gen_ai.request.{name}": (settings or {}).get(name) for name in _SETTINGS},
        **{f"gen_ai.usage.{name}": usage.get(ours) for ours, name in _USAGE.items()},
        "gen_ai.response.time_to_first_chunk": span.data.get("first"),
        "gen_ai.response.finish_reasons": [finish] if finish else None,
        "gen_ai.system_instructions": _json([{"type": "text", "content": system}] if system else None),
        "gen_ai.tool.definitions": _json(
            [{"type": "function", "name": name} for name in request.get("tools") or ()]
        ),
        "gen_ai.input.messages": _json([_message(item) for item in items]),
        "gen_ai.output.messages": _json(answers),
        **_shown(items[-1:], output),  # the other items are in the messages
    }


_USAGE = {"input": "input_tokens", "output": "output_tokens", "cached": "cache_read.input_tokens"}
_SETTINGS = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty")


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an item of the Responses API to a message of the conventions."""
    kind, id = item.get("type", "message"), item.get("call_id")
    role, part = "assistant", dict(item)
    if kind == "message":
        content = item.get("content")
        texts = [{"text": content}] if isinstance(content, str) else mappings(content)
        return {"role": item.get("role", role), "parts": [_part(one) for one in texts]}
    if kind == "function_call":
        part = {"type": "tool_call", "id": id, "name": item.get("name"), "arguments": item.get("arguments")}
    elif kind == "function_call_output":
        role, part = "tool", {"type": "tool_call_response", "id": id, "response": item.get("output")}
    elif kind == "reasoning":
        summary = "\n".join(str(one.get("text")) for one in mappings(item.get("summary")))
        part = {"type": kind, "content": summary}
    return {"role": role, "parts": [part]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    text = part.get("text", part.get("refusal"))
    return dict(part) if text is None else {"type": "text", "content": text}


def _tool(span: Span) -> dict[str, Any]:
    arguments, result = span.data.get("arguments"), span.data.get("result")
    return {
        "gen_ai.tool.name": span.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": span.data.get("call_id"),
        "gen_ai.tool.call.arguments": _json(arguments),
        "gen_ai.tool.call.result": _json(result),
        **_shown(arguments, result),
    }


def _search(span: Span) -> dict[str, Any]:
    """Return the query, the results, and the number of candidates left out by reason."""
    candidates = mappings(span.data.get("candidates"))
    texts = {one.get("id"): one.get("content") for one in candidates}
    reasons = Counter(str(one["left_out"]) for one in candidates if one.get("left_out"))
    documents = {
        f"retrieval.documents.{place}.document.{name}": value
        for place, (id, score) in enumerate(scored_ids(span))
        for name, value in {"id": id, "score": score, "content": texts.get(id)}.items()
    }
    return {
        **documents,
        "input.value": span.data.get("query"),
        "hachi.search.limit": span.data.get("limit"),
        "hachi.search.left_out": [f"{number} × {reason}" for reason, number in reasons.most_common()],
        "hachi.search.given": sorted(shown_ids(span)),
    }


def _decision(span: Span) -> dict[str, Any]:
    made = mappings(span.data.get("decisions"))
    return {
        **_shown(None, [{name: one.get(name) for name in ("action", "id", "content")} for one in made]),
        "hachi.decision.actions": [str(one.get("action")) for one in made],
    }


def _json(value: Any) -> str:
    """Return a text unchanged, an empty string for nothing, and JSON for anything else."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""


_ATTRIBUTES: Mapping[str, Callable[[Span], dict[str, Any]]] = {
    "call": _call,
    "tool": _tool,
    "search": _search,
    "documents": _search,
    "decision": _decision,
    "answer": lambda span: {"hachi.answer.well_formed": span.data.get("well_formed")},
}
