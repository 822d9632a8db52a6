"""A test made of a trace: it passes now, and fails when the turn would go otherwise."""

import asyncio
import dataclasses
import runpy
from pathlib import Path

import pytest
from scripted_server import Call, answer

import prompts
from agent.replay.pytest_file import make_test
from agent.replay.testing import read_trace_file, take_again
from agent.tracing import setup
from agent.tracing.trace import Trace
from agent.turn import loop
from agent.turn.context import prompt
from agent.turn.output.parse import parse_answer
from memory.facts import decision_log
from memory.facts.decide import decision_of
from memory.facts.similar import weighed
from memory.search import recall
from memory.search.found_rows import FoundRows
from tools import found
from tools.registry import TOOLS, ToolResult

KEEPS = (
    Call("search_memories", {"query": "whom Ana loves"}),
    Call("remember", {"content": "Ana asks whom she loves", "subjects": ["ana"], "ttl": "7d"}),
    answer("You love your dog Rex.", {"content": "Ana has a dog"}),
)


@pytest.fixture
def made(tmp_path):
    """`await made(trace)`: the test's file, with its trace beside it."""

    async def make(trace: Trace) -> Path:
        files = await make_test(trace)
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


async def test_it_passes_anywhere(pet, recorded, made):
    test = await made(await recorded())
    text = test.read_text()
    assert "def test_who_do_i_love() -> None:" in text
    assert "assert list(turn.prompt) == ['persona', 'rules', 'person', 'setting']" in text
    assert "assert 'Ana loves her dog Rex' in turn.prompt['person']" in text
    assert "assert turn.called == ['search_memories', 'remember']" in text
    assert "assert turn.tools[0].arguments == {'query': 'whom Ana loves'}" in text
    assert "assert turn.tools[1].ok is True" in text
    assert "'content': 'Ana asks whom she loves'" in text
    assert 'assert turn.found == [["Ana\'s dentist is Leo"' in text
    assert "assert turn.error is None" in text
    assert "assert turn.reply == 'You love your dog Rex.'" in text
    await pet.people.erase(user="ana")
    await passes(test)


async def finds_nothing(*_: object) -> ToolResult:
    return ToolResult({"memories": []}, ok=True)


async def no_rows(*_: object) -> tuple[FoundRows, frozenset[str]]:
    return FoundRows({}, {}, {}), frozenset()


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (vars(TOOLS[0]), "description", "Look it up."),
        (prompt, "read", lambda name: "Arr, you are a pirate." if name == "persona" else prompts.read(name)),
        (
            prompt,
            "render",
            lambda name, **parts: "Nobody." if name == "person" else prompts.render(name, **parts),
        ),
        (loop, "parse_answer", lambda raw: loop.Answer(raw)),
        (loop, "parse_answer", lambda raw: dataclasses.replace(parse_answer(raw), memories=())),
        (loop, "parse_answer", lambda raw: dataclasses.replace(parse_answer(raw), forget=("all",))),
        (ToolResult, "text", "{}"),
        (decision_log, "refusal", lambda fact, _: fact.decision("ignore", None, "no")),
        (decision_log, "decision_of", lambda *_: dataclasses.replace(decision_of(*_), action="merge")),
        (decision_log, "repeats_found", lambda fact, _: fact.decision("ignore", None, "an echo")),
        (prompt, "_setting", lambda _: ""),
        (prompt, "_person", lambda *_: ""),
        (vars(TOOLS[3]), "description", "Keep it."),
        (vars(TOOLS[1]), "description", "The newest."),
        (loop, "until_stop", lambda text, _: text.upper()),
        (vars(TOOLS[0]), "run", finds_nothing),
        (found, "relevant", lambda hits: []),
        (recall, "rank", lambda *_, **__: []),
        (recall.Recall, "_rows", no_rows),
        (found, "_hit", lambda hit, *_: {"kind": "memory", "content": "", "id": hit.id}),
    ],
    ids=(
        "description persona facts reading kept forgotten result refused decided echo setting person "
        "remember newest reply tool relevance ranking rows content"
    ).split(),
)
async def test_it_fails_when_behaviour_changes(recorded, made, monkeypatch, place, name, value):
    test = await made(await recorded(*KEEPS))
    change = monkeypatch.setitem if isinstance(place, dict) else monkeypatch.setattr
    change(place, name, value)
    setup._code.cache_clear()
    with pytest.raises(AssertionError):
        await passes(test)
    monkeypatch.undo()
    setup._code.cache_clear()


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (loop, "TOOL_SECONDS", 60.0),
        (loop, "MOST_QUOTED", 9),
        (decision_log, "weighed", lambda *given: list(weighed(*given))),
        (prompt, "LONGEST_NAME", 500),
        (setup, "REACH_A_TURN", ("max_turns",)),
    ],
    ids=["patience", "quotes", "order", "names", "settings"],
)
async def test_what_changes_nothing_of_the_turn_passes(recorded, made, monkeypatch, place, name, value):
    test = await made(await recorded(*KEEPS))
    monkeypatch.setattr(place, name, value, raising=False)
    await passes(test)


async def test_it_holds_no_secret(recorded):
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    files = await make_test(await recorded(answer("Keep it safe."), said=f"my key is {key}"))
    assert not any(key in text for text in files.values())


async def test_a_turn_that_failed_is_held_to_its_failure(pet, failing, made):
    test = await made(await failing(pet))
    assert "assert turn.error == 'ModelRejected: http" in test.read_text()
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


async def test_a_persona_of_ones_own_comes_along(pet_at, first_way, server, tmp_path, made):
    (tmp_path / "persona.md").write_text("You are a parrot called Polly.")
    pet = await pet_at(first_way, persona=tmp_path / "persona.md")
    server.script(answer("Polly!"))
    reply = await pet.respond("who are you?", user="ana")
    await pet.settle()
    test = await made(await pet.traces.get(reply.trace_id, pet.clock()))
    (tmp_path / "persona.md").unlink()

    turn = await asyncio.to_thread(take_again, next(test.parent.glob("*.json")))

    assert turn.prompt["persona"] == "You are a parrot called Polly."
    assert turn.reply == "Polly!"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"summary": 3}', "null"])
def test_what_is_no_trace_is_refused(text):
    with pytest.raises(ValueError, match=r"no file of a trace|Expecting value"):
        read_trace_file(text)
