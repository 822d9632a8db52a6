"""What a person asks in words to forget, and what they delete, on a real companion."""

from collections.abc import Awaitable, Callable

import pytest

from agent import Companion
from agent.surfaces.bots.answers import Answer, Asker
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.forgetting import GONE, NOTHING, QUESTION
from memory.audience import Place

ANA, BEN = "chat:1", "chat:2"
GENERAL = Place(("chat", "acme", "general"))
PRIVATELY = Asker(ANA)
PIN = "my bank PIN is 4711, do not tell"
OpenPet = Callable[..., Awaitable[Companion]]


@pytest.fixture
async def pet(open_pet: OpenPet) -> Companion:
    return await open_pet()


async def asked(pet: Companion, text: str, asker: Asker = PRIVATELY) -> Answer:
    """The question after somebody wrote this."""
    reply = await pet.respond(text, user=asker.user, place=asker.place)
    assert reply.forget is not None
    return await Commands(pet).forgetting.question(reply.forget, asker)


async def press(pet: Companion, answer: Answer, label: str, asker: Asker = PRIVATELY) -> Answer:
    buttons = [*(answer.items[0].buttons if answer.items else ()), *answer.buttons]
    [pressed] = [button for button in buttons if button.label == label]
    assert len(pressed.value) <= 60
    return await Commands(pet).press(asker, pressed.action, pressed.value)


async def known(pet: Companion) -> str:
    facts = [memory.content for memory in await pet.memories.list(user=ANA)]
    return str([*facts, *(message.text for message in await pet.conversations.messages(user=ANA))])


async def test_what_a_person_confirms_is_forgotten_with_their_request_and_comes_back(pet: Companion) -> None:
    await pet.respond(PIN, user=ANA)
    await pet.settle()
    question = await asked(pet, "please forget my bank PIN")
    assert (question.text, question.items[0].note) == (QUESTION, "2026-11-21")
    assert "4711" in question.items[0].text
    before = await known(pet)

    gone = await press(pet, question, "Forget")

    assert gone.text == f"Forgotten: {question.items[0].text}"
    assert gone.note.startswith("Taken: 1 memory, 2 messages, 2 replies, ")
    assert "It can be undone until 09:40. " in gone.note
    assert gone.update is not None
    assert gone.update.outcome == "forgotten"
    assert "PIN" not in await known(pet)

    back = await press(pet, gone, "Undo")

    assert back.text == f"I remember it again: {question.items[0].text}"
    assert await known(pet) == before
    assert "not there any more" in (await press(pet, gone, "Undo")).text


async def test_what_stays_near_it_can_be_forgotten_too(pet: Companion) -> None:
    for fact in ("Citalopram makes Ana tired", "Ana takes citalopram for her depression"):
        told = await pet.remember(fact, user=ANA)
    gone = await Commands(pet).press(PRIVATELY, "delete", str(told.id))
    assert [item.text for item in gone.items] == ["Citalopram makes Ana tired"]
    assert (await press(pet, gone, "Forget")).text == "Forgotten: Citalopram makes Ana tired"
    assert await pet.memories.list(user=ANA) == []


async def test_a_message_of_which_no_fact_was_made_is_forgotten_too(pet: Companion) -> None:
    await pet.respond("what is a PIN good for?", user=ANA)
    [_, message] = await pet.conversations.messages(user=ANA)
    commands = Commands(pet)
    gone = await commands.press(PRIVATELY, "message", f"{message.id}.{message.id[:22]}")
    assert (gone.text, gone.note[:15]) == ("Forgotten: what is a PIN good for?", "Taken: 1 messag")
    assert "good for" not in await known(pet)
    assert (await press(pet, gone, "Undo")).text == "I remember it again: your message"
    assert "good for" in await known(pet)


async def test_where_nothing_matches_one_line_says_so(pet: Companion) -> None:
    assert await asked(pet, "please forget my umbrella") == Answer(NOTHING)


@pytest.mark.parametrize("asker", [Asker(BEN), Asker(BEN, GENERAL)])
async def test_nobody_else_can_confirm(pet: Companion, asker: Asker) -> None:
    await pet.respond(PIN, user=ANA, place=GENERAL)
    question = await asked(pet, "please forget my bank PIN", Asker(ANA, GENERAL))
    assert (await press(pet, question, "Forget", asker)).text == GONE
    assert "4711" in await known(pet)
    gone = await press(pet, question, "Forget", Asker(ANA, GENERAL))
    assert "not there any more" in (await press(pet, gone, "Undo", asker)).text
    assert "4711" not in await known(pet)


async def test_what_is_forgotten_already_is_said_to_be(pet: Companion) -> None:
    await pet.respond(PIN, user=ANA)
    question = await asked(pet, "please forget my bank PIN")
    await press(pet, question, "Forget")
    again = await press(pet, question, "Forget")
    assert again.text == GONE
    assert again.update is not None, "its line goes from the question"


async def test_without_an_undo_there_is_no_button_for_it(open_pet: OpenPet) -> None:
    pet = await open_pet(forget_undo_minutes=0)
    told = await pet.remember("Ana has the flu", user=ANA)
    gone = await Commands(pet).press(PRIVATELY, "delete", str(told.id))
    assert gone.buttons == ()
    assert gone.note == "Taken: 1 memory. What stands in the chat you delete there."
