"""What is forgotten while a reply is written does not come back with it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents.testing import function_call
from sqlalchemy import delete

from agent.types.client import ClientTool, ClientTurn
from hachi import Companion
from hachi.testing import AnsweringModel
from memory.audience import GLOBAL
from memory.forgetting.cleanup import expire
from memory.sql.tables import memories

Forget = Callable[[Companion], Awaitable[Any]]

PIN = "My bank PIN is 4711"
NOTED = {"message": "Noted.", "memories": [{"content": "Ana's bank PIN is 4711", "subjects": ["ana"]}]}
TOLD = {"message": "It is 4711.", "memories": [{"content": "Ana's PIN is short", "subjects": ["ana"]}]}


async def forget_the_fact(pet: Companion) -> None:
    [memory] = await pet.memories.list(user="ana")
    await pet.memories.forget(memory.id, user="ana")


async def forget_the_message(pet: Companion) -> None:
    [message] = [line for line in await pet.conversations.messages(user="ana") if line.text == PIN]
    await pet.conversations.forget(message.id, user="ana")


async def forget_the_conversation(pet: Companion) -> None:
    await pet.conversations.forget_conversation("place:acme", user="ana")


async def erase(pet: Companion) -> None:
    await pet.people.erase(user="ana")


async def ask_meanwhile(pet: Companion, model: AnsweringModel, act: Forget, **where: Any) -> Any:
    """The reply to a question during which `act` happens."""
    turn = asyncio.create_task(pet.respond("Which PIN is it?", **where))
    await model.held.wait()
    await act(pet)
    model.release.set()
    return await turn


@pytest.mark.parametrize("act", [forget_the_fact, forget_the_message, forget_the_conversation, erase])
async def test_a_reply_that_saw_what_was_forgotten_is_not_stored(open_pet, rows, act):
    model = AnsweringModel(NOTED, TOLD, hold="Which PIN")
    pet = await open_pet(given=model)
    await pet.respond(PIN, user="ana", place="acme", settle=True)
    reply = await ask_meanwhile(pet, model, act, user="ben", place="acme")
    await pet.settle()
    assert reply.message == "It is 4711."
    assert reply.message_id is None
    said = await pet.conversations.messages(user="ben", place="acme")
    assert [message.text for message in said] == ["Which PIN is it?"]
    assert await pet.memories.list(user="ben", place="acme") == []
    assert rows("SELECT * FROM work WHERE kind = 'store_memories'") == []


async def test_a_conversation_that_is_forgotten_while_it_is_answered_goes_with_the_question(open_pet):
    model = AnsweringModel(NOTED, TOLD, hold="Which PIN")
    pet = await open_pet(given=model)
    await pet.respond(PIN, user="ana", settle=True)
    receipts = []

    async def forget(pet: Companion) -> None:
        receipts.append(await pet.conversations.forget_conversation("dm:ana", user="ana"))

    assert (await ask_meanwhile(pet, model, forget, user="ana")).message_id is None
    await pet.settle()
    assert await pet.conversations.list(user="ana") == await pet.memories.list(user="ana") == []
    await pet.memories.undo_forget(receipts[0].undo_id, user="ana")
    [back] = await pet.conversations.list(user="ana")
    assert (back.title, back.messages) == (PIN, 3)


async def test_a_reply_that_saw_only_a_summary_of_it_is_not_stored(open_pet, clock, rows):
    model = AnsweringModel(NOTED, hold="Which PIN")
    consolidating = AnsweringModel(then={"summary": "Ana told her PIN, 4711."})
    pet = await open_pet(given=model, consolidating=consolidating, history_messages=1)
    await pet.respond(PIN, user="ana", place="acme", settle=True)
    await pet.settle()
    await pet.respond("Nice weather", user="ben", place="acme", settle=True)
    await pet.settle()

    async def forget_later(pet: Companion) -> None:
        clock.advance(seconds=1)
        await forget_the_message(pet)
        consolidating._then = {"summary": "They spoke of the weather."}
        await pet.settle()

    reply = await ask_meanwhile(pet, model, forget_later, user="ben", place="acme")
    assert "4711" in model.shown()
    assert reply.message_id is None


async def test_calls_of_a_clients_tool_that_may_repeat_it_are_not_stored(open_pet, rows):
    model = AnsweringModel([function_call("pay", {"pin": "4711"}, call_id="one")], hold="Which PIN")
    pet = await open_pet(given=model)
    await pet.remember("Ana's bank PIN is 4711", user="ana")
    client = ClientTurn(tools=(ClientTool("pay", "Pays.", {"type": "object"}),))
    reply = await ask_meanwhile(pet, model, forget_the_fact, user="ana", client=client)
    assert [call.name for call in reply.client_calls] == ["pay"]
    assert [row["client_items"] for row in rows("SELECT client_items FROM messages")] == [None]


async def test_what_is_corrected_or_forgotten_elsewhere_costs_no_reply(open_pet, rows):
    model = AnsweringModel(NOTED, TOLD, hold="Which PIN")
    pet = await open_pet(given=model)
    await pet.respond(PIN, user="ana", place="acme", settle=True)

    async def act(pet: Companion) -> None:
        [memory] = await pet.memories.list(user="ana")
        await pet.remember("Ana's bank PIN is 4712", user="ana", place="acme", replaces=memory.id)
        other = await pet.remember("Ana skis", user="ana")
        await pet.memories.forget(str(other.id), user="ana")

    reply = await ask_meanwhile(pet, model, act, user="ben", place="acme")
    assert rows("SELECT text FROM messages WHERE id = ?", reply.message_id) == [{"text": "It is 4711."}]


@pytest.mark.parametrize(
    ("search", "noted", "forgotten"),
    [(True, False, False), (False, False, False), (True, True, False), (True, False, True)],
)
async def test_what_merely_expires_costs_no_reply_unless_nothing_is_left_that_tells_so(
    open_pet, clock, search, noted, forgotten
):
    found = [function_call("search_memories", {"query": "PIN"}, call_id="one")]
    said = {"message": "Noted.", "memories": [NOTED["memories"][0] | {"ttl": "1h"}]}
    answers = [*([] if noted else [said]), *([found] if search else []), TOLD]
    model = AnsweringModel(*answers, hold="function_call_output" if search else "Which PIN")
    pet = await open_pet(given=model)
    if noted:
        await pet.remember("Ana's bank PIN is 4711", user="ana", ttl="1h")
    else:
        await pet.respond(PIN, user="ana", settle=True)

    async def act(pet: Companion) -> None:
        if forgotten:
            await forget_the_fact(pet)
        clock.advance(hours=2)
        await expire(pet.components.database, pet.clock)

    reply = await ask_meanwhile(pet, model, act, user="ana")
    await pet.settle()
    lost = forgotten or noted  # of a note that is purged no message tells whether it was forgotten
    assert (reply.message_id is None) == lost
    texts = [memory.content for memory in await pet.memories.list(user="ana")]
    assert texts == ([] if lost else ["Ana's PIN is short"])


async def test_what_an_undo_brings_back_costs_no_reply(open_pet, clock, rows):
    model = AnsweringModel(NOTED, hold="Which PIN")
    consolidating = AnsweringModel(then={"summary": "They spoke of the weather."})
    pet = await open_pet(given=model, consolidating=consolidating, history_messages=1)
    await pet.respond(PIN, user="ana", place="acme", settle=True)
    await pet.settle()
    [memory] = await pet.memories.list(user="ana")
    receipt = await pet.memories.forget(memory.id, user="ana")
    await pet.respond("Nice weather", user="ben", place="acme", settle=True)
    await pet.settle()

    async def undo_later(pet: Companion) -> None:
        clock.advance(seconds=1)
        await pet.memories.undo_forget(str(receipt.undo_id), user="ana")

    reply = await ask_meanwhile(pet, model, undo_later, user="ben", place="acme")
    assert "the weather" in model.shown()
    assert rows("SELECT text FROM messages WHERE id = ?", reply.message_id) == [{"text": reply.message}]


async def test_a_reply_that_found_what_everybody_knew_waits_for_its_forgetting(open_pet, postgresql):
    search = [function_call("search_memories", {"query": "PIN"}, call_id="one")]
    model = AnsweringModel(search, TOLD, hold="function_call_output")
    pet = await open_pet(given=model, database_url=await postgresql.new())
    await pet.remember("The PIN of the gate is 4711", user="ana", everybody=True)
    turn = asyncio.create_task(pet.respond("Which PIN is it?", user="ben"))
    await model.held.wait()
    async with pet.components.database.write(lock=[GLOBAL]) as connection:
        await connection.execute(delete(memories))
        model.release.set()
        _, waiting = await asyncio.wait([turn], timeout=0.3)
    await turn
    assert waiting, "the reply is stored after the forgetting"
    assert "4711" not in str(await pet.conversations.messages(user="ben"))
