"""Traces as OpenTelemetry spans: sent to a collector by OTLP over HTTP, or written as OTLP/JSON.

Needs the extra `otel`. Names and attributes follow the GenAI semantic conventions as of October 2026
(repository open-telemetry/semantic-conventions-genai, status: development), which are published as no
package. What the conventions have no word for is named ``hachi.…``.

Traces are read back from what was written, so that secrets and unwanted content are gone already. The
exporter retries in its own thread and gives up after a while; no turn waits for it. Headers, time-outs and
resource attributes come from the usual variables, such as `OTEL_EXPORTER_OTLP_HEADERS`.
"""

import json
import logging
import os
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b, sha256
from importlib.metadata import version
from threading import Thread
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from agent.tracing.serialization import read_trace
from agent.tracing.trace import TURN, Summary, Trace, mappings, read_data, scored_ids, tool_failed
from memory.spans import Span
from memory.text import storable

log = logging.getLogger("hachi.traces")

PATH = "/v1/traces"
SECONDS = 5.0
"""How long the collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise; also for what is left
when the companion closes."""
NANO = 1_000_000_000
AGENT = "hachi"
PROVIDER = "openai"
"""Whose API is spoken; the model may be anybody's."""

Reader = Callable[[Span], Any]


class Sender:
    """A listener of the recorder: sends every trace that has ended."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is the collector's URL, with or without `/v1/traces`."""
        url = endpoint.rstrip("/")
        timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else SECONDS
        exporter = OTLPSpanExporter(url if url.endswith(PATH) else url + PATH, timeout=timeout)
        self._queue = BatchSpanProcessor(exporter)
        self._resource = _resource()

    def __call__(self, summary: Summary, body: bytes) -> None:
        for span in _readable_spans(read_trace(summary, body), self._resource):
            self._queue.on_end(span)

    def close(self) -> None:
        """Send what waits, for `SECONDS` at most."""
        closing = Thread(target=self._queue.shutdown, daemon=True)
        closing.start()
        closing.join(SECONDS)
        if closing.is_alive():
            log.warning("the last spans could not be sent to the collector and are dropped")


def otlp_json(traces: Sequence[Trace]) -> dict[str, Any]:
    """An ExportTraceServiceRequest, as ``POST /v1/traces`` of a collector takes it in JSON."""
    resource = _resource()
    spans = [span for trace in traces for span in _readable_spans(trace, resource)]
    request: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for scope in (scope for one in request.get("resourceSpans", ()) for scope in one["scopeSpans"]):
        for span in scope["spans"]:
            for place in (span, *span.get("links", ())):
                for name in {"traceId", "spanId", "parentSpanId"} & place.keys():
                    place[name] = b64decode(place[name]).hex()  # OTLP/JSON differs from protobuf's JSON here
    return request


def _resource() -> Resource:
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": AGENT}
    return Resource.create(named | {"service.version": version("hachi")})


def _readable_spans(trace: Trace, resource: Resource) -> Iterator[ReadableSpan]:
    """Every span of a trace. A background job is a trace of its own, with a link to its turn."""
    summary, root = trace.summary, trace.root
    began = int(summary.started_at.timestamp() * NANO)
    ended = began + _nano(root.took or 0.0)
    links = [Link(_context(summary.turn_id, ""))] if summary.turn_id else []
    scope = InstrumentationScope(AGENT, version("hachi"))
    for path, span in _descend(root):
        end = ended if span.took is None else began + _nano(span.at + span.took)
        yield ReadableSpan(
            name=storable(span_name(span)),
            context=_context(summary.id, path),
            parent=_context(summary.id, path.rpartition(".")[0]) if path else None,
            resource=resource,
            attributes=attributes_of(span, None if path else summary),
            events=_events(span, end),
            links=() if path else links,
            kind=SpanKind.CLIENT if span.kind == "call" else SpanKind.INTERNAL,
            status=_status(span),
            start_time=began + _nano(span.at),
            end_time=end,
            instrumentation_scope=scope,
        )


def _descend(span: Span, path: str = "") -> Iterator[tuple[str, Span]]:
    """Each span with its path: empty for the root, `.0.2` for the third span of the first."""
    yield path, span
    for number, inner in enumerate(span.spans):
        yield from _descend(inner, f"{path}.{number}")


