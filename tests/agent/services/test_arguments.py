"""What a caller passes is checked before anything is stored, whoever calls."""

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.errors import BadInput

OpenPet = Callable[..., Awaitable[Any]]

NAIVE = datetime.fromisoformat("2026-01-10")

WRONG = [
    ({"content": " \n"}, "content: it is empty; write the fact as a sentence"),
    ({"content": None}, "content: None is no text"),
    ({"content": "x" * 2001}, "content: longer than 2000 characters"),
    ({"type": "foo"}, "type: 'foo' is not one of 'fact', 'preference', 'insight'"),
    ({"type": ["fact"]}, "type: ['fact'] is not one of"),
    ({"importance": 7}, "importance: 7 is no number from 0 to 1"),
    ({"importance": math.nan}, "importance: nan is no number"),
    ({"importance": True}, "importance: True is no number"),
    ({"importance": "0.5"}, "importance: '0.5' is no number"),
    ({"subjects": "sport"}, "subjects: 'sport' is no list of texts, such as ['sport']"),
    ({"subjects": [7]}, "subjects: [7] is no list of texts"),
    ({"subjects": None}, "subjects: None is no list of texts"),
    ({"ttl": "bananas"}, "ttl: 'bananas' is no length of time such as 1h, 7d, 2w or never"),
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


async def test_tags_of_a_search_are_a_list_too(open_pet: OpenPet) -> None:
    pet = await open_pet()
    with pytest.raises(BadInput, match="subjects: 'sport' is no list of texts"):
        await pet.search_memories("swimming", user="ana", subjects="sport")
