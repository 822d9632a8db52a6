"""Why a memory was given to the model or was not: each gate is named, with its value."""

from typing import Any

import pytest
from scripted_server import Call, answer

from agent.tracing.store.filters import TraceFilter
from agent.tracing.why import Asked, Why, traces_of, why
from memory.errors import NotFound
from memory.index.searching import Waiting
from memory.sql.changes import Position

NOWHERE = Position(0, 0)
CAT = "Ana's cat Mitzi sleeps in the old piano"
SEARCH = {"query": "where does the cat sleep?"}


@pytest.fixture
async def pet(pet_at, first_way):
    return await pet_at(first_way, prompt_facts=0, look_back="off")


@pytest.fixture
def turn(pet, server, clock):
    """`await turn()`: the trace of a turn of Ana in private, which searches."""

    async def take(arguments: dict[str, Any] = SEARCH, **where: Any) -> Any:
        clock.advance(minutes=1)
        server.script(Call("search_memories", arguments), answer("In the piano."))
        reply = await pet.respond("where is she?", **{"user": "ana"} | where)
        await pet.settle()
        return await pet.traces.get(reply.trace_id, pet.clock())

    return take


@pytest.fixture
def told(pet):
    async def tell(content: str = CAT, user: str = "ana", **more: Any) -> str:
        return str((await pet.remember(content, user=user, **more)).id)

    return tell


@pytest.fixture
def explain(pet):
    async def one(wanted: str, trace: Any = None, user: str | None = None) -> Why:
        asked = Asked(pet.clock(), user, trace)
        [found] = await why(pet.components.database, pet.components.sync, asked, wanted)
        return found

    return one


def stopped(found: Why) -> tuple[str, str]:
    assert found.stopped_at
    return found.stopped_at.name, found.stopped_at.value


async def test_what_was_given_passed_every_gate(told, turn, explain):
    id = await told()
    found = await explain(id[:8], await turn())
    assert (found.id, found.content, found.given, found.stopped_at) == (id, CAT, True, None)
    assert found.gates[-1].value.startswith("number 1 (")


async def test_another_ones_private_fact_may_not_be_read(told, turn, explain):
    id = await told(user="ben")
    assert stopped(await explain(id, await turn())) == (
        "may be read here",
        "it is of user:ben; read is global, user:ana",
    )


async def test_a_private_fact_may_not_be_read_in_a_channel(told, turn, explain):
    id = await told()
    name, value = stopped(await explain(id, await turn(place="acme/general")))
    assert (name, value.partition(";")[0]) == ("may be read here", "it is of user:ana")


async def test_a_forgotten_one_is_told_without_its_text(pet, told, turn, explain):
    id = await told()
    trace = await turn({"query": "piano lessons on Mars"})
    await pet.memories.forget(id, user="ana")
    found = await explain(id, trace)
    assert found.content == ""
    assert [gate.passed for gate in found.gates if gate.name == "not forgotten"] == [False]


async def test_a_replaced_one_names_what_replaced_it(pet, told, turn, explain, clock):
    id = await told()
    clock.advance(minutes=1)
    await pet.memories.update(id, "Mitzi sleeps on the stove", user="ana")
    name, value = stopped(await explain(id, await turn()))
    assert name == "not replaced"
    assert "by “Mitzi sleeps on the stove” (corrected on purpose)" in value


async def test_what_was_replaced_later_held_in_the_turn(pet, told, turn, explain, clock):
    id = await told()
    trace = await turn()
    clock.advance(minutes=1)
    await pet.memories.update(id, "Mitzi sleeps on the stove", user="ana")
    assert (await explain(id, trace)).given is True
    assert stopped(await explain(id))[0] == "not replaced"


async def test_an_expired_one_says_since_when(told, turn, explain, clock):
    id = await told(ttl="1h")
    clock.advance(hours=2)
    name, value = stopped(await explain(id, await turn()))
    assert (name, value[:3]) == ("not expired", "on ")


