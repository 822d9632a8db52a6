"""Traces as files, JSON and Markdown, and read back from them."""

import sys

import pytest
from scripted_server import Call, answer

from agent.errors import SettingsError
from agent.tracing.render.export import export_json, markdown, read_export


async def test_files_hold_the_turn_and_its_jobs(pet_at, first_way, server, last):
    pet = await pet_at(first_way)
    server.script(
        Call("search_memories", {"query": "tea"}),
        Call("nothing"),
        answer("Tea.", {"content": "Ana likes tea"}),
    )
    await pet.respond("what do I drink?", user="ana", place="acme/general", author="Ana")
    await pet.settle()
    whole = await pet.traces.get_with_jobs((await last(pet)).id, pet.clock())

    text = export_json([whole])
    assert '"place": "acme/general"' in text
    [read] = read_export(text)
    assert export_json([read]) == text
    assert (read.trace.summary.place, read.trace.summary.tools) == (
        "place:acme/general",
        ("search_memories", "nothing!"),
    )
    assert [job.summary.kind for job in read.jobs] == ["store_memories", "consolidate"]

    short, _, full = markdown(whole).partition("## Everything")
    assert 'ana: "what do I drink?"' in short
    assert "system message" not in short
    assert "system message, rules" in full


@pytest.mark.parametrize("text", ["", "{}", "[]", "[3]", '[{"summary": 3}]', "null"])
def test_what_is_no_exported_trace_is_refused(text):
    with pytest.raises(ValueError, match=r"no exported trace|no trace is in it"):
        read_export(text)


async def test_without_the_otlp_library_the_error_names_the_extra(open_pet, monkeypatch):
    monkeypatch.setitem(sys.modules, "agent.tracing.otlp.spans", None)
    with pytest.raises(SettingsError, match=r"pip install -e '\.\[otel\]' in the clone"):
        await open_pet(otlp_endpoint="http://127.0.0.1:4318")
