"""Traces as OpenTelemetry spans, sent to a collector on 127.0.0.1 or written as OTLP/JSON."""

import gzip
import json
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span
from scripted_server import Call, Fail, answer

from agent.errors import ModelError
from agent.tracing.otlp.attributes import attributes_of, pseudonym, span_name
from agent.tracing.store.filters import TraceFilter
from memory.process.spans import Span

LONG = "Ab3dEf6hIj9kLm2nOp5qRs8tUv"


class Collector(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[tuple[str, Mapping[str, str], bytes]] = []
        """Path, headers and body of each request."""

    @property
    def resource(self) -> dict[str, str]:
        resource = ExportTraceServiceRequest.FromString(self.asked[0][2]).resource_spans[0].resource
        return {one.key: one.value.string_value for one in resource.attributes}

    @property
    def spans(self) -> list[trace_pb2.Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for _, _, body in self.asked]
        scopes = [scope for one in requests for found in one.resource_spans for scope in found.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def named(self, name: str) -> list[trace_pb2.Span]:
        return [span for span in self.spans if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        packed = self.headers.get("content-encoding") == "gzip"
        self.server.asked.append((self.path, dict(self.headers), gzip.decompress(body) if packed else body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def collector():
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def attributes(span: trace_pb2.Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


async def test_a_turn_arrives_as_spans_with_conventional_names(pet_at, first_way, server, collector, clock):
    pet = await pet_at(first_way, otlp_endpoint=collector.url, consolidate="off")
    server.script(Call("search_memories", {"query": "tea"}), answer("Jasmine tea."))

    reply = await pet.respond("what do I drink?", user="ana")
    await pet.components.recorder.close()

    assert {path for path, _, _ in collector.asked} == {"/v1/traces"}
    assert collector.resource["service.name"] == "hachi"
    [root] = collector.named("invoke_agent hachi")
    assert root.trace_id.hex() == reply.trace_id.removeprefix("trace_")
    assert not root.parent_span_id
    assert attributes(root)["hachi.trace.id"] == reply.trace_id
    viewed = attributes(root)
    assert (viewed["input.value"], viewed["output.value"]) == ("what do I drink?", "Jasmine tea.")
    assert (viewed["session.id"], viewed["user.id"]) == (f"dm:{pseudonym('ana')}", pseudonym("ana"))
    counted = [span.name for span in collector.spans if "gen_ai.usage.input_tokens" in attributes(span)]
    assert counted == ["chat tiny"] * 2, "viewers add up the spans"
    kinds = {attributes(span)["openinference.span.kind"] for span in collector.spans}
    assert kinds == {"AGENT", "LLM", "TOOL", "RETRIEVER", "CHAIN"}
    first, second = collector.named("chat tiny")
    assert {first.parent_span_id, second.parent_span_id} == {root.span_id}
    assert first.kind == trace_pb2.Span.SPAN_KIND_CLIENT
    told = attributes(first)
    assert told["gen_ai.operation.name"] == "chat"
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (10, 5)
    assert "what do I drink?" in told["gen_ai.input.messages"]
    [tool] = collector.named("execute_tool search_memories")
    searched = collector.named("search_memory memories")
    assert {search.parent_span_id for search in searched} == {tool.span_id}
    texts = {attributes(search).get("input.value", "") for search in searched}
    assert texts == {"tea", ""}, "nothing was found, so the newest were listed"
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    began = int(clock().timestamp() * 1e9)
    assert root.start_time_unix_nano == began
    for span in collector.spans:
        assert span.trace_id == root.trace_id
        assert began <= span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
        assert span.status.code == trace_pb2.Status.STATUS_CODE_UNSET
    trace = await pet.traces.get(reply.trace_id, pet.clock())
    [recorded] = trace.spans("tool")
    took = (tool.end_time_unix_nano - tool.start_time_unix_nano) / 1e9
    assert took == pytest.approx(recorded.took, abs=1e-5)


async def test_a_failed_turn_is_sent_with_its_errors_but_no_secret(
    pet_at, first_way, server, collector, monkeypatch
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-pet")
    pet = await pet_at(first_way, otlp_endpoint=f"{collector.url}/v1/traces/")

    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(pet.components.recall, "look", broken)
    server.script(Call("search_memories", {"query": "tea"}), Fail(401, "wrong key"))
    with pytest.raises(ModelError):
        await pet.respond(f"my key is sk-proj-{LONG}, half \ud83d", user="ana")
    await pet.components.recorder.close()

    [root] = collector.named("invoke_agent hachi")
    [tool] = collector.named("execute_tool search_memories")
    assert root.status.code == tool.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    assert attributes(root)["error.type"] == "ModelRejected"
    assert "ModelRejected" in root.status.message
    assert attributes(tool)["error.type"] == "tool_error"
    [event] = tool.events
    assert event.name == "exception"
    assert "ZeroDivisionError: by nothing" in event.attributes[0].value.string_value
    _, headers, whole = collector.asked[0]
    assert b"my key is [redacted]" in whole
    assert LONG.encode() not in whole
    assert headers["x-team"] == "blue"
    assert collector.resource["service.name"] == "our-pet"


async def test_a_turn_joins_the_trace_of_the_program_that_asks(pet_at, first_way, server, collector):
    pet = await pet_at(first_way, consolidate="off", otlp_endpoint=collector.url)
    server.script(Call("nothing"), answer("Hi."), answer("Hi."))
    host = SpanContext(0x1234, 0x56, is_remote=False, trace_flags=TraceFlags(1))
    with use_span(NonRecordingSpan(host)):
        await pet.respond("hello", user="ana")
    outside = await pet.respond("hello", user="ana")
    await pet.components.recorder.close()

    joined, alone = collector.named("invoke_agent hachi")
    assert (joined.trace_id.hex(), joined.parent_span_id.hex()) == (f"{0x1234:032x}", f"{0x56:016x}")
    inner = [span for span in collector.spans if span.trace_id == joined.trace_id and span is not joined]
    assert {span.parent_span_id for span in inner} >= {joined.span_id}
    assert alone.trace_id.hex() == outside.trace_id.removeprefix("trace_")
    assert not alone.parent_span_id


async def test_a_collector_that_hangs_keeps_nobody_waiting(pet_at, first_way, server, monkeypatch):
    monkeypatch.setattr("agent.tracing.otlp.spans.SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        pet = await pet_at(first_way, otlp_endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        server.script(answer("Hi."))
        assert (await pet.respond("hello", user="ana")).message == "Hi."
        await pet.settle()
        assert await pet.traces.count(TraceFilter()) == 1
        await pet.components.recorder.close()
        assert pet.admin.health.unavailable == ["collector"]


async def test_the_work_after_a_turn_is_a_trace_of_its_own_that_names_the_turn(
    pet_at, first_way, server, collector
):
    pet = await pet_at(first_way, consolidate="off", otlp_endpoint=collector.url)
    server.script(Call("nothing"), answer("Tea.", {"content": "Ana likes tea"}))
    await pet.respond("what do I drink?", user="ana", place="acme/general", settle=True)
    await pet.components.recorder.close()

    [root] = collector.named("invoke_agent hachi")
    told = attributes(root)
    assert (told["hachi.place"], told["hachi.status"]) == ("place:acme/general", "tool_error")
    assert told["user.id"] == pseudonym("ana") != pseudonym("ben")
    assert "ana" not in pseudonym("ana")
    failed = [one.name for one in collector.spans if one.status.code == trace_pb2.Status.STATUS_CODE_ERROR]
    assert failed == ["execute_tool nothing"]
    [stored] = collector.named("store_memories")
    assert stored.links[0].span_id == root.span_id
    assert "session.id" in told
    assert not {"session.id", "gen_ai.conversation.id"} & attributes(stored).keys(), "it is no turn of it"


NAMES = [
    (Span("turn"), "invoke_agent hachi"),
    (Span("call", "gpt-5-mini"), "chat gpt-5-mini"),
    (Span("tool", "remember"), "execute_tool remember"),
    (Span("search"), "search_memory memories"),
    (Span("documents"), "retrieval documents"),
    (Span("decision"), "upsert_memory memories"),
    (Span("answer"), "answer"),
    (Span("new"), "new"),
]


def test_every_kind_of_span_has_a_name_and_attributes_even_without_data():
    for span, name in NAMES:
        assert span_name(span) == name
        found = attributes_of(span)
        assert found["gen_ai.operation.name"]
        assert all(isinstance(value, str | int | float | bool | list) for value in found.values())


def test_a_call_has_its_model_tokens_and_texts():
    asked = [
        {"role": "user", "content": "cats?"},
        {"type": "function_call", "call_id": "c1", "name": "search_memories", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "none"},
    ]
    said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}]
    request = {"system": "Be kind.", "input": asked, "settings": {"temperature": 0.2, "extra_args": {}}}
    request["tools"] = ["search_memories"]
    usage = {"input": 120, "output": 9, "cached": 100}
    data = {"request": request, "output": said, "usage": usage, "first": 0.5, "finish": "length"}
    found = attributes_of(Span("call", "gpt", data=data))
    assert found["gen_ai.request.model"] == "gpt"
    assert found["gen_ai.usage.cache_read.input_tokens"] == 100
    assert found["gen_ai.request.temperature"] == 0.2
    assert found["gen_ai.response.time_to_first_chunk"] == 0.5
    system, messages, [answered] = (
        json.loads(found[f"gen_ai.{name}"])
        for name in ("system_instructions", "input.messages", "output.messages")
    )
    assert system == [{"type": "text", "content": "Be kind."}]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert answered["parts"] == [{"type": "text", "content": "Yes."}]
    assert (answered["finish_reason"], found["gen_ai.response.finish_reasons"]) == ("length", ["length"])
    assert json.loads(found["gen_ai.tool.definitions"]) == [{"type": "function", "name": "search_memories"}]
    assert (json.loads(found["input.value"]), json.loads(found["output.value"])) == (asked[-1:], said)


@pytest.mark.parametrize("kind", ["search", "documents"])
def test_what_was_found_is_listed_with_its_score(kind):
    candidates = [{"id": "m1", "content": "Ana skis"}, {"id": "m2", "content": "no", "left_out": "far"}]
    span = Span(kind, data={"query": "ski", "candidates": candidates, "found": [["m1", 0.5]]})
    found = attributes_of(span)
    shown = {name: value for name, value in found.items() if name.startswith("retrieval.documents.")}
    assert shown == {
        "retrieval.documents.0.document.id": "m1",
        "retrieval.documents.0.document.score": 0.5,
        "retrieval.documents.0.document.content": "Ana skis",
    }
    assert (found["input.value"], found["hachi.search.left_out"]) == ("ski", ["1 × far"])


def test_what_was_decided_is_the_output_of_a_decision():
    made = {"action": "add", "id": "m1", "content": "Ana skis"}
    found = attributes_of(Span("decision", data={"decisions": [made | {"reason": "new"}]}))
    assert (json.loads(found["output.value"]), found["hachi.decision.actions"]) == ([made], ["add"])
