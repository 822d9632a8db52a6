"""Traces as files: JSON, Markdown, HTML. OTLP is tested in test_opentelemetry.py."""

import json
import sys

import pytest
from scripted_server import Call, answer

from agent.errors import BadInput, SettingsError
from agent.tracing.render.export import exported
from agent.tracing.trace import TraceWithJobs


async def test_every_format_holds_the_turn_and_its_jobs(pet_at, first_way, server, last):
    pet = await pet_at(first_way)
    server.script(
        Call("search_memories", {"query": "tea"}),
        Call("nothing"),
        answer("Tea.", {"content": "Ana likes tea"}),
    )
    await pet.respond("what do I drink?", user="ana", place="acme/general", author="Ana")
    await pet.settle()
    whole = await pet.traces.get_with_jobs((await last(pet)).id, pet.clock())

    [read] = json.loads(exported([whole], "json"))
    assert read["id"] == whole.trace.id
    assert read["place"] == "acme/general"
    assert read["tools"] == [{"name": "search_memories", "ok": True}, {"name": "nothing", "ok": False}]
    assert read["made_by"]["versions"]["hachi"]
    assert [span["kind"] for span in read["root"]["spans"]][:2] == ["scene", "call"]
    assert "store_memories" in [one["kind"] for one in read["afterwards"]]

    short, _, full = exported([whole], "md").partition("## Everything")
    assert 'ana: "what do I drink?"' in short
    assert "system message" not in short
    assert "system message, rules" in full

    page = exported([whole, whole], "html")
    assert page.count("<article") == 2
    assert page.count("<!doctype html>") == 1
    assert "<title>2 traces</title>" in page
    assert "what do I drink?" in page
    assert 'class="bar"' in page


async def test_without_the_otlp_library_errors_name_the_extra(open_pet, monkeypatch):
    monkeypatch.setitem(sys.modules, "agent.tracing.otlp.spans", None)
    nothing: list[TraceWithJobs] = []
    with pytest.raises(BadInput, match=r"pip install -e '\.\[otel\]' in the clone"):
        exported(nothing, "otlp")
    with pytest.raises(SettingsError, match=r"pip install -e '\.\[otel\]' in the clone"):
        await open_pet(otlp_endpoint="http://127.0.0.1:4318")