def _context(trace_id: str, path: str) -> SpanContext:
    """Always the same for the same span."""
    trace = int(trace_id.removeprefix("trace_"), 16)
    span = blake2b(f"{trace_id}{path}".encode(), digest_size=8).digest()
    return SpanContext(trace, int.from_bytes(span), is_remote=False, trace_flags=TraceFlags(1))


def _status(span: Span) -> Status:
    if (error := error_type(span)) is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, storable(span.error or error))


def _events(span: Span, at: int) -> list[Event]:
    """The exception that a tool raised: the tool answers all the same, so it is not the span's error."""
    traceback = span.data.get("traceback")
    return [Event("exception", {"exception.stacktrace": storable(str(traceback))}, at)] if traceback else []


def _nano(seconds: float) -> int:
    return int(seconds * NANO)


OPERATIONS = {
    TURN: "invoke_agent",
    "call": "chat",
    "tool": "execute_tool",
    "search": "search_memory",
    "documents": "retrieval",
}
"""``gen_ai.operation.name`` by kind of span."""
SUBJECTS = {TURN: AGENT, "search": "memories", "decision": "memories", "documents": "documents"}
"""What follows the operation in a span's name; elsewhere it is the name of the model or tool."""
_MEMORY_OPERATIONS = {"add": "create_memory", "merge": "update_memory", "replace": "update_memory"}


def operation_of(span: Span) -> str:
    """``gen_ai.operation.name``; the span's kind where the conventions have no word for it."""
    if span.kind == "decision":
        made = {_MEMORY_OPERATIONS.get(str(one.get("action"))) for one in _decisions(span)}
        return str(made.pop()) if len(made) == 1 and None not in made else "upsert_memory"
    return OPERATIONS.get(span.kind, span.kind)


def span_name(span: Span) -> str:
    """``chat gpt-5-mini``, ``execute_tool search_memories`` …"""
    return f"{operation_of(span)} {SUBJECTS.get(span.kind, span.name)}".strip()


def error_type(span: Span) -> str | None:
    """``error.type``: the exception's name; ``tool_error`` where a tool reported that it failed."""
    if span.error:
        return span.error.partition(":")[0].strip()
    return "tool_error" if span.kind == "tool" and tool_failed(span) else None


def attributes_of(span: Span, summary: Summary | None = None) -> dict[str, Any]:
    """A span's attributes; those of the whole trace too, where its `summary` is given."""
    found: dict[str, Any] = {"gen_ai.operation.name": operation_of(span), "hachi.span.kind": span.kind}
    found |= {name: read(span) for name, read in ATTRIBUTES.get(span.kind, {}).items()}
    found |= {name: read_summary(summary) for name, read_summary in TRACE_ATTRIBUTES.items() if summary}
    found["error.type"] = error_type(span)
    return {name: _sendable(value) for name, value in found.items() if value not in (None, "", [])}


def _sendable(value: Any) -> Any:
    """Without halves of surrogate pairs, which would keep back all that is sent with them."""
    if isinstance(value, list):
        return [_sendable(item) for item in value]
    return storable(value) if isinstance(value, str) else value


def pseudonym(user: str) -> str:
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _value(*path: str) -> Reader:
    return lambda span: read_data(span, *path)


def _text(*path: str) -> Reader:
    """As it is if it is text, else as JSON."""

    def read(span: Span) -> str | None:
        value = read_data(span, *path)
        return value if value is None or isinstance(value, str) else _json(value)

    return read


def _json(value: Any) -> str:
    """Empty for nothing."""
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""


def _system(span: Span) -> str:
    system = read_data(span, "request", "system")
    return _json([{"type": "text", "content": system}]) if system else ""


