"""Turns that went wrong, as a person sees them: in less than a screen."""

from collections.abc import Awaitable, Callable

import pytest
from scripted_server import Call, Fail, Hang, Say, answer

from agent.errors import ModelError
from agent.tracing.render.text import when
from agent.tracing.render.trace import SCREEN, trace_lines
from agent.tracing.trace import Trace
from hachi import Companion
from memory.errors import StoreUnavailable

Looked = Callable[..., Awaitable[Trace]]


async def on_screen(pet: Companion, last: Looked) -> str:
    """What `show last` prints."""
    await pet.settle()
    trace = await last(pet)
    lines = trace_lines(trace, await pet.traces.after(trace.id, pet.clock()))
    assert len(lines) <= SCREEN
    return "\n".join(map(str, lines))


async def test_a_turn_is_a_tree(pet_at, first_way, server, last):
    pet = await pet_at(first_way, consolidate_minutes=0)
    await pet.remember("Ana skis in Chamonix", user="ana")
    search = Call("search_memories", {"query": "where does Ana ski"})
    server.script(search, answer("In Chamonix.", {"content": "Ana asks about skiing"}))

    await pet.respond("where do I ski, and what do I like best about it?", user="ana")

    lines = (await on_screen(pet, last)).splitlines()
    assert lines[0].split("  ")[1:4] == ["ok", when(pet.clock()), "dm"]
    assert "2 calls  20→10 tokens" in lines[0]
    assert lines[1] == 'ana: "where do I ski, and what do I like best about it?"'
    text = "\n".join(lines)
    assert "├─ call 1  tiny  10→5 tokens  " in text
    assert '│  └─ search_memories(query="where does Ana ski")  ' in text
    assert '│     ├─ search "where does Ana ski"  reads global, user:ana  ' in text
    assert "the model sees it already" in text
    assert '└─ reply "In Chamonix."' in text
    assert "store_memories  ok" in text
    assert '"Ana asks about skiing" (new)' in text
    assert "⚠" not in text
    assert "consolidated 2 messages; nothing new" in text


async def test_a_tool_that_the_database_fails_in_short_and_in_full(
    pet_at, first_way, server, last, monkeypatch
):
    pet = await pet_at(first_way)
    server.script(Call("get_recent_memories", {"limit": 3}, id="call_7"), answer("You love cats."))

    async def away(*_, **__):
        raise StoreUnavailable("the database does not answer")

    monkeypatch.setattr(pet.components.store, "newest", away)
    await pet.respond("what do I love?", user="ana")

    text = await on_screen(pet, last)
    assert "tool_error" in text.splitlines()[0]
    assert "✗ get_recent_memories(limit=3)" in text
    assert "error: " in text
    assert "the database does not answer" in text
    assert "StoreUnavailable, raised in tracing/render/test_spans.py:" in text
    assert "⚠ answered after a tool error: get_recent_memories" in text
    assert text.count("✗") == 2  # the tool, and the search inside it

    text = "\n".join(map(str, trace_lines(await last(pet), full=True)))
    assert "system message, rules" in text
    for line in server.asked[1].system.splitlines():
        assert line in text
    assert "message 1, user" in text
    assert '"call_id": "call_7"' in text
    assert "Traceback (most recent call last):" in text
    assert "search_memories, get_recent_memories, search_knowledge" in text


async def test_what_a_model_got_wrong_or_did_not_answer_is_shown(pet_at, first_way, server, last):
    pet = await pet_at(first_way, model_timeout=0.5, model_retries=1, consolidate="off")
    server.script(Call("search_knowledge", "{query: "), Call("no_such_tool"), Say("Hello, no JSON here"))
    await pet.respond("hi", user="ana")

    text = await on_screen(pet, last)
    assert "✗ search_knowledge({query:)" in text
    assert "✗ no_such_tool(" in text
    assert "error: no tool 'no_such_tool'" in text
    assert "⚠ answered after a tool error: search_knowledge, no_such_tool" in text
    assert "⚠ the answer was not the JSON that was asked for, and was read leniently" in text
    assert 'reply "Hello, no JSON here"' in text

    server.script(Fail(500), Hang())
    with pytest.raises(ModelError) as raised:
        await pet.respond("hello?", user="ana")

    text = await on_screen(pet, last)
    assert "error" in text.splitlines()[0]
    assert text.count("✗ call") == 2
    assert "├─ wait before another attempt" in text
    assert "⚠ 1 call failed and was retried" in text
    assert f"✗ the turn failed: ModelUnavailable: {raised.value}" in text
    assert "reply" not in text


async def test_where_much_was_found_it_gives_way_to_what_happened(pet_at, first_way, server, last):
    pet = await pet_at(first_way, history_messages=0)
    for n in range(8):
        await pet.remember(f"Ana went to sea number {n} by boat", user="ana", importance=0.1)
    searches = [Call("search_memories", {"query": f"which boat, {n}?"}) for n in range(8)]
    server.script(searches, answer("Many."))
    await pet.respond("which boats?", user="ana")
    text = await on_screen(pet, last)
    assert text.count("search_memories(query=") == 8


async def test_candidates_are_a_table_that_says_why_each_was_left_out(pet_at, first_way, server, last):
    pet = await pet_at(first_way, history_messages=1)
    at = pet.clock()
    told = [{"author": "ana", "text": f"Boat {n} is red", "sent_at": at.isoformat()} for n in range(9)]
    await pet.conversations.import_messages(told, user="ana")
    server.script(Call("search_memories", {"query": "red boat", "limit": 2}), answer("Red."))

    await pet.respond("tell me", user="ana")

    lines = [str(line) for line in trace_lines(await last(pet), full=True)]
    [head] = [line for line in lines if "score" in line and "lanes" in line]
    table = lines[lines.index(head) + 1 :]
    assert "✓" in table[0]
    assert "Boat" in table[0][head.index("content") :]
    assert any("below the first 2" in line[head.index("left out") :] for line in table)
