"""A place's export brings back who said what."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.errors import BadInput
from agent.services.transfer.imports import parse_import
from hachi import Companion
from memory.audience import Place

OpenPet = Callable[..., Awaitable[Companion]]
Rows = Callable[..., list[dict[str, Any]]]
ACME = "acme/general"


async def talk(pet: Companion) -> dict[str, Any]:
    """Ana and Ben talk in a place; both tell one fact. Returns the export of the place."""
    await pet.respond("I broke my shoulder", user="ana", author="Ana A.", place=ACME, settle=True)
    await pet.respond("my boat is called Gull", user="ben", author="Ben", place=ACME, settle=True)
    await pet.respond("good morning", user="ben", place=ACME, conversation="thread", settle=True)
    for user in ("ana", "ben"):
        await pet.remember("The meeting room is green", user=user, place=ACME)
    await pet.remember("The stairs are steep", user="ana", place=ACME)
    await pet.remember("Rex is also called Tiger", user="ana", place=ACME)
    await pet.remember("The bakery is closed", user="ana", place="acme")
    exported: dict[str, Any] = await pet.conversations.export_place(ACME, user="ana")
    return exported


async def bring(
    pet: Companion, given: Any, user: str = "operator", for_others: bool = True, **to: Any
) -> int:
    parsed = parse_import(json.loads(json.dumps(given)), user=user)
    stored = await pet.conversations.import_(parsed, user=user, for_others=for_others, **to)
    return stored.memories


async def state(pet: Companion) -> dict[str, Any]:
    """What the place and each of the two may read, and what the operator may."""
    whole = await pet.conversations.export_place(ACME, user="ana")
    found = {
        user: {m.content for m in await pet.memories.list(user=user)} for user in ("ana", "ben", "operator")
    }
    return {"place": (whole["memories"], whole["messages"]), **found}


@pytest.fixture
async def both(open_pet: OpenPet, tmp_path: Path) -> tuple[Companion, Companion, dict[str, Any]]:
    """A companion, an empty one, and the export of a place of the first."""
    pet = await open_pet()
    exported = await talk(pet)
    return pet, await open_pet(home=tmp_path / "other"), exported


async def test_messages_and_memories_come_back_to_whose_they_were(
    both: tuple[Companion, Companion, dict[str, Any]],
) -> None:
    pet, other, exported = both
    assert "The bakery is closed" not in json.dumps(exported), "it is known around the place, not of it"

    new = await bring(other, exported)

    before, after = await state(pet), await state(other)
    before["ana"] -= {"The bakery is closed"}
    assert new == len(exported["memories"]) > 3
    assert after == before
    assert after["operator"] == set()
    assert {m["user"] for m in exported["messages"]} == {"ana", "ben"}
    assert await bring(other, exported) == 0
    assert await state(other) == after, "a second import changes nothing"
    found = await other.search_memories("what is Tiger called?", user="ben", place=ACME)
    assert "Rex is also called Tiger" in [hit.content for hit in found]

    assert (await other.people.erase(user="ana")).verified
    left = await other.conversations.export_place(ACME, user="ben")
    assert {message["user"] for message in left["messages"]} == {"ben"}
    assert {memory["user"] for memory in left["memories"]} == {"ben"}
    contents = {memory["content"] for memory in left["memories"]}
    assert "The meeting room is green" in contents, "the other one said it too"
    assert "The stairs are steep" not in contents


async def test_what_a_person_had_replaced_for_themselves_does_not_come_back(
    open_pet: OpenPet, tmp_path: Path
) -> None:
    pet, other = await open_pet(), await open_pet(home=tmp_path / "other")
    old = await pet.remember("Ana lives in Paris", user="ana", place=ACME)
    pet.clock.advance(hours=1)  # type: ignore[attr-defined]
    await pet.remember("Ana lives in Lyon", user="ana", replaces=old.id)
    exported = await pet.conversations.export_place(ACME, user="ben")

    await bring(other, exported)

    assert await other.memories.list(user="ana") == []
    assert [m.content for m in await other.memories.list(user="ben", place=ACME)] == ["Ana lives in Paris"]
    await bring(pet, exported)
    assert [m.content for m in await pet.memories.list(user="ana")] == ["Ana lives in Lyon"]


async def test_a_fact_that_the_place_knows_already_gains_an_owner(
    both: tuple[Companion, Companion, dict[str, Any]], rows: Rows
) -> None:
    _, other, exported = both
    await other.remember("the stairs are steep!", user="ben", place=ACME)

    await bring(other, exported)

    [stairs] = [m for m in await other.memories.list(user="ana", place=ACME) if "stairs" in m.content]
    assert stairs.owners == {f"place:{ACME}", "user:ana", "user:ben"}


MESSAGE = {"author": "Lea", "text": "hello", "sent_at": "2026-01-10T09:30:00Z"}
MEMORY = {"content": "Lea swims", "created_at": "2026-01-10T09:30:00Z"}
OF_PLACE = {"format": "hachi-export", "version": 1, "place": ACME}


def test_an_export_that_does_not_say_who_said_what_is_refused() -> None:
    for given in ({"messages": [MESSAGE]}, {"memories": [MEMORY]}):
        with pytest.raises(BadInput, match="does not say who said what; export the place again"):
            parse_import(OF_PLACE | given, user="operator")


TOLD = {"id": "0273fae5-5e0d-4a43-8a5b-0b52b3a4c1b0", "user": "eve", "sources": []}


@pytest.mark.parametrize(
    "forged",
    [
        {"memories": [MEMORY | TOLD | {"owners": ["user:bob"]}]},
        {"memories": [MEMORY | TOLD | {"owners": [], "user": "bob"}]},
        {"messages": [MESSAGE | {"user": "bob"}]},
    ],
)
async def test_an_import_speaks_for_nobody_else_unless_that_was_allowed(
    open_pet: OpenPet, rows: Rows, forged: dict[str, Any]
) -> None:
    pet = await open_pet()
    with pytest.raises(BadInput, match="it speaks for bob, and not for eve alone; nothing was imported"):
        await bring(pet, OF_PLACE | forged, user="eve", for_others=False)
    assert rows("SELECT * FROM messages") == rows("SELECT * FROM memories") == []
    own = OF_PLACE | {
        "memories": [MEMORY | TOLD | {"owners": ["user:eve", f"place:{ACME}"]}],
        "messages": [MESSAGE | {"user": "eve"}],
    }
    assert await bring(pet, own, user="eve", for_others=False) == 1


async def test_an_export_of_a_place_stays_in_that_place(open_pet: OpenPet) -> None:
    parsed = parse_import(OF_PLACE, user="operator")
    pet = await open_pet()
    with pytest.raises(
        BadInput, match=r"an export of acme/general, and cannot become beach; leave out --place"
    ):
        await pet.conversations.import_(parsed, user="operator", place=Place(("beach",)))


async def test_a_transcript_of_a_place_needs_to_say_whose_each_message_is(
    open_pet: OpenPet, rows: Rows
) -> None:
    pet = await open_pet()
    own, reply = MESSAGE | {"author": "ana"}, MESSAGE | {"author": "hachi", "role": "assistant"}
    with pytest.raises(BadInput, match="message 3 does not say whose it is; give it a `user`"):
        await bring(pet, [own, reply, MESSAGE], user="ana", place=ACME)
    assert rows("SELECT * FROM messages") == []
    await bring(pet, [own, reply, MESSAGE | {"user": "lea"}], user="ana", place=ACME)
    assert [row["user_id"] for row in rows("SELECT user_id FROM messages ORDER BY seq")] == [
        "ana",
        "ana",
        "lea",
    ]
