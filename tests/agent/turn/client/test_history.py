"""A conversation whose history the client keeps and sends whole."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from scripted_server import Asked, Call, Fail, Say, ScriptedServer, answer

from agent.errors import ModelError
from agent.types.budget import Budget
from agent.types.client import CallItem, ClientTool, ClientTurn, Item, MessageItem, ResultItem
from hachi import Companion

U, A = partial(MessageItem, "user"), partial(MessageItem, "assistant")

Rows = Callable[..., list[dict[str, Any]]]

PERU = [U("Name a country"), A("Peru")]
REPLACED = "its message was replaced"


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer) -> Companion:
    return await open_pet(openai_base_url=server.url, model="tiny", api="chat", consolidate="off")


async def say(pet: Companion, text: str, *history: Item, user: str | None = "ana", **more: Any) -> Any:
    client = ClientTurn(tuple(history), tuple(more.pop("after", ())))
    return await pet.respond(text, user=user, client=client, settle=True, **more)


def kept(rows: Rows, *, replaced: bool = False) -> list[str]:
    told = "IN" if replaced else "NOT IN"
    hidden = "SELECT row_id FROM hidden WHERE kind = 'message'"
    return [row["text"] for row in rows(f"SELECT text FROM messages WHERE id {told} ({hidden}) ORDER BY seq")]


def seen(asked: Asked) -> list[str]:
    return [text for _, text in asked.conversation]


async def test_a_chat_goes_on_in_the_conversation_that_it_began(pet, server, rows):
    server.script(*map(answer, ("Peru", "Lima", "Hm.", "Quito")))
    await say(pet, "Name a country")
    await say(pet, "And its capital?", *PERU)
    await say(pet, "Something else")
    await say(pet, "And another?", *PERU, U("And its capital?"), A("Lima"))
    told = rows("SELECT conversation_id, text FROM messages ORDER BY seq")
    first, other = (
        {row["conversation_id"] for row in told if row["text"] in texts} for texts in (("Peru",), ("Hm.",))
    )
    assert [row["text"] for row in told if row["conversation_id"] in first] == [
        *("Name a country", "Peru", "And its capital?", "Lima", "And another?", "Quito")
    ]
    assert len(first | other) == 2


async def test_two_chats_that_begin_with_the_same_words_end_nothing_of_each_other(pet, server, rows):
    server.script(*map(answer, ("Hello.", "Hello.", "Baa.", "Noted.", "Moo.", "Two.")))
    hello = [U("hi"), A("Hello.")]
    for _ in range(2):
        await say(pet, "hi")
    await say(pet, "I have a yak", *hello)
    await say(pet, "and a goat", *hello, U("I have a yak"), A("Baa."))
    await say(pet, "I have a zebu", *hello)
    await say(pet, "how many?", *hello, U("I have a zebu"), A("Moo."))
    assert kept(rows, replaced=True) == []
    told = rows("SELECT conversation_id, text FROM messages WHERE text != 'hi' ORDER BY seq")
    yak, zebu = (
        next(r["conversation_id"] for r in told if animal in r["text"]) for animal in ("yak", "zebu")
    )
    assert [row["text"] for row in told if row["conversation_id"] == zebu] == [
        *("Hello.", "I have a zebu", "Moo.", "how many?", "Two.")
    ]
    assert yak != zebu


async def test_an_edit_in_the_only_unnamed_chat_with_these_messages_replaces_what_followed(pet, server, rows):
    hello = [U("hi"), A("Hello.")]
    server.script(answer("Hello."), answer("Baa.", {"content": "Ana has a yak"}), answer("Moo."))
    await say(pet, "hi")
    await say(pet, "I have a yak", *hello)
    await say(pet, "I have a zebu", *hello)
    assert kept(rows) == ["hi", "Hello.", "I have a zebu", "Moo."]
    assert await pet.memories.list(user="ana") == []


async def test_a_chat_that_came_from_elsewhere_ends_nothing_of_one_with_the_same_answer(pet, server, rows):
    server.script(*map(answer, ("Hello.", "Baa.", "Sure.")))
    await say(pet, "hi there")
    await say(pet, "I have a yak", U("hi there"), A("Hello."))
    await say(pet, "tell me more", U("good evening"), A("Hello."))
    assert kept(rows, replaced=True) == []
    assert len({row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")}) == 2


async def test_a_question_that_failed_is_not_stored_twice(pet, server, rows, clock):
    server.then = Fail(400)
    with pytest.raises(ModelError):
        await say(pet, "I am ill today")
    server.script(answer("Get well."), answer("Again?"))
    await say(pet, "I am ill today")
    assert kept(rows) == ["I am ill today", "Get well."]
    await say(pet, "I am ill today")
    assert len(kept(rows)) == 4


async def test_an_edit_replaces_what_followed_and_what_was_learned_from_it(pet, server, rows):
    fact = {
        "content": "Ana sails on Sundays",
        "subjects": ["ana"],
        "ttl": None,
        "type": "fact",
        "importance": 0.7,
    }
    server.script(answer("Hello."), answer("Fair winds!", fact), answer("Aye."), answer("I see."))
    start = [U("hi there"), A("Hello.")]
    branch = [*start, U("I sail on Sundays"), A("Fair winds!")]
    await say(pet, "hi there", conversation="boat")
    await say(pet, "I sail on Sundays", *start, conversation="boat")
    await say(pet, "with Ben", *branch, conversation="boat")
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana sails on Sundays"]

    await say(pet, "I row on Mondays", *start, conversation="boat")

    assert seen(server.asked[-1]) == ["hi there", "Hello.", "I row on Mondays"]
    assert kept(rows) == ["hi there", "Hello.", "I row on Mondays", "I see."]
    assert await pet.memories.list(user="ana") == []
    await pet.settle()
    assert not [
        hit for hit in await pet.search_memories("sail Sundays", user="ana") if "Sunday" in hit.content
    ]
    assert "I sail on Sundays" not in {one.text for one in await pet.conversations.messages(user="ana")}

    server.script(answer("Welcome back."))
    await say(pet, "and with Eve", *branch, U("with Ben"), A("Aye."), conversation="boat")
    assert kept(rows, replaced=True) == ["I row on Mondays", "I see."]
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana sails on Sundays"]
    await pet.settle()
    assert "Sunday" in str(await pet.search_memories("sail Sundays", user="ana"))


async def test_a_chat_of_which_nothing_is_sent_is_continued(pet, server, rows):
    yak = {"content": "Ana has a yak"}
    server.script(answer("Baa.", yak), *map(answer, ("Moo.", "Baa.", "Hm.", "Hm.")))
    await say(pet, "I have a yak", conversation="pets")
    await say(pet, "I have a zebu", conversation="pets")
    assert seen(server.asked[-1]) == ["I have a yak", "Baa.", "I have a zebu"]
    summary = [U("Summary: Ana has a yak."), A("Understood.")]
    await say(pet, "I have a yak", *summary, conversation="pets")  # the same words again
    assert seen(server.asked[-1])[:4] == ["Summary: Ana has a yak.", "Understood.", "I have a yak", "Baa."]
    told = ["I have a yak", "Baa.", "I have a zebu", "Moo.", "I have a yak", "Baa."]
    assert kept(rows) == told
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana has a yak"]
    trimmed = [U("I have a zebu"), A("Moo."), U("I have a yak")]
    await say(pet, "what do I have?", *trimmed, A("Baa."), conversation="pets")
    assert kept(rows) == [*told, "what do I have?", "Hm."]
    first = [U("I have a yak"), A("Baa.")]
    await say(pet, "and now?", *first, U("I have a zebu"), A("Moo."), conversation="pets")
    assert kept(rows)[:4] == told[:4]  # a branch of it
    assert len(kept(rows)) == 6


@pytest.mark.parametrize("sent", ["Fair w", "Fair winds! And following seas.", "Fair winds, or so."])
async def test_an_answer_that_was_stopped_continued_or_edited_is_stored_as_it_was_shown(
    pet, server, rows, sent
):
    server.script(*map(answer, ("Hello.", "Fair winds!", "Aye.", "Aye!")))
    start = [U("hi there"), A("Hello.")]
    asked = [*start, U("I sail")]
    await say(pet, "hi there", conversation="boat")
    await say(pet, "I sail", *start, conversation="boat")
    for _ in range(2):  # and answered anew
        await say(pet, "with Ben", *asked, A(sent), conversation="boat")
    assert kept(rows)[:5] == ["hi there", "Hello.", "I sail", sent, "with Ben"]
    assert "Fair winds!" in kept(rows, replaced=True)
    receipt = await pet.conversations.forget(
        rows("SELECT id FROM messages WHERE text = 'I sail'")[0]["id"], user="ana"
    )
    assert sent not in kept(rows)
    assert receipt.replies >= 1


@pytest.mark.parametrize("purged", [False, True])
async def test_what_was_forgotten_does_not_come_back_with_a_clients_copy_of_an_answer(
    pet, server, rows, clock, purged
):
    yak = {"content": "Ana has a yak"}
    server.script(answer("Noted.", yak), answer("You told me: Ana has a yak."), answer("Hm."))
    noted = [U("I have a yak"), A("Noted.")]
    asked = [*noted, U("what do I have?"), A("You told me: Ana has a yak.")]
    await say(pet, "I have a yak", conversation="pets")
    await say(pet, "what do I have?", *noted, conversation="pets")
    [fact] = await pet.memories.list(user="ana")
    await pet.memories.forget(fact.id, user="ana")
    if purged:
        clock.advance(minutes=30)
        await pet.admin.purge()
    await say(pet, "go on", *asked, conversation="pets")
    assert kept(rows) == ["what do I have?", "go on", "Hm."]


async def test_a_message_in_a_template_is_shown_in_it_and_stored_without(pet, server, rows):
    server.script(answer("The office."))
    client = ClientTurn((), shown="Trains are paid.\nwho pays?")
    await pet.respond("who pays?", user="ana", client=client)
    assert seen(server.asked[0]) == ["Trains are paid.\nwho pays?"]
    assert kept(rows) == ["who pays?", "The office."]


async def test_examples_and_results_are_shown_in_order_and_not_stored(pet, server, rows):
    server.script(answer("Sunny."))
    examples = (U("2+2"), A("4"))
    used = (CallItem("c1", "weather", '{"town": "Lyon"}'), ResultItem("c1", "sunny"))
    await say(pet, "how is it in Lyon?", *examples, after=used)
    *_, question, call, result = server.asked[0].json["messages"]
    assert seen(server.asked[0]) == ["2+2", "4", "how is it in Lyon?"]
    assert question["content"].endswith("how is it in Lyon?")
    assert call["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"town": "Lyon"}'}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "sunny")
    assert kept(rows) == ["how is it in Lyon?", "Sunny."]


async def test_a_long_history_is_cut_by_its_budget_alone(open_pet, server):
    settings = {
        "openai_base_url": server.url,
        "model": "tiny",
        "api": "chat",
        "history_budget": Budget(2_000),
    }
    pet = await open_pet(**settings)
    history = [(A if at % 2 else U)(f"{at:03} {'x' * 36}") for at in range(200)]
    for user in ("ana", None):
        server.script(answer("Hm."))
        await say(pet, "well?", *history, user=user)
        shown = seen(server.asked[-1])
        assert 20 < len(shown) <= 50
        assert shown[-2].startswith("199")


async def test_a_conversation_of_one_person_never_reads_anothers(pet, server, rows):
    server.script(*map(answer, ("Peru", "Lima", "Hm.")))
    await say(pet, "Name a country", user="ben", conversation="same")
    await say(pet, "Name a country", user="ben")
    await say(pet, "And its capital?", *PERU, conversation="same")
    assert "Peru" in seen(server.asked[-1])
    assert [row["user_id"] for row in rows("SELECT user_id FROM messages ORDER BY seq")] == ["ben"] * 4 + [
        "ana"
    ] * 2
    assert kept(rows, replaced=True) == []


async def test_a_recorded_call_of_a_clients_tool_with_a_name_of_ours_replays_the_same(pet, server):
    from agent.replay.replay import replay

    server.script(Call("client_remember", {"text": "tea"}, id="c1"))
    theirs = ClientTool("remember", "Keeps a text", {"type": "object", "properties": {}})
    reply = await pet.respond("keep tea", user="ana", client=ClientTurn((), tools=(theirs,)))
    assert [call.name for call in reply.client_calls] == ["remember"]
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()


async def test_a_question_goes_on_where_the_model_spoke_beside_its_call(pet, server, rows):
    server.script(Say("Let me look.", (Call("clock", {}, id="c1"),)), answer("Noon."))
    clock = ClientTool("clock", "The time", {"type": "object", "properties": {}})
    await pet.respond("what time is it?", user="ana", client=ClientTurn((), tools=(clock,)))
    used = (A("Let me look."), CallItem("c1", "clock", "{}"), ResultItem("c1", "12:00"))
    await say(pet, "what time is it?", after=used)
    assert kept(rows) == ["what time is it?", "Noon."]


@pytest.mark.parametrize("on", ["sqlite", "postgresql"])
async def test_a_history_is_followed_on_both_databases(open_pet, server, request, clock, on):
    url = await request.getfixturevalue("postgresql").new() if on == "postgresql" else None
    pet = await open_pet(
        openai_base_url=server.url, model="tiny", api="chat", consolidate="off", database_url=url
    )
    server.script(answer("Hello.", {"content": "Ana is here"}))
    server.script(*map(answer, ("Fair winds!", "Aye.", "Noon it is.")))
    asked = [U("hi there"), A("Hello.")]
    sailing = [U("I sail"), A("Fair w")]
    await say(pet, "hi there", conversation="boat")
    await say(pet, "I sail", *asked, conversation="boat")
    await say(pet, "with Ben", *asked, *sailing, conversation="boat")
    edited = [U("hello there"), A("Hello.")]
    ben = [U("with Ben"), A("Aye.")]
    await say(pet, "when?", *edited, *sailing, *ben, conversation="boat")
    told = ["hello there", "Hello.", "I sail", "Fair w", "with Ben", "Aye.", "when?", "Noon it is."]
    assert [one.text for one in await pet.conversations.messages(user="ana")][::-1] == told

    assert await pet.memories.list(user="ana") == []
    fact = await pet.remember("Ana sails on Sundays", user="ana")
    await pet.memories.forget(str(fact.id), user="ana")
    server.script(answer("Sure."))
    whole = [*edited, *sailing, *ben, U("when?"), A("It is noon, Sundays.")]
    await say(pet, "sure?", *whole, conversation="boat")
    left = [one.text for one in await pet.conversations.messages(user="ana")][::-1]
    assert left == [*told, "sure?", "Sure."], "the client's copy may hold what was forgotten"
    server.script(answer("Yes."))
    await say(pet, "really?", *whole, U("sure?"), A("Sure."), conversation="boat")
    left = [one.text for one in await pet.conversations.messages(user="ana")][::-1]
    assert left == [*told, "sure?", "Sure.", "really?", "Yes."]
