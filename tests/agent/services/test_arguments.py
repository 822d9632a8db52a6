"""What a program passes is checked before anything is stored. That every surface says the same is tested in
`tests/agent/surfaces/test_refusals.py`."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.errors import BadInput

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
