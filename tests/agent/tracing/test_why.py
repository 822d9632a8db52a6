"""Why a memory was given to the model or was not: each gate is named, with its value."""

from typing import Any

import pytest
from scripted_server import Call, Fail, Say, answer

from agent.tracing.store.filters import TraceFilter
from agent.tracing.why.memories import Asked, Why, traces_of, why
from agent.tracing.why.messages import explain as explain_all
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


@pytest.fixture
def said(pet):
    """`await said(words, trace)`: the message that holds the words, as it is explained."""

    async def one(words: str, trace: Any = None, user: str | None = None) -> Why:
        parts, asked = pet.components, Asked(pet.clock(), user, trace)
        found = await explain_all(parts.database, parts.sync, pet.traces, asked, words)
        [message] = [one for one in found if one.kind == "message"]
        return message

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


async def test_what_is_far_weaker_than_the_best_says_the_share(told, turn, explain):
    await told("Where does the cat sleep? Ana's cat sleeps where the cat sleeps")
    id = await told("Ana once saw a lion sleep in a zoo", subjects=["lion"])
    found = await explain(id, await turn())
    assert found.stopped_at == found.gates[-1]
    assert "found, but under 0.35 of the best score" in found.gates[-1].value


async def test_what_an_earlier_search_gave_is_not_missed_by_the_next(told, explain, server, pet):
    id = await told()
    server.script(Call("search_memories", SEARCH), Call("search_memories", SEARCH), answer("In the piano."))
    reply = await pet.respond("where is she?", user="ana")
    await pet.settle()
    found = await explain(id, await pet.traces.get(reply.trace_id, pet.clock()))
    assert [gate.value.rpartition(", ")[2] for gate in found.gates[-2:]] == [
        "given",
        "the model saw it already",
    ]


@pytest.mark.parametrize(
    ("importance", "why"),
    [
        (0.4, "its importance 0.4 is under 0.5"),
        (0.7, "it shares no word with the message, and its importance 0.7 is under 0.75"),
        (0.8, "other facts took the room that there is"),
    ],
)
async def test_what_is_not_in_the_prompt_says_why(told, turn, explain, importance, why):
    for number in ("one", "two", "three"):
        await told(f"Ana has allergy {number}", importance=1.0)
    id = await told(importance=importance)
    found = await explain(id, await turn({"query": "piano lessons on Mars"}))
    assert [gate.value for gate in found.gates if gate.name == "in the prompt"] == [why]


async def test_what_somebody_else_told_stands_in_no_private_prompt(told, turn, explain):
    id = await told(user="ben", everybody=True)
    found = await explain(id, await turn())
    assert [gate.value for gate in found.gates if gate.name == "in the prompt"] == ["somebody else told it"]


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        ([], "the answer kept nothing of it"),
        ([{"content": CAT, "importance": 0.1}], f"“{CAT}” was not kept: importance 0.1 is under 0.3"),
        ([{"content": CAT, "importance": 0.7, "ttl": "1h"}], f"“{CAT}” was kept until "),
    ],
)
async def test_of_what_was_never_remembered_the_message_says_why(pet, server, turn, said, clock, kept, why):
    server.script(answer("Nice.", *kept))
    await pet.respond("Mitzi sleeps in the piano", user="ana", conversation="before")
    await pet.settle()
    clock.advance(hours=2)
    await pet.admin.purge()
    trace = await turn({"query": "nothing like it"})
    found = await said("Mitzi", trace, user="ana")
    [value] = [gate.value for gate in found.gates if gate.name == "remembered" and not gate.passed]
    assert value.startswith(why)
    with pytest.raises(NotFound):
        await said("Mitzi", trace, user="ben")


@pytest.mark.parametrize(
    ("per_hour", "answered", "why"),
    [
        (
            60,
            Fail(401, "no such key"),
            "the answer kept nothing of it; its consolidation failed 1×, and waits",
        ),
        (1, Say('{"summary": "They met."}'), "the answer kept nothing of it; its consolidation waits until "),
        (60, Say("no JSON"), "a consolidation found nothing that could be used ("),
        (60, Say('{"summary": "They met."}'), "a consolidation read it and kept nothing ("),
    ],
)
async def test_a_message_says_what_its_consolidation_came_to(
    pet_at, first_way, server, per_hour, answered, why
):
    asks = {"look_back": "model", "look_back_minutes": 0, "upkeep_per_hour": per_hour}
    pet = await pet_at(first_way, **asks)
    server.script(answer("Hm."), answer("Nice."))
    server.script_looking_back(*[answered] * 3)
    for text in ("hello", "Mitzi sleeps in the piano"):
        await pet.respond(text, user="ana")
        await pet.settle()
    parts, asked = pet.components, Asked(pet.clock(), "ana")
    [found] = await explain_all(parts.database, parts.sync, pet.traces, asked, "Mitzi")
    assert stopped(found)[1].startswith(why)
    assert ("ana has no upkeep calls left" in stopped(found)[1]) == (per_hour == 1)


async def test_a_message_in_the_prompt_was_given_though_its_fact_was_not(pet, server, turn, said):
    server.script(answer("Nice.", {"content": CAT}))
    await pet.respond("Mitzi sleeps in the piano", user="ana")
    await pet.settle()
    found = await said("Mitzi", await turn({"query": "nothing like it"}))
    assert found.given
    assert [gate.passed for gate in found.gates if gate.name in ("remembered", "in the prompt")] == [
        True,
        True,
    ]


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
