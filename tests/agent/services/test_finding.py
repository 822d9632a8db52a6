"""Searching and listing: narrowed by time, author, kind and subjects, and page by page."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from hachi import BadInput, Companion
from tests.agent.conftest import OpenPet

FIRST = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
PLACE = "acme/boats"


@pytest.fixture
async def pet(open_pet: OpenPet) -> Companion:
    """Ana and Ben told six facts about boats, a day apart, and Ana said something too."""
    opened = await open_pet()
    for n, (user, type) in enumerate([("ana", "fact"), ("ben", "preference")] * 3):
        await opened.remember(
            f"{user.title()} rowed boat {n}",
            user=user,
            place=PLACE,
            author=user.title(),
            subjects=[f"boat{n}", user],
            type=type,  # type: ignore[typeddict-item]
            said_at=FIRST + timedelta(days=n),
        )
    said = {"author": "Ana", "text": "My boat leaks.", "sent_at": FIRST.isoformat(), "user": "ana"}
    await opened.conversations.import_messages([said], user="ana", place=PLACE)
    return opened


NARROWED: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [5, 4, 3, 2, 1, 0]),
    ({"since": FIRST + timedelta(days=4)}, [5, 4]),
    ({"since": "2026-03-02", "until": "2026-03-03"}, [2, 1]),
    ({"until": "2026-03-02T23:00:00+00:00"}, [0]),
    ({"author": "ben"}, [5, 3, 1]),
    ({"author": "Ana", "since": "2026-03-03"}, [4, 2]),
    ({"subjects": ["boat3", "boat0"]}, [3, 0]),
]


async def test_a_list_and_a_search_are_narrowed_alike(pet: Companion) -> None:
    for narrowed, boats in NARROWED:
        listed = await pet.memories.list(user="ana", place=PLACE, **narrowed)
        assert [memory.content[-1] for memory in listed] == [*map(str, boats)]
        found = await pet.search_memories(
            "rowed boat", user="ana", place=PLACE, kind="memory", limit=20, **narrowed
        )
        assert {hit.content[-1] for hit in found} == {*map(str, boats)}
    preferences = await pet.memories.list(user="ana", place=PLACE, kind="preference")
    assert [memory.content[-1] for memory in preferences] == ["5", "3", "1"]
    messages = await pet.search_memories("boat", user="ana", place=PLACE, kind="message")
    assert [hit.content for hit in messages] == ["My boat leaks."]
    await pet.people.set_context("timezone", "Europe/Paris", user="ana", place=PLACE)
    listed = await pet.memories.list(user="ana", place=PLACE, since="2026-03-07")
    assert [memory.content[-1] for memory in listed] == ["5"]  # half past midnight there


async def test_pages_follow_each_other_whatever_comes_between(pet: Companion) -> None:
    told, cursor = [], None
    for n in range(3):
        page = await pet.memories.list(user="ana", place=PLACE, limit=2, cursor=cursor)
        told += [memory.content[-1] for memory in page]
        cursor = page.next
        await pet.remember(f"Ana painted oar {n}", user="ana", place=PLACE)
    assert (told, cursor) == (["5", "4", "3", "2", "1", "0"], None)

    narrow = {"user": "ana", "place": PLACE, "limit": 1, "author": "ana", "until": "2026-03-06"}
    page = await pet.memories.list(**narrow)
    assert (await pet.memories.list(**narrow, cursor=page.next))[0].content == "Ana rowed boat 2"

    first = await pet.search_memories("rowed boat", user="ana", place=PLACE, kind="memory", limit=4)
    rest = await pet.search_memories(
        "rowed boat", user="ana", place=PLACE, kind="memory", limit=9, cursor=first.next
    )
    assert len({hit.id for hit in [*first, *rest]}) == len(first) + len(rest)
    assert {f"{n}" for n in range(6)} <= {hit.content[-1] for hit in [*first, *rest]}
    assert rest.next is None


async def test_a_cursor_that_is_none_is_refused(open_pet: OpenPet) -> None:
    pet = await open_pet()
    for cursor in ("x", "", "2026-03-01~x", "x~00000000-0000-0000-0000-000000000000", "-1"):
        for call in (pet.memories.list, partial(pet.search_memories, "x")):
            with pytest.raises(BadInput, match="is no `next` of a page"):
                await call(user="ana", cursor=cursor)