def _messages(*path: str) -> Reader:
    def read(span: Span) -> str:
        given = read_data(span, *path)
        items = [{"role": "user", "content": given}] if isinstance(given, str) else mappings(given)
        return _json([_message(item) for item in items])

    return read


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of the Responses API as a message of the conventions."""
    kind, id = item.get("type", "message"), item.get("call_id")
    if kind == "function_call":
        call = {"type": "tool_call", "id": id, "name": item.get("name"), "arguments": item.get("arguments")}
        return {"role": "assistant", "parts": [call]}
    if kind == "function_call_output":
        result = {"type": "tool_call_response", "id": id, "response": item.get("output")}
        return {"role": "tool", "parts": [result]}
    if kind != "message":
        return {"role": "assistant", "parts": [dict(item)]}
    content = item.get("content")
    parts = [{"text": content}] if isinstance(content, str) else mappings(content)
    return {"role": item.get("role", "assistant"), "parts": [_part(part) for part in parts]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    text = part.get("text", part.get("refusal"))
    return dict(part) if text is None else {"type": "text", "content": text}


def _found(span: Span) -> str:
    """What a search found, with the text where the candidates hold it."""
    candidates = mappings(span.data.get("candidates"))
    texts = {one.get("id"): {"content": one["content"]} for one in candidates if "content" in one}
    ids = scored_ids(span.data.get("found"))
    return _json([{"id": id, "score": score, **texts.get(id, {})} for id, score in ids])


def _decisions(span: Span) -> list[Mapping[str, Any]]:
    return mappings(span.data.get("decisions"))


def _written_ids(span: Span) -> list[str]:
    return [str(one["id"]) for one in _decisions(span) if one.get("id") and one.get("action") != "ignore"]


def _decided(span: Span) -> str:
    return _json(
        [
            {"id": one.get("id"), "content": one.get("content"), "metadata": {"action": one.get("action")}}
            for one in _decisions(span)
        ]
    )


_SETTINGS = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty")

ATTRIBUTES: Mapping[str, Mapping[str, Reader]] = {
    "call": {
        "gen_ai.provider.name": lambda _: PROVIDER,
        "gen_ai.request.model": lambda span: span.name,
        **{f"gen_ai.request.{name}": _value("request", "settings", name) for name in _SETTINGS},
        "gen_ai.usage.input_tokens": _value("usage", "input"),
        "gen_ai.usage.output_tokens": _value("usage", "output"),
        "gen_ai.usage.cache_read.input_tokens": _value("usage", "cached"),
        "gen_ai.response.time_to_first_chunk": _value("first"),
        "gen_ai.system_instructions": _system,
        "gen_ai.input.messages": _messages("request", "input"),
        "gen_ai.output.messages": _messages("output"),
    },
    "tool": {
        "gen_ai.tool.name": lambda span: span.name,
        "gen_ai.tool.type": lambda _: "function",
        "gen_ai.tool.call.id": _value("call_id"),
        "gen_ai.tool.call.arguments": _text("arguments"),
        "gen_ai.tool.call.result": _text("result"),
    },
    "search": {
        "gen_ai.memory.store.id": lambda _: "memories",
        "gen_ai.memory.record.count": lambda span: len(span.data.get("found") or ()),
        "gen_ai.memory.query.text": _value("query"),
        "gen_ai.memory.records": _found,
        "hachi.search.limit": _value("limit"),
    },
    "documents": {
        "gen_ai.data_source.id": lambda _: "documents",
        "gen_ai.request.top_k": _value("limit"),
        "gen_ai.retrieval.query.text": _value("query"),
        "gen_ai.retrieval.documents": _found,
    },
    "decision": {
        "gen_ai.memory.store.id": lambda _: "memories",
        "gen_ai.memory.record.count": lambda span: len(_written_ids(span)),
        "gen_ai.memory.record.id": lambda span: ids[0] if len(ids := _written_ids(span)) == 1 else None,
        "gen_ai.memory.records": _decided,
        "hachi.decision.actions": lambda span: [str(one.get("action")) for one in _decisions(span)],
    },
    "answer": {"hachi.answer.well_formed": _value("well_formed")},
}
"""By kind of span, each attribute and how it is read."""

TRACE_ATTRIBUTES: Mapping[str, Callable[[Summary], Any]] = {
    "gen_ai.agent.name": lambda _: AGENT,
    "gen_ai.conversation.id": lambda summary: summary.conversation,
    "gen_ai.request.model": lambda summary: summary.model,
    "enduser.pseudo.id": lambda summary: summary.user and pseudonym(summary.user),
    "hachi.trace.id": lambda summary: summary.id,
    "hachi.turn.id": lambda summary: summary.turn_id,
    "hachi.status": lambda summary: summary.status,
    "hachi.place": lambda summary: summary.place or "dm",
    "hachi.surface": lambda summary: summary.surface,
    "gen_ai.usage.input_tokens": lambda summary: summary.usage.input,
    "gen_ai.usage.output_tokens": lambda summary: summary.usage.output,
    "gen_ai.usage.cache_read.input_tokens": lambda summary: summary.usage.cached,
}
"""What the root span says of the whole trace. The person is a pseudonym."""
