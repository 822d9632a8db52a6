"""A test made of a trace: it passes now, and fails when the turn would go otherwise."""

import asyncio
import runpy
from pathlib import Path

import pytest
from scripted_server import Call, answer

from agent.replay.fixture import MAX_ROWS, Fixture
from agent.replay.pytest_file import make_test, telling_words
from agent.replay.testing import take_again
from agent.tracing.trace import Trace
from memory.search import recall


@pytest.fixture
def made(pet, tmp_path):
    """`await made(trace)`: the test's file, with its fixture beside it."""

    async def make(trace: Trace) -> Path:
        files = await make_test(pet, trace)
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        [test] = [name for name in files if name.endswith(".py")]
        return tmp_path / test

    return make


async def passes(test: Path) -> None:
    """Run what is in the file, away from this test's loop: it makes one of its own."""
    for name, function in runpy.run_path(str(test)).items():
        if name.startswith("test_"):
            await asyncio.to_thread(function)


async def test_it_passes_anywhere_and_fails_when_behaviour_changes(pet, recorded, made, monkeypatch):
    test = await made(await recorded())

    text = test.read_text()
    assert "def test_who_do_i_love() -> None:" in text
    assert "assert turn.called == ['search_memories', 'remember']" in text
    assert "assert turn.tools[0].arguments == {'query': 'whom Ana loves'}" in text
    assert "assert turn.tools[0].ok" in text
    assert "assert turn.audience == {'global', 'user:ana'}" in text
    assert "Ana asks whom she loves" in text
    assert "assert turn.place == 'dm'" in text
    assert "assert 'Rex' in turn.reply" in text
    assert "You love your dog Rex." not in text, "the wording is the model's own affair"
    await pet.erase(user="ana")
    await passes(test)

    monkeypatch.setattr(recall, "rank", lambda *args, **more: [])
    with pytest.raises(AssertionError):
        await passes(test)


async def test_it_asks_for_the_words_that_were_found_and_holds_no_secret(pet, recorded):
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    await recorded(answer("Keep it safe."), said=f"my key is {key}")
    search = Call("search_memories", {"query": "dentist"})
    trace = await recorded(search, answer("Oh, it is Leo, as ever."), said="who is my dentist?")
    files = await make_test(pet, trace)
    assert not any(key in text for text in files.values())
    [fixture] = [text for name, text in files.items() if name.endswith(".json")]
    turn = await asyncio.to_thread(take_again, Fixture.from_json(fixture))
    assert telling_words(turn)[0] == "Leo"


async def test_a_turn_that_failed_is_held_to_its_failure(pet, failing, made):
    test = await made(await failing(pet))
    assert "assert (turn.error or '').startswith('ModelRejected')" in test.read_text()
    await passes(test)


@pytest.mark.parametrize(
    "said",
    [
        '"""; import os; os.abort()  # \\ {braces} {{and}} more {0}',
        "שלום, מה שלומך? \u202e?\u2028 \ud83d\ude00" + "x" * 5000,
    ],
    ids=["python", "odd"],
)
async def test_whatever_was_said_it_is_python_that_passes(said, recorded, made):
    search = Call("search_memories", {"query": said[:500]})
    trace = await recorded(search, answer(f"You said {said}"), said=said)
    await passes(await made(trace))


async def test_of_a_long_memory_only_what_the_turn_had_before_it_comes_along(pet, recorded, made):
    said = [
        {"author": "ana", "text": f"line {n}", "sent_at": "2026-01-01T00:00:00Z"} for n in range(MAX_ROWS)
    ]
    await pet.import_messages(said, user="ana")
    trace = await recorded()
    test = await made(trace)
    [path] = test.parent.glob("trace_*.json")
    fixture = Fixture.from_json(path.read_text())
    assert len(fixture.rows["messages"]) < MAX_ROWS
    assert {row["content"] for row in fixture.rows["memories"]} >= {"Ana loves her dog Rex"}
    await passes(test)


async def test_a_persona_of_ones_own_comes_along(pet_at, first_way, server, tmp_path, made):
    (tmp_path / "persona.md").write_text("You are a parrot called Polly.")
    pet = await pet_at(first_way, persona=tmp_path / "persona.md")
    server.script(answer("Polly!"))
    reply = await pet.respond("who are you?", user="ana")
    await pet.settle()
    trace = await pet.traces.get(reply.trace_id, pet.clock())
    files = await make_test(pet, trace)
    (tmp_path / "persona.md").unlink()

    [fixture] = [text for name, text in files.items() if name.endswith(".json")]
    turn = await asyncio.to_thread(take_again, Fixture.from_json(fixture))

    assert turn.prompt["persona"] == "You are a parrot called Polly."
    assert turn.reply == "Polly!"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"summary": 3}', "null"])
def test_what_is_no_fixture_is_refused(text):
    with pytest.raises(ValueError, match=r"no fixture|Expecting value"):
        Fixture.from_json(text)
