"""What the model writes down in somebody's turn of what another person said is not theirs."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents.testing import function_call
from scripted_model import AnsweringModel

from agent import Companion

OpenPet = Callable[..., Awaitable[Companion]]
Rows = Callable[..., list[dict[str, Any]]]

SAID = "I have a peanut allergy"
FACT = "Ana has a peanut allergy"
ECHO = {"content": "Ana must avoid peanuts because of an allergy", "subjects": ["ana", "peanuts"]}


def told(**fields: Any) -> dict[str, Any]:
    return {"message": "Noted.", "memories": [{"content": FACT, "subjects": ["ana"]}]} | fields


async def channel(open_pet: OpenPet, *answers: Any, first: Any = None) -> Companion:
    """A companion to whom Ana has told of her allergy in a channel; it gives these answers from then on."""
    pet = await open_pet(given=AnsweringModel(first or told(), *answers), look_back="off")
    await say(pet, SAID, "ana")
    return pet


async def say(pet: Companion, text: str, user: str = "ben") -> None:
    await pet.respond(text, user=user, author=user.capitalize(), place="acme", settle=True)


async def known(pet: Companion, user: str) -> set[str]:
    return {memory.content for memory in await pet.memories(user=user)}


REMEMBERED = [[function_call("remember", ECHO, call_id="one")], "Noted."]
WRITTEN = [{"message": "Good.", "memories": [ECHO]}]


@pytest.mark.parametrize("answers", [WRITTEN, REMEMBERED])
@pytest.mark.parametrize("first", [told(), told(memories=[])])
async def test_an_answer_to_it_makes_it_nobody_elses(open_pet: OpenPet, answers: Any, first: Any) -> None:
    pet = await channel(open_pet, *answers, first=first)
    await say(pet, "ok thanks, I will shop accordingly")
    assert await known(pet, "ben") == set()


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Ana cannot eat peanuts at all", "Ana cannot eat peanuts"),
        ("she has had that since kindergarten", "Ana has had her peanut allergy since childhood"),
        ("Ich bin auch allergisch gegen Erdnüsse", "Ben has a peanut allergy too"),
        ("гречку она тоже не ест", "Ana has an allergy to buckwheat too"),
        ("I will buy some walnuts", "Ben buys walnuts for Ana instead of peanuts"),
    ],
)
async def test_what_may_be_a_statement_of_their_own_is_kept(
    open_pet: OpenPet, said: str, content: str
) -> None:
    pet = await channel(open_pet, {"message": "Good.", "memories": [{"content": content}]})
    await say(pet, said)
    assert await known(pet, "ben") == {content}


MAYBE = [
    ("das stimmt allerdings", "Ana must avoid peanuts because of an allergy"),
    ("true, I will shop accordingly", "Ben shops without peanuts because of the allergy of Ana"),
]


@pytest.mark.parametrize(("said", "content"), MAYBE)
async def test_what_may_rest_on_it_goes_with_it(
    open_pet: OpenPet, rows: Rows, said: str, content: str
) -> None:
    pet = await channel(open_pet, {"message": "Good.", "memories": [{"content": content}]})
    await say(pet, said)
    assert await known(pet, "ben") == {content}
    [memory] = [one for one in await pet.memories(user="ana") if one.content == FACT]
    receipt = await pet.delete_memory(memory.id, user="ana")
    assert rows("SELECT content FROM memories") == []
    await pet.undo_forget(str(receipt.undo_id), user="ana")
    assert await known(pet, "ben") == {content}
    assert (await pet.erase(user="ana")).verified
    assert rows("SELECT content FROM memories") == []


async def test_a_message_takes_what_may_rest_on_it(open_pet: OpenPet, rows: Rows) -> None:
    said, content = MAYBE[0]
    answer = {"message": "Good.", "memories": [{"content": content}]}
    pet = await channel(open_pet, answer, first=told(memories=[]))
    await say(pet, said)
    [message] = [line for line in await pet.messages(user="ana") if line.text == SAID]
    await pet.delete_message(message.id, user="ana")
    assert rows("SELECT content FROM memories") == []


async def test_what_they_said_themselves_outlives_it(open_pet: OpenPet) -> None:
    content = "Ana cannot eat peanuts because of an allergy"
    pet = await channel(open_pet, {"message": "Good.", "memories": [{"content": content}]})
    await say(pet, "Ana cannot eat peanuts, it is an allergy")
    assert (await pet.erase(user="ana")).verified
    assert await known(pet, "ben") == {content}
