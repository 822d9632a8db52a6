"""A test made of a trace: it passes now, and fails when the turn would go otherwise."""

import asyncio
import runpy
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, answer

import prompts
from agent.replay.testing import make_test
from agent.tracing import setup
from agent.tracing.trace import Trace, TraceWithJobs
from agent.turn import loop
from agent.turn.context import prompt
from agent.turn.output.parse import parse_answer
from hachi.testing import take_again
from memory.facts import decide
from memory.facts.decide import resolved_decision, with_verdicts
from memory.search import recall
from memory.search.search_rows import SearchRows
from memory.text import quoting
from tools import lookup
from tools.registry import TOOLS, ToolResult

KEEPS = (
    Call("search_memories", {"query": "whom Ana loves"}),
    Call("remember", {"content": "The ferry runs on Sundays", "subjects": ["ana"], "ttl": "7d"}),
    answer("You love your dog Rex.", {"content": "The harbour froze over"}),
)


@pytest.fixture
def made(tmp_path):
    """`await made(trace)`: the test's file, with its trace beside it."""

    async def make(trace: Trace, jobs: Sequence[Trace] = ()) -> Path:
        files = await make_test(TraceWithJobs(trace, jobs))
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
    assert "_goes_as_recorded() -> None:" in text
    assert ".differences == []" in text
    await pet.people.erase(user="ana")
    await passes(test)


async def finds_nothing(*_: object) -> ToolResult:
    return ToolResult({"memories": []}, ok=True)


async def no_rows(*_: object) -> tuple[SearchRows, dict[str, object]]:
    return {}, {}


def _persona(name: str) -> str:
    return "Arr, you are a pirate." if name == "persona" else prompts.read(name)


MATTERS: dict[str, tuple[Any, str, Any]] = {
    "a tool's description": (vars(TOOLS[0]), "description", "Look it up."),
    "the persona": (prompt, "read", _persona),
    "what is kept of an answer": (loop, "parse_answer", lambda raw: replace(parse_answer(raw), memories=())),
    "what is forgotten": (loop, "parse_answer", lambda raw: replace(parse_answer(raw), forget=("all",))),
    "the decision": (decide, "resolved_decision", lambda *_: replace(resolved_decision(*_), action="merge")),
    "what is an echo": (decide, "echo_of_search", lambda fact, _: fact.decision("ignore", None, "an echo")),
    "the reply": (loop, "until_stop", lambda text, _: text.upper()),
    "a search": (vars(TOOLS[0]), "run", finds_nothing),
    "what is relevant": (lookup, "relevant", lambda hits: []),
    "the ranking": (recall, "rank", lambda *_, **__: []),
    "the rows of a search": (recall.Recall, "_rows", no_rows),
    "what a hit shows": (lookup, "_hit", lambda hit, *_: {"kind": "memory", "content": "", "id": hit.id}),
}
CHANGES_NOTHING: dict[str, tuple[Any, str, Any]] = {
    "another list of the same": (decide, "with_verdicts", lambda *given: list(with_verdicts(*given))),
    "the longest name": (quoting, "LONGEST_NAME", 500),
    "which settings are noted": (setup, "REACH_A_TURN", ("max_turns",)),
}


async def test_it_fails_when_behaviour_changes_and_at_nothing_else(recorded, made, monkeypatch):
    test = await made(await recorded(*KEEPS))
    passed = []
    for what, (place, name, value) in (MATTERS | CHANGES_NOTHING).items():
        with monkeypatch.context() as patch:
            change = patch.setitem if isinstance(place, dict) else patch.setattr
            change(place, name, value)
            setup._code.cache_clear()
            with suppress(AssertionError):
                await passes(test)
                passed.append(what)
    setup._code.cache_clear()
    assert passed == [*CHANGES_NOTHING]


async def test_what_our_prompts_became_is_a_note(recorded, made, monkeypatch):
    test = await made(await recorded(*KEEPS))
    read = prompts.read
    monkeypatch.setattr(setup, "read", lambda name: read(name) + "Miaow." * (name == "judge"))
    setup._code.cache_clear()
    turn = await asyncio.to_thread(take_again, next(test.parent.glob("*.json")))
    setup._code.cache_clear()
    assert turn.differences == []
    assert [(one.where, one.what) for one in turn.notes] == [("judge.md", "changed")]


async def test_a_turn_that_failed_is_held_to_its_failure(pet, failing, made):
    await passes(await made(await failing(pet)))


async def test_whatever_was_said_it_passes_and_holds_no_secret(recorded, made):
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    said = f'"""; import os; os.abort()  # \\ {{braces}} {{{{and}}}} more {{0}} {key} '
    said += "שלום, מה שלומך? \u202e?\u2028 \ud83d\ude00" + "x" * 5000
    search = Call("search_memories", {"query": said[:500]})
    test = await made(await recorded(search, answer(f"You said {said}"), said=said))
    await passes(test)
    assert not any(key in path.read_text() for path in test.parent.iterdir() if path.is_file())


async def test_a_persona_of_ones_own_comes_along(pet_at, first_way, server, tmp_path, made):
    (tmp_path / "persona.md").write_text("You are a parrot called Polly.")
    pet = await pet_at(first_way, persona=tmp_path / "persona.md")
    server.script(answer("Polly!"))
    reply = await pet.respond("who are you?", user="ana")
    await pet.settle()
    test = await made(await pet.traces.get(reply.trace_id, pet.clock()))
    (tmp_path / "persona.md").unlink()

    turn = await asyncio.to_thread(take_again, next(test.parent.glob("*.json")))

    assert (turn.differences, turn.reply) == ([], "Polly!")
