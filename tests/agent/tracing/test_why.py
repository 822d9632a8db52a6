"""Why a memory was given to the model or was not: each gate is named, with its value."""

from functools import partial
from typing import Any

import pytest
from scripted_server import Call, Fail, Say, answer

from agent.tracing.store.filters import TraceFilter
from agent.tracing.why.explain import explain as explain_all
from agent.tracing.why.explain import traces_of
from agent.tracing.why.gates import Question, Why
from memory.errors import NotFound

NAPPING = ((0.4, "Mitzi"), (0.7, "Grandfather"), (0.8, "The neighbour"))
CAT = "Ana's cat Mitzi sleeps in the old piano"
SEARCH = {"query": "where does the cat sleep?"}


@pytest.fixture
async def pet(pet_at, first_way):
    return await pet_at(first_way, context_budget=1, consolidate="off")


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
    """`await explain(wanted, trace)`: why the only memory, or one of another kind, that fits was given."""

    async def one(wanted: str, trace: Any = None, user: str | None = None, kind: str = "memory") -> Why:
        [found] = await explain_all(pet.traces, Question(pet.clock(), user, trace), wanted, [kind])
        return found

    return one


@pytest.fixture
def said(explain):
    """`await said(words, trace)`: the message that holds the words, as it is explained."""
    return partial(explain, kind="message")


def stopped(found: Why) -> tuple[str, str]:
    assert found.stopped_at
    return found.stopped_at.name, found.stopped_at.value


async def test_each_gate_that_stops_a_memory_is_named_with_its_value(pet, told, turn, explain, clock):
    given, bens = await told(), await told("Ben's cat sleeps in the piano", user="ben")
    ended = await told("Ana's cat is ill and sleeps in the piano", ttl="1h")
    old = await told("Ana's cat Tom sleeps in the bath")
    far = await told("Ana owns forty blue bicycles", subjects=["bicycles"])
    dull = (
        "The parrot said a poem, sang three songs about rain in Spain, bought bread, paid the bill, wrote to "
    )
    dull += "the mayor of the town about taxes, then flew to the roof to sleep"
    weak = await told(dull, importance=0.3)
    await told("Where does the cat sleep? Ana's cat sleeps where the cat sleeps")
    before = await turn()
    clock.advance(hours=2)
    await pet.memories.update(old, "Tom sleeps on the stove", user="ana")
    trace = await turn()
    clock.advance(hours=1)
    late = await told("Ana's cat has a kitten in the piano")

    found = await explain(given[:8], trace)
    assert (found.id, found.content, found.received, found.stopped_at) == (given, CAT, True, None)
    assert found.gates[-1].value.startswith("search “where does the cat sleep?”, number ")
    assert stopped(await explain(bens, trace)) == (
        "somebody else's",
        "owned by user:ben; the reader may read global, user:ana",
    )
    name, value = stopped(await explain(given, await turn(place="acme/general")))
    assert (name, value.partition(";")[0]) == ("private", "owned by user:ana")
    assert [stopped(await explain(id, trace))[0] for id in (ended, old, late)] == [
        "expired",
        "replaced",
        "stated later",
    ]
    assert "by “Tom sleeps on the stove” (corrected on purpose)" in stopped(await explain(old, trace))[1]
    assert (await explain(old, before)).received is True, "it held in that turn"
    found = await explain(far, trace)
    assert (found.received, "too far from the question" in found.gates[-1].value) == (False, True)
    assert "its score is under 0.2 of the best one" in (await explain(weak, trace)).gates[-1].value
    await pet.memories.forget(given, user="ana")
    found = await explain(given, trace)
    assert found.content == "", "a forgotten one is told without its text"
    assert [gate.passed for gate in found.gates if gate.name == "forgotten"] == [False]


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
    cut = [one for one in found if not one.received]
    assert 0 < len(cut) < len(ids)
    assert all(one.gates[-1].value.endswith("found, but the result was full") for one in cut)


async def test_what_an_earlier_search_gave_is_not_missed_by_the_next(told, explain, server, pet):
    id = await told()
    server.script(Call("search_memories", SEARCH), Call("search_memories", SEARCH), answer("In the piano."))
    reply = await pet.respond("where is she?", user="ana")
    await pet.settle()
    found = await explain(id, await pet.traces.get(reply.trace_id, pet.clock()))
    assert [gate.name for gate in found.gates[-2:]] == ["given", "shown already"]


async def test_what_is_not_in_the_prompt_says_why(told, turn, explain):
    for number in ("one", "two", "three"):
        await told(f"Ana has allergy {number}", importance=1.0)
    ids = {importance: await told(f"{name} naps", importance=importance) for importance, name in NAPPING}
    bens = await told(user="ben", everybody=True)
    trace = await turn({"query": "piano lessons on Mars"})
    found = [await explain(id, trace) for id in (*ids.values(), bens)]
    assert [gate.value for one in found for gate in one.gates if gate.name == "not in the prompt"] == [
        "its importance 0.4 is under 0.5",
        "it shares no word with the message, and its importance 0.7 is under 0.8",
        "other facts filled the space",
        "somebody else stated it",
    ]


