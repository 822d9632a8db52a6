"""A live model takes recorded turns again, and is judged on what it does."""

from typing import Any

import pytest
from scripted_server import Call, Fail, answer

from agent.replay.replay import Replayed, ReplayOptions, causes, replay
from agent.tracing.prices import Prices
from agent.types.price import read_prices

MOVED = {"content": "Ana lives in Lyon", "subjects": ["ana", "home"], "ttl": None}


@pytest.fixture
async def moved(pet, recorded):
    """The trace of a turn that searches, replaces a fact and answers."""
    old = await pet.remember("Ana lives in Paris", user="ana", subjects=["ana", "home"])
    call = Call("remember", MOVED | {"replaces": old.id})
    said = answer("Noted: Leo is still your dentist.", {"content": "Ana likes rivers"})
    return await recorded(Call("search_memories", {"query": "dentist"}), call, said, said="I moved to Lyon")


@pytest.fixture
def again(pet, server):
    """`await again(trace, *script)`: the turn with a model that behaves so."""

    async def taken(trace: Any, *script: Any, holds: Any = ()) -> Replayed:
        server.clear()
        server.script(*script)
        whole = await pet.traces.get_with_jobs(trace.id, pet.clock())
        return await replay(pet, whole, ReplayOptions(fork=1), holds)

    return taken


def told(replayed: Replayed) -> list[str]:
    return [f"{one.where} {one.what}" for one in replayed.told]


GOOD = {"content": "Ana likes rivers a lot"}


async def test_other_words_are_the_same_behaviour_and_nothing_is_stored(pet, moved, again, rows, server):
    tables = [row["name"] for row in rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    before = {table: rows(f"SELECT * FROM {table}") for table in tables}
    replaced = moved.spans("decision")
    target = next(one["target_id"] for span in replaced for one in span.data["decisions"])
    found = await again(
        moved,
        Call("search_memories", {"query": "who looks after Ana's teeth"}),
        Call("remember", MOVED | {"content": "Ana has moved to Lyon", "replaces": target[:8]}),
        answer("Fine! Your dentist is Leo.", GOOD),
    )
    assert told(found) == []
    assert found.same
    assert "dentist" in str(server.asked[1].results), "it looked into the memory of today"
    assert {table: rows(f"SELECT * FROM {table}") for table in tables} == before


OTHERWISE: tuple[tuple[list[Any], str], ...] = (
    ([answer("Good for you.", GOOD)], "the tools called remember, search_memories → none"),
    (
        [Call("remember", MOVED), Call("search_memories", {"query": "dentist", "kind": "memory"})],
        'search_memories, arguments {} → {"kind": "memory"}',
    ),
    (
        [Call("search_memories", {"query": "dentist"}), Call("remember", MOVED | {"ttl": "7d"})],
        "what was kept ",
    ),
    ([Fail(400, "no")], "the turn failed: "),
)


async def test_other_behaviour_is_told(moved, again):
    for script, differs in OTHERWISE:
        found = await again(moved, *script, answer("Leo, your dentist.", GOOD))
        assert not found.same
        assert [one for one in told(found) if one.startswith(differs)], told(found)
        assert causes([found])[0][1:] == (1, 1)


async def test_the_reply_must_hold_what_is_asked_and_figures_stand_beside_each_other(pet, moved, again):
    pet.traces.prices = Prices(read_prices("tiny=1/1"))
    found = await again(
        moved,
        Call("search_memories", {"query": "dentist"}),
        Call("remember", MOVED),
        answer("Noted.", GOOD),
        holds=["dentist", "note"],
    )
    assert told(found)[-2:] == [
        "the reply does not hold “dentist”",
        "the reply does not tell “Ana's dentist is Leo”",
    ]
    was, now = found.figures
    assert was.usage.input >= now.usage.input > 0
    assert was.cost >= now.cost > 0
    assert now.took > 0


async def test_tasks_and_a_programs_own_tools_do_nothing(pet, recorded, again, server):
    task = {"id": None, "description": "call Leo", "status": "open", "due": "in 2 hours"}
    trace = await recorded(Call("update_task", task), answer("On your list."), said="remind me to call Leo")
    same = await again(trace, Call("update_task", task | {"description": "Call Leo!"}), answer("I will."))
    assert '"action": "made"' in server.asked[-1].results[0], "the model is told nothing else than then"
    other = await again(
        trace, Call("update_task", task | {"due": "in 3 hours"}), Call("paint", {}), answer("Yes.")
    )
    assert (told(same), len(await pet.tasks.list(user="ana"))) == ([], 1)
    assert told(other)[0] == "the tools called update_task → paint, update_task"
    assert told(other)[1].startswith("update_task, arguments {")
