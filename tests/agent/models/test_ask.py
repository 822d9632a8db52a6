"""What memory asks a model: which facts replace others. All is scripted."""

from datetime import UTC, datetime
from typing import Any

import pytest
from agents.testing import ScriptedModel, assistant_message
from scripted_server import Call, Fail, Say, ScriptedServer, answer

from agent.models.ask import judge
from agent.models.choice.choose import brought_model
from hachi import Companion
from memory.facts.similar import Doubt

THEN, NOW = datetime(2025, 5, 1, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)
OLD, NEW = "Ana drives a red car", "Ana sold her car"
DOUBT = Doubt(OLD, THEN, NEW, NOW)

REPLACE = Say('{"rulings": [{"pair": 1, "action": "replace"}]}')
ADD = Say('{"rulings": [{"pair": 1, "action": "add"}]}')


async def _in_doubt(pet: Companion, server: ScriptedServer, way: Any, ruling: Any) -> list[str]:
    """What is known after a turn that brought a doubtful fact."""
    await pet.remember(OLD, user="ana")
    server.script(answer("Oh!", {"content": NEW}), *([ruling] if ruling else []))
    await way.ask(pet, "I have sold my car", user="ana", settle=True)
    return sorted(memory.content for memory in await pet.memories.list(user="ana"))


async def test_a_doubt_is_put_to_the_model_of_consolidation(pet_at, first_way, server):
    pet = await pet_at(first_way, judge=True, consolidate="plain", consolidate_model="tinier")
    assert await _in_doubt(pet, server, first_way, REPLACE) == [NEW]
    _, asked = server.asked
    assert (asked.json["model"], asked.json.get("store"), asked.tools) == ("tinier", False, {})
    [(_, question)] = asked.conversation
    assert OLD in question
    assert NEW in question


@pytest.mark.parametrize("ruling", [Fail(500), Call("remember", {})])
async def test_a_judge_that_fails_costs_nothing(pet_at, first_way, server, caplog, ruling):
    pet = await pet_at(first_way, judge=True, consolidate="plain", model_retries=0)
    assert await _in_doubt(pet, server, first_way, ruling) == [OLD, NEW]
    assert "judge" in caplog.text


@pytest.mark.parametrize(
    ("text", "rulings"),
    [
        (REPLACE.text, [True, False]),
        ('{"rulings": [{"pair": "2", "action": "replace"}, {"pair": 1, "action": "add"}]}', [False, True]),
        (f"Here they are:\n```json\n{REPLACE.text}\n```", [True, False]),
        ('{"rulings": [{"pair": 9, "action": "replace"}, "odd", {"action": "replace"}]}', [False, False]),
        ('{"rulings": "replace"}', [False, False]),
        ("", [False, False]),
    ],
)
async def test_rulings_are_read_leniently_and_count_only_where_they_are_clear(text, rulings):
    chosen = brought_model(ScriptedModel([[assistant_message(text)]]))
    assert await judge(chosen, [DOUBT, DOUBT]) == rulings


async def test_all_doubts_are_put_in_one_question_with_their_dates():
    model = ScriptedModel([[assistant_message("")]])
    await judge(brought_model(model), [DOUBT, Doubt("a", NOW, "b", NOW)])
    [call] = model.calls
    question = call.input if isinstance(call.input, str) else call.input[0]["content"]
    assert f"older (2025-05-01): {OLD}" in question
    assert f"newer (2026-11-21): {NEW}" in question
    assert "Pair 2" in question
