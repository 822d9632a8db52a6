"""Forty changes, one at a time: a replay names each first, by its name. The turn searches, remembers and
answers; after it two memories are decided on and the conversation is consolidated."""

import dataclasses
import json
from typing import Any

import pytest
from scripted_server import Call, Say, answer

import prompts
from agent.background.consolidation import ask
from agent.background.consolidation import prompt as consolidation_prompt
from agent.background.consolidation.answer import ConsolidationAnswer
from agent.models.ask import RequestedSchema
from agent.replay.replay import replay
from agent.tracing import setup
from agent.turn import call_limit, loop
from agent.turn.context import prompt
from agent.types.budget import Budget
from memory.facts import decide
from memory.facts.decide import resolved_decision
from tools import registry

SETTINGS: dict[str, tuple[Any, str]] = {
    "max_turns": (3, "5 → 3"),
    "structured": ("none", "schema → none"),
    "importance_floor": (0.5, "0.3 → 0.5"),
    "history_messages": (4, "12 → 4"),
    "history_budget": (Budget(9_000), "→"),
    "context_budget": (Budget(300), "→"),
    "knowledge_budget": (Budget(300), "→"),
    "knowledge_first": (True, "→"),
    "half_life_days": (30.0, "unset → 30.0"),
    "judge": (False, "→"),
    "consolidate": ("plain", "unset → plain"),
    "consolidate_model": ("small", "unset → small"),
    "mode": ("study", "companion → study"),
    "memory": (False, "→"),
    "images": (True, "→"),
}
FORM = {"structured": "schema"}
PROMPTS = "assistant persona person setting consolidation focus_companion last_call question judge".split()
FINDINGS = {"summary": "Ana asked whom she loves.", "new_preferences": [], "task_updates": []}
FACT = {"text": "Ana loves a dog.", "messages": [1], "importance": "medium", "tags": ["ana"]}


def _ignored(*_: Any) -> Any:
    return dataclasses.replace(resolved_decision(*_), action="ignore", reason="a change")


CODE: dict[str, tuple[Any, str, Any, str]] = {
    "a section of the prompt": (prompt, "_setting", lambda _: "Nowhere.", "call 1, message 1, setting"),
    "facts in the prompt": (prompt, "_person", lambda *_: "Nobody.", "call 1, message 1, person"),
    "the reading of answers": (loop, "parse_answer", lambda raw: loop.Answer(raw), "answer, message"),
    "results of tools": (registry, "as_text", lambda _: "{}", "search_memories, result"),
    "the form of answers": (
        call_limit,
        "ANSWER_SCHEMA",
        RequestedSchema("answer", {"type": "object"}),
        "call 1, response_format",
    ),
    "what is decided": (decide, "resolved_decision", _ignored, "what became of"),
    "what is worth keeping": (
        decide,
        "refusal",
        lambda fact, _: fact.decision("ignore", None, "no"),
        "what became",
    ),
    **{
        f"{attribute} of consolidation": (ask, attribute, value, f"consolidation, {where}")
        for attribute, value, where in (
            ("consolidation_prompt", lambda *_: "Anything?", "message 1"),
            ("schema_of", lambda *_: {"a": 1}, "response_format"),
            ("read_answer", lambda *_: ConsolidationAnswer(summary="changed"), "what was read"),
        )
    },
}
"""What is changed: where, its name, its new value, and what is named."""


@pytest.fixture
async def whole(pet_at, first_way, server, clock, monkeypatch):
    """The turn with the work after it, as it was recorded."""
    pet = await pet_at(first_way, **FORM)
    await pet.remember("Ana loves her dog Rex", user="ana", subjects=["ana", "rex"])
    clock.advance(minutes=1)
    told = {"content": "Ana has a cat", "importance": 0.4}
    server.script(
        [Call("search_memories", {"query": "whom Ana loves"})],
        [Call("remember", {"content": "Ana asks whom she loves", "subjects": ["ana"], "ttl": "7d"})],
        answer("You love your dog Rex.", told, {"content": "Ana is asking", "importance": 0.2}),
    )
    server.script_consolidations(Say(json.dumps(FINDINGS | {"new_facts": [FACT | {"ttl": None}]})))
    reply = await pet.respond("who do I love?", user="ana")
    await pet.settle()
    yield await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    setup._code.cache_clear()


async def first(pet: Any, whole: Any) -> str:
    setup._code.cache_clear()
    found = (await replay(pet, whole)).differences
    return f"{found[0].where} {found[0].what}" if found else "nothing"


async def test_forty_changes_are_named(whole, pet_at, first_way, monkeypatch):
    pet = await pet_at(first_way, **FORM)
    assert [job.summary.kind for job in whole.jobs] == ["store_memories", "consolidate"]
    assert await first(pet, whole) == "nothing"
    named: dict[str, tuple[str, str]] = {}
    for name, (value, change) in SETTINGS.items():
        other = await pet_at(first_way, **FORM | {name: value})
        named[name] = (await first(other, whole), f"{name} ")
        assert change in named[name][0]
    other = await pet_at(first_way, **FORM, model_timeout=9.0, model_retries=1)
    assert await first(other, whole) == "nothing", "they cannot change how a turn goes"
    other = await pet_at(first_way, **FORM, model="huge")
    named["model"] = (await first(other, whole), "the model tiny → huge")
    read = prompts.read
    for name in PROMPTS:
        with monkeypatch.context() as patch:
            new = lambda asked, name=name: read(asked) + "\nMiaow." * (asked == name)  # noqa: E731
            for module in (setup, prompts, prompt, consolidation_prompt):
                patch.setattr(module, "read", new)
            named[name] = (await first(pet, whole), f"{name}.md changed")
    search = registry.TOOLS[0]
    for what, (place, attribute, value) in {
        "the arguments of search_memories changed": (
            search,
            "schema",
            search.schema | {"description": "new"},
        ),
        "the description of search_memories changed": (search, "description", "Look it up."),
        "the description of get_recent_memories changed": (registry.TOOLS[1], "description", "The newest."),
        "the description of search_knowledge changed": (registry.TOOLS[2], "description", "Documents."),
        "the description of update_task changed": (registry.TOOLS[4], "description", "Note it."),
    }.items():
        with monkeypatch.context() as patch:
            patch.setitem(vars(place), attribute, value)
            named[what] = (await first(pet, whole), what)
    for count in (4, 3):
        with monkeypatch.context() as patch:
            patch.setitem(vars(pet.components.extensions), "tools", registry.TOOLS[:count])
            named[f"{count} tools"] = (await first(pet, whole), "the tools differs")
    for what, (place, attribute, value, where) in CODE.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, attribute, value)
            found = [one for one in (await replay(pet, whole)).differences if not one.cause]
            named[what] = (f"{found[0].where} {found[0].what}" if found else "nothing", where)

    assert len(named) >= 40
    assert {what: got for what, (got, name) in named.items() if not got.startswith(name)} == {}
