"""Traces sent on to a collector: one that listens on 127.0.0.1 and reads what it is sent."""

import gzip
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from scripted_server import Call, Fail, ScriptedServer, answer

from agent import Companion, Settings
from agent.errors import ModelError, SettingsError
from agent.tracing.store import Wanted

PetAt = Callable[..., Awaitable[Companion]]

LONG = "Ab3dEf6hIj9kLm2nOp5qRs8tUv"


class Collector(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.spans: list[Span] = []
        self.resources: list[dict[str, str]] = []
        self.whole = b""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.paths.append(self.path)
        self.server.headers.append(dict(self.headers))
        self.server.whole += body
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            told = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.server.resources.append(told)
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


async def sent(pet: Companion) -> None:
    """Closing sends what is left."""
    await pet.components.recorder.close()


async def test_a_turn_arrives_as_spans_with_the_conventions_names(
    pet_at: PetAt, some_way: Any, server: ScriptedServer, collector: Collector, clock: Any
) -> None:
    pet = await pet_at(some_way, otlp_endpoint=collector.url, look_back="off")
    server.script(Call("search_memories", {"query": "tea"}), answer("Jasmine tea."))

    reply, _ = await some_way.ask(pet, "what do I drink?", user="ana")
    await sent(pet)

    assert set(collector.paths) == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "hachi"
    [root] = collector.named("invoke_agent hachi")
    assert root.trace_id.hex() == reply.trace_id.removeprefix("trace_")
    assert not root.parent_span_id
    assert attributes(root)["hachi.trace.id"] == reply.trace_id
    first, second = collector.named("chat tiny")
    assert {first.parent_span_id, second.parent_span_id} == {root.span_id}
    assert first.kind == Span.SpanKind.SPAN_KIND_CLIENT
    told = attributes(first)
    assert told["gen_ai.operation.name"] == "chat"
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (10, 5)
    assert "what do I drink?" in told["gen_ai.input.messages"]
    [tool] = collector.named("execute_tool search_memories")
    [search] = collector.named("search_memory memories")
    assert search.parent_span_id == tool.span_id
    assert attributes(search)["gen_ai.memory.query.text"] == "tea"
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    began = int(clock().timestamp() * 1e9)
    assert root.start_time_unix_nano == began
    for span in collector.spans:
        assert span.trace_id == root.trace_id
        assert began <= span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
        assert span.status.code == Status.STATUS_CODE_UNSET
    trace = await pet.traces.get(reply.trace_id, pet.clock())
    [recorded] = trace.spans("tool")
    took = (tool.end_time_unix_nano - tool.start_time_unix_nano) / 1e9
    assert took == pytest.approx(recorded.took, abs=1e-5)


async def test_a_fault_is_told_with_its_kind(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, collector: Collector, monkeypatch: Any
) -> None:
    pet = await pet_at(first_way, otlp_endpoint=f"{collector.url}/v1/traces/")

    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(pet.components.recall, "search", broken)
    server.script(Call("search_memories", {"query": "tea"}), Fail(401, "wrong key"))
    with pytest.raises(ModelError):
        await pet.respond("what do I drink?", user="ana")
    await sent(pet)

    [root] = collector.named("invoke_agent hachi")
    [tool] = collector.named("execute_tool search_memories")
    assert root.status.code == tool.status.code == Status.STATUS_CODE_ERROR
    assert attributes(root)["error.type"] == "ModelRejected"
    assert "ModelRejected" in root.status.message
    assert attributes(tool)["error.type"] == "tool_error"
    [event] = tool.events
    assert event.name == "exception"
    assert "ZeroDivisionError: by nothing" in event.attributes[0].value.string_value


async def test_work_afterwards_is_linked_to_its_turn(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, collector: Collector
) -> None:
    pet = await pet_at(first_way, otlp_endpoint=collector.url)
    server.script(answer("So you ski!", {"content": "Ana skis"}))
    await pet.respond("I ski", user="ana", settle=True)
    await pet.settle()
    await sent(pet)

    [root] = collector.named("invoke_agent hachi")
    [stored] = collector.named("store_memories")
    [link] = stored.links
    assert (link.trace_id, link.span_id) == (root.trace_id, root.span_id)
    assert stored.trace_id != root.trace_id


async def test_secrets_do_not_leave(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, collector: Collector
) -> None:
    pet = await pet_at(first_way, otlp_endpoint=collector.url)
    server.script(answer("Thanks!"))
    await pet.respond(f"my key is sk-proj-{LONG}, half \ud83d", user="ana")
    await sent(pet)
    assert b"my key is [redacted]" in collector.whole
    assert LONG.encode() not in collector.whole


@pytest.mark.parametrize("user", ["ana", None])
async def test_content_leaves_only_where_it_is_kept(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, collector: Collector, user: str | None
) -> None:
    pet = await pet_at(
        first_way, otlp_endpoint=collector.url, trace_content="redacted" if user is None else "none"
    )
    server.script(Call("search_memories", {"query": "walrus"}), answer("pelican"))
    await pet.respond("octopus", user=user)
    await sent(pet)
    assert collector.named("invoke_agent hachi")
    for word in (b"walrus", b"pelican", b"octopus"):
        assert word not in collector.whole


async def test_the_usual_variables_hold(
    pet_at: PetAt,
    first_way: Any,
    server: ScriptedServer,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-pet")
    pet = await pet_at(first_way, otlp_endpoint=collector.url)
    server.script(answer("Hi."))
    await pet.respond("hello", user="ana")
    await sent(pet)
    assert collector.headers[0].get("x-team") == "blue"
    assert collector.resources[0]["service.name"] == "our-pet"


async def test_a_collector_that_is_away_keeps_nobody_waiting(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tracing.opentelemetry.SECONDS", 0.3)
    pet = await pet_at(first_way, otlp_endpoint="http://127.0.0.1:9")
    server.script(*[answer("Hi.")] * 3)
    began = time.monotonic()
    for _ in range(3):
        assert (await pet.respond("hello", user="ana")).message == "Hi."
    await pet.settle()
    assert await pet.traces.count(Wanted()) == 3
    await sent(pet)
    assert time.monotonic() - began < 8


async def test_a_collector_that_does_not_answer_keeps_nobody_waiting(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setattr("agent.tracing.opentelemetry.SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        pet = await pet_at(first_way, otlp_endpoint=f"http://127.0.0.1:{deaf.getsockname()[1]}")
        server.script(answer("Hi."))
        began = time.monotonic()
        await pet.respond("hello", user="ana")
        await sent(pet)
        assert time.monotonic() - began < 8


async def test_without_the_library_it_says_what_to_install(
    open_pet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "agent.tracing.opentelemetry", None)
    pet = await open_pet(otlp_endpoint="http://127.0.0.1:4318")
    with pytest.raises(SettingsError, match=r"pip install 'hachi\[otel\]'"):
        await pet.respond("hello", user="ana")


def test_an_endpoint_is_a_url() -> None:
    with pytest.raises(SettingsError, match="HACHI_OTLP_ENDPOINT"):
        Settings.load(otlp_endpoint="collector:4318")


def test_nothing_of_it_is_imported_where_nobody_asks(home: Path) -> None:
    look = (
        "import asyncio, sys\n"
        "from agent import Companion\n"
        "async def main():\n"
        "    async with Companion.open(upkeep=False) as pet:\n"
        "        await pet.respond('hello', user='ana')\n"
        "asyncio.run(main())\n"
        "parts = ('opentelemetry.sdk', 'opentelemetry.exporter')\n"
        "print([name for name in sys.modules if name.startswith(parts)])\n"
    )
    environment = {"HACHI_HOME": str(home), "HACHI_EMBEDDER": "bundled", "PATH": ""}
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", look], env=environment, capture_output=True, text=True, check=True, cwd=root
    )
    assert ran.stdout.strip() == "[]"
