"""Traces as OpenTelemetry spans: sent to a collector by OTLP over HTTP, or written as OTLP/JSON.

Needs the extra `otel`. Names and attributes follow the GenAI semantic conventions as of October 2026
(repository open-telemetry/semantic-conventions-genai, status: development); others are named ``hachi.…``.

Only stored traces are sent, after secrets and unwanted content were removed. The exporter retries in its own
thread; no turn waits for it. Headers and time-outs come from the usual variables (`OTEL_EXPORTER_OTLP_…`).
"""

import json
import logging
import os
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b, sha256
from importlib.metadata import version
from threading import Thread
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from agent.tracing.redact import map_texts
from agent.tracing.serialization import read_trace
from agent.tracing.trace import TURN, Summary, Trace, given_of, mappings, read_data, scored_ids, tool_failed
from memory.process.breaker import Breaker, CircuitOpen
from memory.process.spans import Span
from memory.text import storable

log = logging.getLogger("hachi.traces")

PATH = "/v1/traces"
SECONDS = 5.0
"""How long a request to the collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set."""
CLOSE_SECONDS = 2.0
"""How long closing waits for the remaining spans."""
NANO = 1_000_000_000
AGENT = "hachi"
PROVIDER = "openai"
"""The provider whose API is used; the model may be anybody's."""


