"""A conversation whose history the client keeps and sends whole."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_server import Asked, Call, ScriptedServer, answer

from agent import Companion
from agent.settings import Budget
from agent.types.client import Called, ClientTurn, Item, Returned, Said

Rows = Callable[..., list[dict[str, Any]]]

PERU = [Said("user", "Name a country"), Said("assistant", "Peru")]
REPLACED = "its message was replaced"


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer) -> Companion:
    return await open_pet(openai_base_url=server.url, model="tiny", api="chat", look_back="off")


async def say(pet: Companion, text: str, *history: Item, user: str | None = "ana", **more: Any) -> Any:
    client = ClientTurn(tuple(history), tuple(more.pop("after", ())))
    return await pet.respond(text, user=user, client=client, settle=True, **more)


def kept(rows: Rows, *, replaced: bool = False) -> list[str]:
    told = "IS NOT NULL" if replaced else "IS NULL"
    return [row["text"] for row in rows(f"SELECT text FROM messages WHERE replaced_at {told} ORDER BY seq")]


def seen(asked: Asked) -> list[str]:
    return [text for _, text in asked.conversation]


async def test_a_chat_without_a_history_shows_no_other(pet: Companion, server: ScriptedServer) -> None:
    server.script(answer("I will."), answer("Hello."))
    await say(pet, "I am writing my resignation letter, keep it secret")
    await say(pet, "hello")
    assert seen(server.asked[1]) == ["hello"]
    assert "resignation" not in server.asked[1].text


async def test_a_chat_goes_on_in_the_conversation_that_it_began(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(*map(answer, ("Peru", "Lima", "Hm.", "Quito")))
    await say(pet, "Name a country")
    await say(pet, "And its capital?", *PERU)
    await say(pet, "Something else")
    await say(pet, "And another?", *PERU, Said("user", "And its capital?"), Said("assistant", "Lima"))
    told = rows("SELECT conversation_id, text FROM messages ORDER BY seq")
    first, other = (
        {row["conversation_id"] for row in told if row["text"] in texts} for texts in (("Peru",), ("Hm.",))
    )
    assert [row["text"] for row in told if row["conversation_id"] in first] == [
        *("Name a country", "Peru", "And its capital?", "Lima", "And another?", "Quito")
    ]
    assert len(first | other) == 2


async def test_an_answer_made_again_replaces_the_one_before(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(*map(answer, ("Peru", "Chile", "Santiago")))
    for _ in range(2):
        await say(pet, "Name a country")
    assert seen(server.asked[1]) == ["Name a country"]
    await say(pet, "And its capital?", Said("user", "Name a country"), Said("assistant", "Chile"))
    assert kept(rows) == ["Name a country", "Chile", "And its capital?", "Santiago"]
    assert kept(rows, replaced=True) == ["Peru"]


async def test_the_same_beginning_later_is_another_chat(
    pet: Companion, server: ScriptedServer, rows: Rows, clock: Any
) -> None:
    server.script(*map(answer, ("Hi.", "Hi again.")))
    await say(pet, "I am ill today")
    clock.advance(days=30)
    await say(pet, "I am ill today")
    assert len(kept(rows)) == 4


async def test_an_edit_replaces_what_followed_and_what_was_learned_from_it(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    fact = {
        "content": "Ana sails on Sundays",
        "subjects": ["ana"],
        "ttl": None,
        "type": "fact",
        "importance": 0.7,
    }
    server.script(answer("Hello."), answer("Fair winds!", fact), answer("Aye."), answer("I see."))
    start = [Said("user", "hi there"), Said("assistant", "Hello.")]
    branch = [*start, Said("user", "I sail on Sundays"), Said("assistant", "Fair winds!")]
    await say(pet, "hi there", conversation="boat")
    await say(pet, "I sail on Sundays", *start, conversation="boat")
    await say(pet, "with Ben", *branch, conversation="boat")
    assert [memory.content for memory in await pet.memories(user="ana")] == ["Ana sails on Sundays"]

    await say(pet, "I row on Mondays", *start, conversation="boat")

    assert seen(server.asked[-1]) == ["hi there", "Hello.", "I row on Mondays"]
    assert kept(rows) == ["hi there", "Hello.", "I row on Mondays", "I see."]
    assert await pet.memories(user="ana") == []
    assert [
        step.reason for step in await pet.history(rows("SELECT id FROM memories")[0]["id"], user="ana")
    ] == [REPLACED]
    await pet.settle()
    assert not [
        hit for hit in await pet.search_memories("sail Sundays", user="ana") if "Sunday" in hit.content
    ]
    [shown] = [one for one in await pet.messages(user="ana") if one.text == "I sail on Sundays"]
    assert shown.replaced_at is not None

    server.script(answer("Welcome back."))
    await say(
        pet, "and with Eve", *branch, Said("user", "with Ben"), Said("assistant", "Aye."), conversation="boat"
    )
    assert kept(rows, replaced=True) == ["I row on Mondays", "I see."]
    assert [memory.content for memory in await pet.memories(user="ana")] == ["Ana sails on Sundays"]
    await pet.settle()
    assert "Sunday" in str(await pet.search_memories("sail Sundays", user="ana"))


async def test_an_edited_first_message_is_replaced_and_a_new_one_is_not(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(*map(answer, ("A dog!", "Max!", "Hm.")))
    await say(pet, "My dog is called Rex", conversation="pets")
    await say(pet, "My dog is called Max", conversation="pets")
    await say(pet, "what shall I cook?", conversation="pets")
    assert seen(server.asked[-1]) == ["what shall I cook?"]
    assert kept(rows, replaced=True) == ["My dog is called Rex", "A dog!"]


@pytest.mark.parametrize("name", ["trains", None])
async def test_a_question_that_had_a_template_around_it_when_it_was_asked_stays_said(
    pet: Companion, server: ScriptedServer, rows: Rows, name: str | None
) -> None:
    server.script(*map(answer, ("The office.", "Nobody.", "You.")))
    first = [Said("user", "who pays trains?"), Said("assistant", "The office.")]
    second = [*first, Said("user", "and buses?"), Said("assistant", "Nobody.")]
    await say(pet, "Use this:\nTrains are paid.\nwho pays trains?\n", conversation=name)
    await say(pet, "and buses?\n\nTool `pay` Output: none", *first, conversation=name)
    await say(pet, "and taxis?", *second, conversation=name)
    assert kept(rows, replaced=True) == []
    assert len({row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")}) == 1
    assert seen(server.asked[-1])[:3] == ["who pays trains?", "The office.", "and buses?"]


async def test_a_question_that_is_part_of_another_is_not_the_same(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(*map(answer, ("Hello.", "Sure.")))
    await say(pet, "hi there")
    await say(pet, "tell me more", Said("user", "hi"), Said("assistant", "Hello."))
    assert len({row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")}) == 2


async def test_a_message_in_a_template_is_shown_in_it_and_stored_without(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(answer("The office."))
    client = ClientTurn((), shown="Trains are paid.\nwho pays?")
    await pet.respond("who pays?", user="ana", client=client)
    assert seen(server.asked[0]) == ["Trains are paid.\nwho pays?"]
    assert kept(rows) == ["who pays?", "The office."]


async def test_what_a_client_cut_off_at_the_beginning_stays_said(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(*map(answer, ("One.", "Two.", "Three.")))
    one = [Said("user", "the first"), Said("assistant", "One.")]
    two = [Said("user", "something else"), Said("assistant", "Two.")]
    await say(pet, "the first", conversation="long")
    await say(pet, "something else", *one, conversation="long")
    await say(pet, "and more", *two, conversation="long")
    assert kept(rows, replaced=True) == []


async def test_examples_and_results_are_shown_in_order_and_not_stored(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(answer("Sunny."))
    examples = (Said("user", "2+2"), Said("assistant", "4"))
    used = (Called("c1", "weather", '{"town": "Lyon"}'), Returned("c1", "sunny"))
    await say(pet, "how is it in Lyon?", *examples, after=used)
    *_, question, call, result = server.asked[0].json["messages"]
    assert seen(server.asked[0]) == ["2+2", "4", "how is it in Lyon?"]
    assert question["content"] == "how is it in Lyon?"
    assert call["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"town": "Lyon"}'}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "sunny")
    assert kept(rows) == ["how is it in Lyon?", "Sunny."]


async def test_a_long_history_is_cut_by_its_budget_alone(
    open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer
) -> None:
    settings = {
        "openai_base_url": server.url,
        "model": "tiny",
        "api": "chat",
        "history_budget": Budget(2_000),
    }
    pet = await open_pet(**settings)
    history = [Said("user" if at % 2 == 0 else "assistant", f"{at:03} {'x' * 36}") for at in range(200)]
    for user in ("ana", None):
        server.script(answer("Hm."))
        await say(pet, "well?", *history, user=user)
        shown = seen(server.asked[-1])
        assert 40 < len(shown) <= 50
        assert shown[-2].startswith("199")


async def test_a_conversation_of_one_person_never_reads_anothers(
    pet: Companion, server: ScriptedServer, rows: Rows
) -> None:
    server.script(*map(answer, ("Peru", "Lima", "Hm.")))
    await say(pet, "Name a country", user="ben", conversation="same")
    await say(pet, "Name a country", user="ben")
    await say(pet, "And its capital?", *PERU, conversation="same")
    assert "Peru" in seen(server.asked[-1])
    assert [row["user_id"] for row in rows("SELECT user_id FROM messages ORDER BY seq")] == ["ben"] * 4 + [
        "ana"
    ] * 2
    assert kept(rows, replaced=True) == []


async def test_a_recorded_turn_with_a_clients_history_replays_the_same(
    pet: Companion, server: ScriptedServer
) -> None:
    from agent.replay.replay import replay

    server.script(answer("Peru"), Call("search_memories", {"query": "capital"}), answer("Lima"))
    await say(pet, "Name a country")
    reply = await say(pet, "And its capital?", *PERU)
    await pet.components.recorder.flush()
    trace = await pet.traces.get(reply.trace_id, pet.clock())
    assert (await replay(pet, trace)).differences == ()


async def test_what_was_replaced_stays_replaced_in_an_export(
    pet: Companion, server: ScriptedServer, open_pet: Callable[..., Awaitable[Companion]], tmp_path: Any
) -> None:
    server.script(*map(answer, ("Peru", "Chile")))
    for _ in range(2):
        await say(pet, "Name a country")
    whole = await pet.export(user="ana")
    [talk] = whole["conversations"]
    assert [(line["text"], "replaced_at" in line) for line in talk["messages"]] == [
        ("Name a country", False),
        ("Peru", True),
        ("Chile", False),
    ]
    other = await open_pet(home=tmp_path / "other", openai_base_url=server.url, model="tiny")
    await other.import_messages(talk["messages"], user="ana")
    assert [one.text for one in await other.messages(user="ana") if one.gone] == ["Peru"]