async def test_of_what_was_never_remembered_the_message_says_why(pet, server, turn, said, clock):
    reasons = {
        "naps": ([], "the answer stored nothing of it"),
        "dozes": (
            [{"content": CAT, "importance": 0.1}],
            f"“{CAT}” was not stored: importance 0.1 is under 0.3",
        ),
        "snores": ([{"content": CAT, "importance": 0.7, "ttl": "1h"}], f"“{CAT}” was stored until "),
    }
    for verb, (kept, _) in reasons.items():
        server.script(answer("Nice.", *kept))
        await pet.respond(f"Mitzi {verb} in the piano", user="ana", conversation="before")
        await pet.settle()
    clock.advance(hours=2)
    await pet.admin.purge()
    trace = await turn({"query": "nothing like it"})
    for verb, (_, reason) in reasons.items():
        found = await said(verb, trace, user="ana")
        [value] = [gate.value for gate in found.gates if gate.name == "not remembered"]
        assert value.startswith(reason)
    with pytest.raises(NotFound):
        await said("naps", trace, user="ben")


@pytest.mark.parametrize(
    ("per_hour", "answered", "why"),
    [
        (
            60,
            Fail(401, "no such key"),
            "the answer stored nothing of it; its consolidation failed 1×, and waits",
        ),
        (
            1,
            Say('{"summary": "They met."}'),
            "the answer stored nothing of it; its consolidation waits until ",
        ),
        (60, Say("no JSON"), "a consolidation had an incomplete answer ("),
        (60, Say('{"summary": "They met."}'), "a consolidation read it and stored nothing ("),
    ],
)
async def test_a_message_says_what_its_consolidation_came_to(
    pet_at, first_way, server, per_hour, answered, why
):
    asks = {"consolidate": "model", "consolidate_minutes": 0, "consolidate_per_day": per_hour}
    pet = await pet_at(first_way, **asks)
    server.script(answer("Hm."), answer("Nice."))
    server.script_consolidations(*[answered] * 3)
    for text in ("hello", "Mitzi sleeps in the piano"):
        await pet.respond(text, user="ana")
        await pet.settle()
    asked = Question(pet.clock(), "ana")
    [found] = await explain_all(pet.traces, asked, "Mitzi")
    assert stopped(found)[1].startswith(why)
    assert ("ana has no calls for consolidation left" in stopped(found)[1]) == (per_hour == 1)


async def test_a_message_in_the_prompt_was_given_though_its_fact_was_not(pet, server, turn, said):
    server.script(answer("Nice.", {"content": CAT}))
    await pet.respond("Mitzi sleeps in the piano", user="ana")
    await pet.settle()
    found = await said("Mitzi", await turn({"query": "nothing like it"}))
    assert found.received
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
    [found] = await explain_all(pet.traces, Question(pet.clock(), None, trace), id, ["memory"])
    assert found.received
    assert [gate.name for gate in found.gates if gate.passed][-1] == "in the prompt"


async def test_all_words_must_fit_and_those_of_the_turns_person_come_first(pet, told, turn):
    mine, bens = await told(), await told("Ben's CAT naps on Ünal's piano", user="ben")
    await told("Ana's dog sleeps elsewhere")
    trace = await turn()
    for wanted, ids in {"piano cat": [mine, bens], "piano mitzi": [mine], "ünal cat": [bens]}.items():
        found = await explain_all(pet.traces, Question(pet.clock(), None, trace), wanted, ["memory"])
        assert [one.id for one in found] == ids
    with pytest.raises(NotFound):
        await explain_all(pet.traces, Question(pet.clock(), None), "cat dog")


async def test_documents_and_summaries_are_explained_too(pet_at, first_way, server, clock, tmp_path):
    pet = await pet_at(first_way, context_budget=1, history_messages=1)
    (tmp_path / "cats.md").write_text("# Cats\n\nA cat purrs at 25 hertz.\n")
    await pet.documents.add_files([tmp_path / "cats.md"])
    server.script(answer("Nice.", {"content": "Mitzi purrs"}), answer("Hm."), answer("At 25 hertz."))
    server.script_consolidations(Say('{"summary": "Ana spoke of how Mitzi purrs."}'))
    await pet.respond("my Mitzi purrs", user="ana")
    await pet.settle()
    clock.advance(hours=1)
    await pet.respond("hello", user="ana")
    await pet.settle()
    reply = await pet.respond("how fast?", user="ana")
    await pet.settle()
    trace = await pet.traces.get(reply.trace_id, clock())
    found = await explain_all(pet.traces, Question(clock(), None, trace), "purrs")
    names = {one.kind: (one.received, [gate.name for gate in one.gates]) for one in found}
    assert names["summary"] == (True, ["readable here", "not withheld", "in the prompt"])
    assert names["document"] == (False, ["readable here", "added before", "not in the prompt"])
    assert names["memory"][1][-1] == "in a summary"


async def test_one_explains_only_what_one_may_list_and_what_is_there(pet, told, explain, clock):
    id = await told()
    assert (await explain(CAT, user="ana")).id == id
    with pytest.raises(NotFound, match="no memory matches"):
        await explain(id, user="ben")
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
