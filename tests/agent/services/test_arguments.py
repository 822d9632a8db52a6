"""What a program passes is checked before anything is stored. That every surface says the same is tested in
`tests/agent/surfaces/test_refusals.py`."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.errors import BadInput, HachiError

OpenPet = Callable[..., Awaitable[Any]]

NAIVE = datetime.fromisoformat("2026-01-10")

WRONG = [
    ({"content": None}, "content: None is no text"),
    ({"type": ["fact"]}, "type: ['fact'] is not one of"),
    ({"importance": True}, "importance: True is no number"),
    ({"importance": "0.5"}, "importance: '0.5' is no number"),
    ({"subjects": [7]}, "subjects: [7] is no list of texts"),
    ({"subjects": None}, "subjects: None is no list of texts"),
    ({"ttl": 7}, "ttl: 7 is no length of time"),
    ({"said_at": NAIVE}, "said_at: '2026-01-10 00:00:00' needs a time zone"),
    ({"said_at": datetime(1, 1, 1, tzinfo=UTC)}, "said_at: '0001-01-01 00:00:00+00:00' is not between"),
    ({"said_at": "soon"}, "said_at: 'soon' is no ISO 8601 time"),
    ({"everybody": "no"}, "everybody: 'no' is neither True nor False"),
    ({"place": 7}, "place: 7 is no name of a place"),
]


@pytest.mark.parametrize(("given", "told"), WRONG, ids=[told for _, told in WRONG])
async def test_a_value_that_cannot_be_used_is_refused_and_named(
    open_pet: OpenPet, given: dict[str, Any], told: str
) -> None:
    pet = await open_pet()
    known = await pet.remember("Ana skis", user="ana")
    arguments = {"content": "Ana swims", "user": "ana"} | given

    for refused in (pet.remember(**arguments), pet.memories.update(known.id, **arguments)):
        with pytest.raises(BadInput) as raised:
            await refused
        assert str(raised.value).startswith(told)

    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana skis"]


async def test_a_fact_of_many_is_checked_like_one_before_any_is_stored(open_pet: OpenPet) -> None:
    pet = await open_pet()
    for wrong, told in (
        ({"content": "Ana swims", "colour": "red"}, "'colour': a memory has no such field"),
        ({"importance": 0.5}, "content: it is missing"),
    ):
        with pytest.raises(BadInput, match=told):
            await pet.memories.remember_many([{"content": "Ana skis"}, wrong], user="ana")
    with pytest.raises(BadInput, match="colour: a memory has no such field"):
        await pet.memories.update("abcd1234", "Ana skis", user="ana", colour="red")
    assert await pet.memories.list(user="ana") == []


ODD: list[Any] = [None, 7, [], {}, "half \ud83d", b"bytes", object(), NAIVE]
METHODS: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
    "get": lambda pet, odd: pet.memories.get(odd, user="ana"),
    "get, user": lambda pet, odd: pet.memories.get("abcd1234", user=odd),
    "forget": lambda pet, odd: pet.memories.forget(odd, user="ana"),
    "forget_confirmed": lambda pet, odd: pet.memories.forget_confirmed([odd], user="ana"),
    "remember_many": lambda pet, odd: pet.memories.remember_many([odd], user="ana"),
    "excerpts, kind": lambda pet, odd: pet.memories.excerpts("x", user="ana", kind=odd or 7),
    "search, author": lambda pet, odd: pet.search_memories("x", user="ana", author=odd),
    "message": lambda pet, odd: pet.conversations.message(odd, user="ana"),
    "import_messages": lambda pet, odd: pet.conversations.import_messages([odd], user="ana"),
    "update a task": lambda pet, odd: pet.tasks.update(odd, id=odd, user="ana"),
    "add a document": lambda pet, odd: pet.documents.add(odd, "x", user="ana"),
    "remove a document": lambda pet, odd: pet.documents.remove(odd, user="ana"),
    "alias": lambda pet, odd: pet.people.alias(odd, "Bea", user="ana"),
    "set_context": lambda pet, odd: pet.people.set_context(odd, "x", user="ana"),
    "prune_traces": lambda pet, odd: pet.admin.prune_traces(odd or 7),
    "respond": lambda pet, odd: pet.respond(odd if odd is not ODD[4] else 7, user="ana"),
    "respond, earlier": lambda pet, odd: pet.respond("x", user="ana", earlier=[odd]),
}


@pytest.mark.parametrize("method", METHODS)
async def test_no_lower_error_leaves_the_api_whatever_is_passed(open_pet: OpenPet, method: str) -> None:
    pet = await open_pet()
    for odd in ODD:
        with pytest.raises(HachiError) as raised:
            await METHODS[method](pet, odd)
        assert "\n" not in str(raised.value)
    assert await pet.memories.list(user="ana") == []