class Sender:
    """A listener of the recorder that sends every finished trace."""

    def __init__(self, endpoint: str, breaker: Breaker | None = None) -> None:
        """`endpoint` is the collector's URL, with or without `/v1/traces`."""
        url = endpoint.rstrip("/")
        timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else SECONDS
        exporter = OTLPSpanExporter(url if url.endswith(PATH) else url + PATH, timeout=timeout)
        breaker = breaker or Breaker("collector", failures=1)
        self._queue = BatchSpanProcessor(_GuardedExporter(exporter, breaker))
        self._resource = _resource()

    def __call__(self, summary: Summary, body: bytes) -> None:
        for span in _readable_spans(read_trace(summary, body), self._resource):
            self._queue.on_end(span)

    def close(self) -> None:
        """Send the waiting spans, for at most `CLOSE_SECONDS`."""
        closing = Thread(target=self._queue.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if closing.is_alive():
            log.warning("the last spans could not be sent to the collector and are dropped")


class _GuardedExporter(SpanExporter):
    """Drops spans while the collector is left alone."""

    def __init__(self, inner: SpanExporter, breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            with self._breaker.calling():
                if self._inner.export(spans) is not SpanExportResult.SUCCESS:
                    raise ConnectionError("it did not take the spans; check HACHI_OTLP_ENDPOINT")
        except (ConnectionError, CircuitOpen):
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._inner.shutdown()


def otlp_protobuf(traces: Sequence[Trace]) -> bytes:
    """Return an ExportTraceServiceRequest as protobuf, the form that every collector accepts."""
    resource = _resource()
    spans = [span for trace in traces for span in _readable_spans(trace, resource)]
    return bytes(encode_spans(spans).SerializeToString())


def otlp_json(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest in the JSON form that a collector accepts at ``POST
    /v1/traces``."""
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
    """Yield every span of a trace. A background job is a trace of its own, with a link to its turn."""
    summary, root = trace.summary, trace.root
    began, took = summary.started_at.timestamp(), root.took or 0.0
    links = [Link(_context(summary.turn_id, ""))] if summary.turn_id else []
    scope = InstrumentationScope(AGENT, version("hachi"))
    host = _host_of(root)
    for path, span in _descend(root):
        end = _nano(began, took if span.took is None else span.at + span.took)
        yield ReadableSpan(
            name=storable(span_name(span)),
            context=_context(summary.id, path, host),
            parent=_context(summary.id, path.rpartition(".")[0], host) if path else host,
            resource=resource,
            attributes=attributes_of(span, None if path else trace),
            events=_events(span, end),
            links=() if path else links,
            kind=SpanKind.CLIENT if span.kind == "call" else SpanKind.INTERNAL,
            status=_status(span),
            start_time=_nano(began, span.at),
            end_time=end,
            instrumentation_scope=scope,
        )


def _descend(span: Span, path: str = "") -> Iterator[tuple[str, Span]]:
    """Yield each span with its path: empty for the root, `.0.2` for the third child of the first child."""
    yield path, span
    for number, inner in enumerate(span.spans):
        yield from _descend(inner, f"{path}.{number}")


def _host_of(root: Span) -> SpanContext | None:
    """Return the span of the program in which the turn was taken, whose trace it joins."""
    host = root.data.get("host")
    if not isinstance(host, Mapping):
        return None
    return SpanContext(int(host["trace"], 16), int(host["span"], 16), True, TraceFlags(1))


def _context(trace_id: str, path: str, host: SpanContext | None = None) -> SpanContext:
    """Return the span's ids, which are the same every time."""
    trace = host.trace_id if host else int(trace_id.removeprefix("trace_"), 16)
    span = blake2b(f"{trace_id}{path}".encode(), digest_size=8).digest()
    return SpanContext(trace, int.from_bytes(span), is_remote=False, trace_flags=TraceFlags(1))


def _status(span: Span) -> Status:
    if (error := error_type(span)) is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, storable(span.error or error))


def _events(span: Span, at: int) -> list[Event]:
    """Return the exception that a tool raised. It is not the span's error: the tool still gave an answer."""
    traceback = span.data.get("traceback")
    return [Event("exception", {"exception.stacktrace": storable(str(traceback))}, at)] if traceback else []


def _nano(began: float, seconds: float) -> int:
    return int(began * NANO) + int(seconds * NANO)


OPERATIONS = {TURN: "invoke_agent", "call": "chat", "tool": "execute_tool"}
OPERATIONS |= {"search": "search_memory", "documents": "retrieval"}
"""``gen_ai.operation.name`` by kind of span."""
VIEWER_KINDS = {TURN: "AGENT", "call": "LLM", "tool": "TOOL", "search": "RETRIEVER", "documents": "RETRIEVER"}
"""``openinference.span.kind``, which viewers such as Phoenix know; CHAIN for decisions, jobs and the rest."""
SUBJECTS = {TURN: AGENT, "search": "memories", "decision": "memories", "documents": "documents"}
"""The rest of a span's name by kind; other kinds use the name of the model or tool."""
_MEMORY_OPERATIONS = {"add": "create_memory", "merge": "update_memory", "replace": "update_memory"}


def operation_of(span: Span) -> str:
    """Return ``gen_ai.operation.name``, or the span's kind if the conventions define no operation for it."""
    if span.kind == "decision":
        made = {_MEMORY_OPERATIONS.get(one.get("action", "")) for one in mappings(span.data.get("decisions"))}
        return (made.pop() if len(made) == 1 else None) or "upsert_memory"
    return OPERATIONS.get(span.kind, span.kind)


def span_name(span: Span) -> str:
    """Return ``chat gpt-5-mini``, ``execute_tool search_memories`` …"""
    return f"{operation_of(span)} {SUBJECTS.get(span.kind, span.name)}".strip()


def error_type(span: Span) -> str | None:
    """Return ``error.type``: the exception's name, or ``tool_error`` if a tool reported that it failed."""
    if span.error:
        return span.error.partition(":")[0].strip()
    return "tool_error" if span.kind == "tool" and tool_failed(span) else None


def attributes_of(span: Span, trace: Trace | None = None) -> dict[str, Any]:
    """Return a span's attributes, with those of the whole `trace` if it is given."""
    found: dict[str, Any] = {"gen_ai.operation.name": operation_of(span), "hachi.span.kind": span.kind}
    found["openinference.span.kind"] = VIEWER_KINDS.get(span.kind, "CHAIN")
    if read := _ATTRIBUTES.get(span.kind):
        found |= read(span)
    found |= _of_trace(trace) if trace else {}
    found["error.type"] = error_type(span)
    # without unpaired surrogates, which would block the whole export
    return {name: map_texts(value, storable) for name, value in found.items() if value not in (None, "", [])}


def _of_trace(trace: Trace) -> dict[str, Any]:
    """Return the root span's attributes for the whole trace. The person is a pseudonym."""
    summary, person = trace.summary, trace.summary.user and pseudonym(trace.summary.user)
    said, replied = (read_data(trace.root, *path) for path in (("incoming", "text"), ("reply", "message")))
    return {
        "input.value": said,
        "output.value": replied,
        "gen_ai.input.messages": _json([_message({"role": "user", "content": said})] if said else None),
        "gen_ai.output.messages": _json([_message({"content": replied})] if replied else None),
        "session.id": summary.conversation,
        "user.id": person,
        "gen_ai.agent.name": AGENT,
        "gen_ai.conversation.id": summary.conversation,
        "gen_ai.request.model": summary.model,
        "enduser.pseudo.id": person,
        "hachi.trace.id": summary.id,
        "hachi.turn.id": summary.turn_id,
        "hachi.status": summary.status,
        "hachi.place": summary.place or "dm",
        "hachi.surface": summary.surface,
        **_usage(asdict(summary.usage)),
    }


def pseudonym(user: str) -> str:
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _usage(counted: Mapping[str, Any]) -> dict[str, Any]:
    names = {"input": "input_tokens", "output": "output_tokens", "cached": "cache_read.input_tokens"}
    return {f"gen_ai.usage.{name}": counted.get(ours) for ours, name in names.items()}


def _call(span: Span) -> dict[str, Any]:
    request = span.data.get("request") or {}
    settings, system, given = (request.get(name) for name in ("settings", "system", "input"))
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return {
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": span.name,
        **{f"gen_ai.request.{name}": (settings or {}).get(name) for name in _SETTINGS},
        **_usage(span.data.get("usage") or {}),
        "gen_ai.response.time_to_first_chunk": span.data.get("first"),
        "gen_ai.system_instructions": _json([{"type": "text", "content": system}] if system else None),
        "gen_ai.input.messages": _json([_message(item) for item in mappings(items)]),
        "gen_ai.output.messages": _json([_message(item) for item in mappings(span.data.get("output"))]),
    }


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
    return {"role": role, "parts": [part]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    text = part.get("text", part.get("refusal"))
    return dict(part) if text is None else {"type": "text", "content": text}


def _tool(span: Span) -> dict[str, Any]:
    return {
        "gen_ai.tool.name": span.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": span.data.get("call_id"),
        "input.value": _json(span.data.get("arguments")),
        "gen_ai.tool.call.arguments": _json(span.data.get("arguments")),
        "gen_ai.tool.call.result": _json(span.data.get("result")),
    }


def _search(span: Span) -> dict[str, Any]:
    return {
        "gen_ai.memory.store.id": "memories",
        "gen_ai.memory.record.count": len(span.data.get("found") or ()),
        "gen_ai.memory.query.text": span.data.get("query"),
        "gen_ai.memory.records": _found(span),
        "hachi.search.limit": span.data.get("limit"),
        **_retrieved(span),
    }


def _documents(span: Span) -> dict[str, Any]:
    return {
        "gen_ai.data_source.id": "documents",
        "gen_ai.request.top_k": span.data.get("limit"),
        "gen_ai.retrieval.query.text": span.data.get("query"),
        "gen_ai.retrieval.documents": _found(span),
        **_retrieved(span),
    }


def _retrieved(span: Span) -> dict[str, Any]:
    """Return the question, and how many candidates were left out for which reason."""
    reasons = Counter(
        str(one["left_out"]) for one in mappings(span.data.get("candidates")) if one.get("left_out")
    )
    told = [f"{number} × {reason}" for reason, number in reasons.most_common()]
    given = sorted(given_of(span))
    return {"input.value": span.data.get("query"), "hachi.search.left_out": told, "hachi.search.given": given}


def _found(span: Span) -> str:
    """Return a search's results as JSON, with the text if the candidates hold it."""
    candidates = mappings(span.data.get("candidates"))
    texts = {one.get("id"): {"content": one["content"]} for one in candidates if "content" in one}
    return _json([{"id": id, "score": score, **texts.get(id, {})} for id, score in scored_ids(span)])


def _decision(span: Span) -> dict[str, Any]:
    made = mappings(span.data.get("decisions"))
    written = [str(one["id"]) for one in made if one.get("id") and one.get("action") != "ignore"]
    records = [
        {"id": one.get("id"), "content": one.get("content"), "metadata": {"action": one.get("action")}}
        for one in made
    ]
    return {
        "gen_ai.memory.store.id": "memories",
        "gen_ai.memory.record.count": len(written),
        "gen_ai.memory.record.id": written[0] if len(written) == 1 else None,
        "gen_ai.memory.records": _json(records),
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
    "documents": _documents,
    "decision": _decision,
    "answer": lambda span: {"hachi.answer.well_formed": span.data.get("well_formed")},
}
