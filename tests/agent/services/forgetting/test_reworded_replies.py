"""Replies that tell in other words what was forgotten stay, and the receipt lists those that were written
from it."""

from typing import Any

import pytest
from agents.testing import function_call

from agent.types import Reply
from hachi import Companion
from hachi.testing import AnsweringModel
from tests.agent.conftest import OpenPet, Rows

ACME: dict[str, Any] = {"place": "acme", "settle": True}
SEARCH = [function_call("search_memories", {"query": "Ana"}, call_id="one")]
PREGNANT = "Ana is pregnant"
NOTED = {"message": "Noted.", "memories": [{"content": PREGNANT, "subjects": ["ana"]}]}


async def told(open_pet: OpenPet, *answers: Any, **settings: Any) -> Companion:
    """A companion to whom Ana has told the fact in a channel; it gives these answers from then on."""
    pet = await open_pet(given=AnsweringModel(NOTED, *answers), consolidate="off", **settings)
    await pet.respond("I am pregnant", user="ana", author="Ana", **ACME)
    return pet


async def ask(pet: Companion, text: str, user: str = "ben") -> Reply:
    return await pet.respond(text, user=user, author=user.capitalize(), **ACME)


async def forget(pet: Companion, content: str = PREGNANT) -> Any:
    [memory] = [one for one in await pet.memories.list(user="ana") if one.content == content]
    return await pet.memories.forget(memory.id, user="ana")


def texts(rows: Rows) -> list[str]:
    hidden = "SELECT row_id FROM hidden WHERE kind = 'message'"
    query = f"SELECT text FROM messages WHERE role = 'assistant' AND id NOT IN ({hidden}) ORDER BY seq"
    return [row["text"] for row in rows(query)]


@pytest.mark.parametrize(
    ("history", "answers"), [(12, ["Ana is expecting a baby."]), (0, [SEARCH, "Ana is expecting a baby."])]
)
async def test_a_reply_that_tells_the_fact_in_other_words_stays_and_is_listed(
    open_pet: OpenPet, rows: Rows, history: int, answers: list[Any]
) -> None:
    pet = await told(open_pet, *answers, history_messages=history)
    await ask(pet, "Why does Ana drink no wine?")
    receipt = await forget(pet)
    assert texts(rows) == [answers[-1]]
    [kept] = rows("SELECT id FROM messages WHERE text = ?", answers[-1])
    assert (receipt.replies, receipt.kept) == (1, (kept["id"],))
    await pet.memories.undo_forget(str(receipt.undo_id), user="ana")
    assert texts(rows) == ["Noted.", answers[-1]]


async def test_a_reply_that_quotes_what_was_forgotten_goes_though_something_else_explains_its_words(
    open_pet: OpenPet, rows: Rows
) -> None:
    """The stand-in quotes both statements, of which the second has nearly all words of the first."""
    pet = await open_pet()
    third, fourth = "My mum's birthday is on March 3rd.", "Actually, my mum's birthday is on March 4th."
    for text in (third, fourth, "When is my mum's birthday?", "hello there", "What are my open tasks?"):
        await pet.respond(text, user="ana", settle=True)
    quoted = texts(rows)
    receipt = await forget(pet, third)
    assert third in quoted[2]
    left = [text for text in quoted[1:] if third not in text]
    assert texts(rows) == left
    assert (receipt.messages, receipt.replies) == (1, len(quoted) - len(left))
    for author in ("", "hachi"):
        found = await pet.search_memories("March 3rd", user="ana", limit=50, author=author)
        assert found
        assert not [hit for hit in found if "3rd" in hit.content]
    await pet.memories.undo_forget(str(receipt.undo_id), user="ana")
    assert texts(rows) == quoted
