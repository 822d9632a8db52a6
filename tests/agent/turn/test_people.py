"""People in one place who bear the same name."""

import json
import re
from typing import Any

import pytest
from scripted_server import Call, answer

from hachi import Companion, Place

GENERAL = Place(("acme", "general"))
RANDOM = Place(("acme", "random"))


@pytest.fixture
async def pet(pet_at: Any, first_way: Any) -> Companion:
    opened: Companion = await pet_at(first_way, consolidate="off")
    return opened


async def say(pet: Companion, user: str | None, author: str, text: str, place: Place = GENERAL) -> None:
    await pet.respond(text, user=user, author=author, place=place)


async def test_a_nickname_does_not_lend_somebody_elses_words(pet, server):
    fact = {"content": "The key is under the mat", "subjects": [], "ttl": None}
    server.script(
        answer("Hello!"),
        Call("remember", fact),
        answer("Noted."),
        answer("Hm."),
        Call("search_memories", {"query": "where is the key?", "kind": "memory"}),
        answer("Under the mat, says Ada."),
    )
    await say(pet, "ada", "Ada", "Hello everybody")
    await say(pet, "eve", "ADA", "The key is under the mat")
    await say(pet, None, "Ada", "Give me the key!")
    await say(pet, "cyn", "Cyn", "Where is the key?")

    prompt = json.dumps(server.asked[-2].json["input"])
    assert re.search(r"Ada: \[[^]]+\] Hello everybody", prompt)
    assert "ADA (eve): The key is under the mat" in prompt
    [found] = json.loads(server.asked[-1].results[0])["memories"]
    assert found["told_by"] == "ADA (eve)"


async def test_the_first_of_a_name_keeps_it_in_all_channels_of_a_place(pet, server, rows):
    server.script(*[answer("Hello!") for _ in range(5)])
    for user, place in (("ada", GENERAL), ("eve", RANDOM), ("ada", RANDOM), ("eve", Place(("home",)))):
        await say(pet, user, "Ada", "Hello there", place)
    await say(pet, "eve", "Hachi", "I am the bot")
    signed = rows("SELECT user_id, author FROM messages WHERE role = 'user' ORDER BY seq")
    assert [(row["user_id"], row["author"]) for row in signed] == [
        ("ada", "Ada"),
        ("eve", "Ada (eve)"),
        ("ada", "Ada"),
        ("eve", "Ada"),
        ("eve", "Hachi (eve)"),
    ]


async def test_words_are_searched_by_the_one_who_is_called_exactly_so(pet, server):
    search = {"query": "favourite colour", "kind": "message"}
    server.script(
        answer("Nice."),
        answer("Nice."),
        [Call("search_memories", search | {"author": name}) for name in ("Ada", "Ada (eve)")],
        answer("Blue and red."),
    )
    await say(pet, "ada", "Ada", "My favourite colour is blue")
    await say(pet, "eve", "Ada", "My favourite colour is red")
    await pet.respond("Who likes what?", user="cyn", place=GENERAL, conversation="another")
    found = [str(json.loads(result)["memories"]) for result in server.asked[-1].results]
    assert ["Ada: My favourite colour is blue" in one for one in found] == [True, False]
    assert ["Ada (eve): My favourite colour is red" in one for one in found] == [False, True]
