"""Traces as files."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from scripted_server import Call, ScriptedServer, answer

from agent import Companion
from agent.tracing.export import Told, exported, otlp
from agent.tracing.trace import Trace, descend

PetAt = Callable[..., Awaitable[Companion]]
Looked = Callable[..., Awaitable[Trace]]


@pytest.fixture
async def told(pet_at: PetAt, first_way: Any, server: ScriptedServer, last: Looked) -> Told:
    """A turn with a tool that fails and a memory that is kept afterwards."""
    pet = await pet_at(first_way)
    server.script(
        Call("search_memories", {"query": "tea"}),
        Call("nothing"),
        answer("Tea.", {"content": "Ana likes tea"}),
    )
    await pet.respond("what do I drink?", user="ana", place="acme/general", author="Ana")
    await pet.settle()
    trace = await last(pet)
    return Told(trace, await pet.traces.after(trace.id, pet.clock()))


def request(told: Told) -> ExportTraceServiceRequest:
    """As a collector reads it. Ids are hexadecimal in OTLP's JSON, where protobuf's own has base64."""
    value = json.loads(json.dumps(otlp([told])))
    for span in spans(value):
        for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return ParseDict(value, ExportTraceServiceRequest())  # raises where a field is unknown


def spans(value: Any) -> list[dict[str, Any]]:
    [resource] = value["resourceSpans"]
    [scope] = resource["scopeSpans"]
    found: list[dict[str, Any]] = scope["spans"]
    return found


async def test_a_collector_can_read_it(told: Told) -> None:
    read = request(told).resource_spans[0].scope_spans[0].spans
    assert len(read) == sum(len(list(descend(trace.root))) for trace in (told.trace, *told.after))
    assert {len(span.trace_id) for span in read} == {16}
    assert {span.trace_id.hex() for span in read} == {told.trace.id.removeprefix("trace_")}
    root = read[0]
    assert (root.name, root.parent_span_id) == ("invoke_agent hachi", b"")
    ids = {span.span_id for span in read}
    assert len(ids) == len(read)
    assert all(span.parent_span_id in ids for span in read[1:])
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in read)
    assert root.start_time_unix_nano == int(told.trace.summary.started_at.timestamp()) * 10**9


async def test_work_after_a_turn_is_below_it(told: Told) -> None:
    found = spans(otlp([told]))
    below = [span for span in found if span["name"] == "store_memories"]
    assert [span["parentSpanId"] for span in below] == [found[0]["spanId"]]
    assert [span["name"] for span in found if span.get("status", {}).get("code") == 2] == [
        "execute_tool nothing"
    ]
    assert {span["kind"] for span in found if span["name"].startswith("chat ")} == {3}


async def test_the_root_says_where_it_was_and_by_a_pseudonym_who(told: Told) -> None:
    attributes = {one["key"]: one["value"] for one in spans(otlp([told]))[0]["attributes"]}
    assert attributes["hachi.place"] == {"stringValue": "place:acme/general"}
    assert attributes["hachi.status"] == {"stringValue": "tool_error"}
    assert attributes["gen_ai.usage.input_tokens"] == {"intValue": "30"}
    assert attributes["enduser.pseudo.id"] != {"stringValue": "ana"}


async def test_json_holds_everything_and_what_came_after(told: Told) -> None:
    [read] = json.loads(exported([told], "json"))
    assert read["id"] == told.trace.id
    assert read["place"] == "acme/general"
    assert read["tools"] == [{"name": "search_memories", "ok": True}, {"name": "nothing", "ok": False}]
    assert read["made_by"]["versions"]["hachi"]
    assert [span["kind"] for span in read["root"]["spans"]][:2] == ["scene", "call"]
    assert "store_memories" in [one["kind"] for one in read["afterwards"]]


async def test_markdown_tells_it_in_short_and_then_in_full(told: Told) -> None:
    text = exported([told], "md")
    short, _, whole = text.partition("## Everything")
    assert 'ana: "what do I drink?"' in short
    assert "system message" not in short
    assert "system message, rules" in whole


async def test_several_are_one_page(told: Told) -> None:
    page = exported([told, told], "html")
    assert page.count("<article") == 2
    assert page.count("<!doctype html>") == 1
    assert "<title>2 traces</title>" in page
    assert "what do I drink?" in page
    assert 'class="bar"' in page
