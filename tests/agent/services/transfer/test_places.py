"""A place's export brings back who said what."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.errors import BadInput
from agent.services.transfer.read_import import parse_import
from hachi import Companion
from memory.audience import Place
from tests.agent.conftest import OpenPet, Rows

ACME = "acme/general"


async def bring(
    pet: Companion, given: Any, user: str = "operator", for_others: bool = True, **to: Any
) -> int:
    parsed = parse_import(json.loads(json.dumps(given)), user=user)
    stored = await pet.conversations.import_(parsed, user=user, for_others=for_others, **to)
    return stored.messages


async def test_messages_come_back_to_whose_they_were(open_pet: OpenPet, tmp_path: Path) -> None:
    pet, other = await open_pet(), await open_pet(home=tmp_path / "other")
    await pet.respond("I broke my shoulder", user="ana", author="Ana A.", place=ACME, settle=True)
    await pet.respond("my boat is called Gull", user="ben", author="Ben", place=ACME, settle=True)
    exported = await pet.conversations.export_place(ACME, user="ana")

    assert await bring(other, exported) == len(exported["messages"])

    again = await other.conversations.export_place(ACME, user="ana")
    assert again["messages"] == exported["messages"]
    assert await bring(other, exported) == 0, "a second import changes nothing"
    assert (await other.people.erase(user="ana")).verified
    left = await other.conversations.export_place(ACME, user="ben")
    assert {message["user"] for message in left["messages"]} == {"ben"}


MESSAGE = {"author": "Lea", "text": "hello", "sent_at": "2026-01-10T09:30:00Z"}
MEMORY = {"content": "Lea swims", "created_at": "2026-01-10T09:30:00Z"}
OF_PLACE = {"format": "hachi-export", "version": 1, "place": ACME}


def test_an_export_that_does_not_say_who_said_what_is_refused() -> None:
    with pytest.raises(BadInput, match="does not say who said what; export the place again"):
        parse_import(OF_PLACE | {"messages": [MESSAGE]}, user="operator")
    parsed = parse_import(OF_PLACE | {"memories": [MEMORY]}, user="operator")
    assert (parsed.memories, parsed.ignored) == ([], {"memories": 1}), "its messages tell them"


async def test_an_import_speaks_for_nobody_else_unless_that_was_allowed(
    open_pet: OpenPet, rows: Rows
) -> None:
    pet = await open_pet()
    with pytest.raises(BadInput, match="it speaks for bob, and not for eve alone; nothing was imported"):
        await bring(pet, OF_PLACE | {"messages": [MESSAGE | {"user": "bob"}]}, user="eve", for_others=False)
    assert rows("SELECT * FROM messages") == []
    own = OF_PLACE | {"messages": [MESSAGE | {"user": "eve"}]}
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
