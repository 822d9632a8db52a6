"""Taking over a conversation that was held elsewhere."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
from agents.testing import ScriptedModel, assistant_message

from agent.errors import BadInput
from agent.services.transfer.store_messages import MESSAGES_AT_ONCE
from tests.agent.conftest import OpenPet, Rows

THEN = datetime(2025, 5, 1, 10, tzinfo=UTC)


def line(at: int, **other: Any) -> dict[str, Any]:
    minute = THEN + timedelta(minutes=at)
    return {"id": f"m{at}", "author": "Ana", "text": f"line {at}", "sent_at": minute, **other}


async def test_messages_keep_their_order_authors_and_times(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    messages = [
        line(0),
        line(1, author="Bob", sent_at="2025-05-01T12:01:00+02:00"),
        line(2, author="ha\x00chi", role="assistant", text="Hello\x00 both \ud83d"),
    ]

    assert await pet.conversations.import_messages(messages, user="ana") == 3

    kept = rows("SELECT author, role, text, sent_at, user_id FROM messages ORDER BY seq")
    assert [(row["author"], row["role"], row["text"]) for row in kept] == [
        ("Ana", "user", "line 0"),
        ("Bob", "user", "line 1"),
        ("hachi", "assistant", "Hello both �"),
    ]
    assert kept[1]["sent_at"] == "2025-05-01 10:01:00.000000"
    assert {row["user_id"] for row in kept} == {"ana"}


async def test_importing_again_changes_nothing(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    own = str(uuid4())
    messages = [line(0), line(1, id=own), line(2, id=7)]

    assert await pet.conversations.import_messages(messages, user="ana") == 3
    assert await pet.conversations.import_messages(messages, user="ana") == 0, "none is new"

    ids = [row["id"] for row in rows("SELECT id FROM messages ORDER BY seq")]
    assert len(ids) == 3
    assert ids[1] == own, "a uuid stays"
    assert all(str(UUID(id)) == id for id in ids)

    await pet.conversations.import_messages([line(0)], user="bob")
    await pet.conversations.import_messages([line(0)], user="ana", place="acme/general")
    await pet.conversations.import_messages([line(0)], user="ana", conversation="letters")
    assert len(rows("SELECT DISTINCT id FROM messages")) == 6, "the same id elsewhere is another message"


async def test_messages_without_ids_are_imported_once(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    told = [line(0, id=None), line(0, id=None), line(0, id=None, text="more"), line(1, id=None, text="more")]

    for messages in (told, told, [*told, line(2, id=None)]):
        await pet.conversations.import_messages(messages, user="ana")
    elsewhere = line(1)["sent_at"].astimezone(timezone(timedelta(hours=2)))
    await pet.conversations.import_messages([line(1, id=None, text="more", sent_at=elsewhere)], user="ana")
    assert len(rows("SELECT DISTINCT id FROM messages")) == 5

    await pet.conversations.import_messages(told, user="bob")
    await pet.conversations.import_messages(told, user="ana", place="acme")
    assert len(rows("SELECT DISTINCT id FROM messages")) == 13


async def test_what_was_taken_over_is_the_history_of_the_next_turn(open_pet: OpenPet) -> None:
    model = ScriptedModel([[assistant_message("Hello again.")]])
    pet = await open_pet(given=model)
    await pet.conversations.import_messages([line(0), line(1, role="assistant", author="hachi")], user="ana")

    await pet.respond("hi", user="ana")

    *history, question = [(item["role"], item["content"]) for item in model.calls[0].input]
    assert history == [("user", "[Thu 01 May 2025 10:00 UTC] line 0"), ("assistant", "line 1")]
    assert question[1].endswith("\nana: hi")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"author": None}, "message 3 has no 'author'"),
    ({"text": None}, "message 3 has no 'text'"),
    ({"sent_at": None}, "message 3 has no 'sent_at'"),
    ({"sent_at": datetime(2025, 5, 1)}, "message 3: sent_at: .* needs a time zone"),  # noqa: DTZ001
    ({"sent_at": "yesterday"}, "message 3: sent_at: 'yesterday' is not an ISO 8601 time"),
    ({"sent_at": "0001-01-01T00:00:00+02:00"}, "message 3: sent_at: .* is not between the years"),
    ({"sent_at": 1746093600}, "message 3: sent_at: 1746093600 is not an ISO 8601 time"),
]


async def test_a_bad_entry_names_its_number_and_nothing_is_half_taken_over(
    open_pet: OpenPet, rows: Rows
) -> None:
    pet = await open_pet()
    for change, told in BAD:
        bad = {key: value for key, value in line(2, **change).items() if value is not None}
        with pytest.raises(BadInput, match=told):
            await pet.conversations.import_messages([line(0), line(1), bad, line(3)], user="ana")
    assert rows("SELECT * FROM messages") == []


async def test_many_are_written_in_batches_that_are_told_of(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    told: list[int] = []

    count = await pet.conversations.import_messages(
        [line(at) for at in range(MESSAGES_AT_ONCE + 3)], user="ana", progress=told.append
    )

    assert count == MESSAGES_AT_ONCE + 3
    assert sum(told) == MESSAGES_AT_ONCE + 3, "as they are stored"
    assert rows("SELECT count(*) AS n FROM messages") == [{"n": MESSAGES_AT_ONCE + 3}]


async def test_a_post_is_deleted_with_its_reply_unless_a_newer_one_stands_in_it(
    open_pet: OpenPet, hachi_model: Any
) -> None:
    pet, deleted = await open_pet(hachi_model), list[str]()

    async def delete(post: str) -> None:
        deleted.append(post)

    for edited in ("and milk", "and oat milk"):
        reply = await pet.respond(edited, user="p:ana", origins=["p:1"])
        if sent := await pet.conversations.sent("p:2"):
            assert sent.message.text == "and milk"
        await pet.conversations.posted(str(reply.message_id), ["p:2", "p:3"][: 1 + (edited == "and milk")])
        if edited == "and milk":
            await pet.conversations.forget_sent("p:1")
    await pet.conversations.delete_forgotten("p:", delete)
    assert deleted == ["p:3"]
