"""Reading what is imported."""

import json
import re
from typing import Any

import pytest

from agent.errors import BadInput
from agent.services.transfer.read_import import ImportReceipt, parse_import
from hachi.testing import AnsweringModel
from tests.agent.conftest import OpenPet

MEMORY = {"content": "Lea swims", "created_at": "2026-01-10T09:30:00Z"}
EXPORT = {"format": "hachi-export", "version": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "no export of hachi, ChatGPT, Claude or mem0"),
        ({"memories": []}, "no export of hachi, ChatGPT, Claude or mem0"),
        (EXPORT | {"version": 2}, r"newer hachi \(version 2\)"),
        (EXPORT | {"memories": {}}, "must be lists"),
        ([{"author": "lea"}, "hello"], "message 1 cannot be read: it has no 'sent_at'; nothing was imported"),
    ],
)
def test_other_shapes_are_refused(given: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_import(given, user="lea")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"content": "x"}, "it has no 'created_at'"),
        ("hello", "TypeError"),
        (MEMORY | {"created_at": "2026-01-10T09:30:00"}, "needs a time zone"),
        (MEMORY | {"content": 7}, "content: 7 is not text"),
        (MEMORY | {"type": "rumour"}, "'rumour' is not one of 'fact', 'preference', 'insight'"),
        (MEMORY | {"expires_at": 7}, "expires_at: 7 is not an ISO 8601 time"),
        (MEMORY | {"expires_at": MEMORY["created_at"]}, "expires_at: it is not after created_at"),
        (MEMORY | {"created_at": "0001-01-01T00:00:00+02:00"}, "not between the years 1000 and 9000"),
    ],
)
def test_a_memory_that_cannot_be_read_is_named_and_the_others_come_in(entry: Any, message: str) -> None:
    parsed = parse_import(EXPORT | {"memories": [entry, MEMORY]}, user="lea")
    assert [draft.content for draft, _ in parsed.memories] == ["Lea swims"]
    [line] = parsed.unreadable
    assert re.match(f"memory 1 cannot be read: .*{message}", line)


def test_a_message_that_cannot_be_stored_is_named_and_the_others_come_in() -> None:
    sent = {"author": "lea", "text": "I swim", "sent_at": "2026-01-10T09:30:00Z"}
    odd = [7, {"author": "lea"}, sent | {"sent_at": "today"}, sent | {"text": "word " * 2_000_000}]
    for given in ([sent, *odd, sent], EXPORT | {"messages": [sent, *odd, sent]}):
        parsed = parse_import(given, user="lea")
        assert parsed.messages == [sent, sent]
        assert [line.split(" cannot")[0] for line in parsed.unreadable] == [
            f"message {n}" for n in (2, 3, 4, 5)
        ]
        assert "it has 10,000,000 characters, and a message may have 100,000" in parsed.unreadable[3]


async def test_an_import_that_is_begun_again_asks_no_model_about_what_is_there(open_pet: OpenPet) -> None:
    model = AnsweringModel(then={"rulings": []})
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    likes = [{"memory": f"Ana likes {what}", "created_at": MEMORY["created_at"]} for what in ("tea", "jazz")]
    done: list[int] = []
    for told, new, calls in ((likes[:1], 1, 0), (likes, 1, 1), (likes, 0, 1)):
        parsed = parse_import(json.loads(json.dumps(told)), user="ana")
        stored = await pet.conversations.import_(parsed, user="ana", progress=done.append)
        assert (stored, len(model.asked)) == (ImportReceipt(0, new), calls)
    assert sum(done) == 5


async def test_an_import_brings_nothing_back_that_was_forgotten(
    open_pet: OpenPet, clock: Any, rows: Any
) -> None:
    pet = await open_pet()
    for text in ("my bank PIN is 7310199999", "I row on Sundays"):
        await pet.respond(text, user="ann", settle=True)
    whole = await pet.conversations.export(user="ann")
    plain = [{"author": "ann", "text": "my PUK is 7310199999", "sent_at": clock()}]
    assert await pet.conversations.import_messages(plain, user="ann") == 1
    for message in await pet.conversations.messages(user="ann"):
        if "7310199999" in message.text and message.role == "user":
            await pet.conversations.forget(message.id, user="ann")
    for days in (0, 1):  # before and after it is deleted for good
        clock.advance(days=days)
        await pet.admin.purge()
        assert await pet.conversations.import_messages(plain, user="ann") == 0
        again = await pet.conversations.import_(parse_import(whole, user="ann"), user="ann")
        assert (again.messages, again.memories) == (0, 0)
        assert "7310199999" not in str(await pet.conversations.export(user="ann"))
    await pet.people.erase(user="ann")
    assert rows("SELECT import_key FROM users") == []
    again = await pet.conversations.import_(parse_import(whole, user="ann"), user="ann")
    assert (again.messages, again.memories) == (4, 2), "somebody who is erased is new"
