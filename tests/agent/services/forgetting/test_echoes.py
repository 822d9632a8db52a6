"""What the model writes down in somebody's turn of what another person said is not theirs."""

from agents.testing import function_call

from hachi import Companion
from hachi.testing import AnsweringModel
from tests.agent.conftest import OpenPet

FACT = "Ana has a peanut allergy"
NOTED = {"message": "Noted.", "memories": [{"content": FACT, "subjects": ["ana"]}]}


async def say(pet: Companion, text: str, user: str = "ben") -> None:
    await pet.respond(text, user=user, author=user.capitalize(), place="acme", settle=True)


async def known(pet: Companion, user: str) -> set[str]:
    return {memory.content for memory in await pet.memories.list(user=user)}


REMEMBERED = [[function_call("remember", NOTED["memories"][0], call_id="one")], "Noted."]


async def test_an_answer_to_it_is_nobody_elses_and_what_they_say_themselves_is_theirs(
    open_pet: OpenPet,
) -> None:
    pet = await open_pet(given=AnsweringModel(NOTED, NOTED, *REMEMBERED, NOTED), consolidate="off")
    await say(pet, "I have a peanut allergy", "ana")
    for _ in range(2):
        await say(pet, "ok thanks, I will shop accordingly")
        assert await known(pet, "ben") == set()
    await say(pet, "careful, Ana has a peanut allergy!")
    assert await known(pet, "ben") == {FACT}
    assert (await pet.people.erase(user="ana")).verified
    assert await known(pet, "ben") == {FACT}