async def test_what_was_told_later_was_not_there(told, turn, explain, clock):
    trace = await turn()
    clock.advance(hours=1)
    assert stopped(await explain(await told(), trace))[0] == "told before"


async def test_the_index_may_not_have_it_yet(pet, told, explain, monkeypatch):
    id = await told()
    for waiting, value in (
        (Waiting({"memory": [id]}, None, NOWHERE), "not yet: a search reads its row meanwhile"),
        (Waiting({}, "the index is being built", NOWHERE), "the index is being built"),
    ):

        async def answers(patient: bool, waiting: Waiting = waiting) -> Waiting:
            return waiting

        monkeypatch.setattr(pet.components.sync, "waiting", answers)
        assert stopped(await explain(id)) == ("indexed", value)


async def test_what_lies_under_the_floor_says_which(told, turn, explain):
    await told()
    id = await told("Ana owns forty blue bicycles", subjects=["bicycles"])
    found = await explain(id, await turn())
    assert found.given is False
    assert "shares no word, and under" in found.gates[-1].value


async def test_what_comes_after_the_limit_says_its_rank(told, turn, explain):
    ids = [await told(f"Ana's cat number {n} sleeps in piano {n}") for n in range(4)]
    trace = await turn(SEARCH | {"limit": 1})
    values = [(await explain(id, trace)).gates[-1] for id in ids]
    assert sorted(gate.passed for gate in values) == [False, False, False, True]
    assert all("below the first 1" in gate.value for gate in values if not gate.passed)


async def test_what_the_result_had_no_room_for_is_not_given(told, turn, explain):
    ids = [await told(f"Ana's cat {n} sleeps in the piano {'and purrs ' * 120}{n}") for n in range(9)]
    trace = await turn()
    found = [await explain(id, trace) for id in ids]
    cut = [one for one in found if not one.given]
    assert 0 < len(cut) < len(ids)
    assert all(one.gates[-1].value.endswith("found, but the result had no room for it") for one in cut)


async def test_what_stood_in_the_prompt_was_given_there(pet_at, first_way, server):
    pet = await pet_at(first_way)
    id = str((await pet.remember(CAT, user="ana", importance=1.0)).id)
    server.script(answer("Yes."))
    reply = await pet.respond("is my cat well?", user="ana")
    await pet.settle()
    trace = await pet.traces.get(reply.trace_id, pet.clock())
    [found] = await why(pet.components.database, pet.components.sync, Asked(pet.clock(), None, trace), id)
    assert found.given
    assert [gate.name for gate in found.gates if gate.passed][-1] == "in the prompt"


async def test_one_explains_only_what_one_may_list(told, explain):
    id = await told()
    assert (await explain(CAT, user="ana")).id == id
    with pytest.raises(NotFound, match="no memory fits"):
        await explain(id, user="ben")


async def test_what_is_gone_for_good_says_when_it_last_changed(pet, told, explain, clock):
    id = await told()
    newer = await pet.memories.update(id, "Mitzi sleeps on the stove", user="ana")
    await pet.memories.forget(newer.id, user="ana")
    clock.advance(days=1)
    await pet.admin.purge()
    with pytest.raises(NotFound) as gone:
        await explain(id)
    assert "Mitzi" not in str(gone.value)


async def test_its_traces_say_what_happened_to_it_there(pet, told, turn, server):
    server.script(Call("remember", {"content": CAT, "subjects": ["mitzi"], "ttl": None}), answer("Noted."))
    await pet.respond("my cat sleeps in the old piano", user="ana")
    found = await turn()
    [memory] = await pet.memories.list(user="ana")
    traces = await traces_of(pet.traces, memory.id, pet.clock())
    assert [part for _, part in traces] == ["given to the model", "decided: add, new"]
    [newest, _] = await pet.traces.list(TraceFilter(row=memory.id), pet.clock())
    assert newest.id == found.id
