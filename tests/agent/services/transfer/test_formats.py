"""Exports of other programs are taken in: their conversations in order and with their times, once."""

import json
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from agent.errors import BadInput
from agent.services.transfer.formats import read_json
from agent.services.transfer.read_import import parse_import
from tests.agent.conftest import OpenPet


def node(id: str, parent: str | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    message = {"author": {"role": role}, "content": {"content_type": "text", "parts": list(parts)}} | more
    return {"id": id, "parent": parent, "message": message}


CHATGPT = [
    {
        "title": "The boat",
        "conversation_id": "c1",
        "create_time": 1_700_000_000.0,
        "current_node": "e",
        "mapping": {
            "root": {"id": "root", "parent": None, "message": None},
            "a": node("a", "root", "system", "You are helpful."),
            "b": node(
                "b", "a", "user", "My boat is called Pollux.", {"asset": "x"}, create_time=1_700_000_100
            ),
            "old": node("old", "b", "assistant", "A branch that was left.", create_time=1_700_000_150),
            "c": node("c", "b", "assistant", "search()", recipient="browser"),
            "d": node("d", "c", "assistant", "A twin's name!", create_time=1_700_000_200),
            "e": node("e", "d", "user", "   ", metadata={}),
            "hidden": node(
                "hidden", "e", "user", "x", metadata={"is_visually_hidden_from_conversation": True}
            ),
        },
    }
]
CLAUDE = [
    {
        "uuid": "u1",
        "name": "The boat",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "My boat is called Pollux.",
                "created_at": "2023-11-14T22:15:00Z",
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "content": [{"type": "text", "text": "A twin's name!"}, {"type": "tool_use"}],
                "created_at": "2023-11-14T22:16:40Z",
            },
        ],
    }
]
LINES = "\n".join(
    json.dumps(line)
    for line in (
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "My boat is called Pollux."},
        {"role": "assistant", "content": [{"type": "text", "text": "A twin's name!"}]},
        {"role": "user", "content": "My boat is called Pollux."},
    )
)


@pytest.mark.parametrize("given", [CHATGPT, CLAUDE, LINES], ids=["chatgpt", "claude", "lines"])
async def test_the_conversations_of_others_are_taken_in_once(
    open_pet: OpenPet, clock: Any, given: Any
) -> None:
    pet = await open_pet()
    data = given if isinstance(given, str) else json.dumps(given)
    twice = 2 if given is LINES else 1

    new = []
    for _ in range(2):
        new.append(
            (await pet.conversations.import_(parse_import(read_json(data), user="ana"), user="ana")).messages
        )
        clock.advance(days=1)

    assert new == [1 + twice, 0]
    messages = await pet.conversations.messages(user="ana")
    said = [(one.author, one.text) for one in reversed(messages)]
    assert said[:2] == [("ana", "My boat is called Pollux."), ("assistant", "A twin's name!")]
    assert {one.conversation_id.split(":")[0] for one in messages} == {"chat"}
    if given is not LINES:
        assert f"{messages[-1].sent_at:%Y-%m-%d %H:%M}" == "2023-11-14 22:15"
    assert (await pet.search_memories("what is the boat called?", user="ana"))[0].content == said[0][1]


async def test_the_memories_of_mem0_are_facts_with_their_dates(open_pet: OpenPet) -> None:
    pet = await open_pet()
    entries = [
        {"id": "1", "memory": "Ana rows", "created_at": "2024-05-01T10:00:00-07:00", "categories": ["sport"]}
    ]
    for given in ({"results": entries}, entries, {"memories": entries}):
        await pet.conversations.import_(parse_import(given, user="ana"), user="ana")
    [fact] = await pet.memories.list(user="ana")
    assert (fact.content, fact.subjects) == ("Ana rows", ("sport",))
    assert f"{fact.created_at:%Y-%m-%d %H:%M}" == "2024-05-01 17:00"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            [{"mapping": {"a": 7}, "id": "i", "current_node": "x", "title": "t"}],
            "a message of entry 1 't' cannot be read",
        ),
        ([{"memory": "Ana rows"}], "memory 1 cannot be read: created_at: None is not an ISO 8601 time"),
    ],
)
def test_what_cannot_be_read_is_refused_whole(given: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        parse_import(given, user="ana")


ID = "5c8a2f0e-0000-4000-8000-000000000000"
SAID = {"id": ID, "author": "ana", "text": "I row", "sent_at": "2024-05-01T10:00:00Z", "user": "ana"}
FACT = {"id": ID, "content": "Ana rows", "created_at": SAID["sent_at"], "message_id": ID, "place": "acme"}
FACT |= {"user": "ana", "owners": ["user:ana"], "sources": [ID], "subjects": ["sport"]}
OURS = {"format": "hachi-export", "version": 1, "memories": [FACT], "messages": [SAID]}


def damaged(value: Any) -> Iterator[Any]:
    """The value with each part of it, one at a time, as something else."""
    yield from ({}, [None], 7, "half \ud83d")
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in [*parts]:
        for other in damaged(part):
            changed = value.copy()
            changed[name] = other
            yield changed


@pytest.mark.parametrize("given", [CHATGPT, CLAUDE, OURS, OURS | {"place": "acme"}])
async def test_a_file_with_odd_values_is_taken_in_as_far_as_it_can_be_read(
    open_pet: OpenPet, rows: Any, given: Any
) -> None:
    pet = await open_pet(trace_content="off")
    count = "SELECT count(*) AS stored FROM messages"
    for file in damaged(given):
        stored, refused = rows(count), ""
        try:
            await pet.conversations.import_(parse_import(file, user="ana"), user="ana", for_others=True)
        except BadInput as error:
            refused = str(error)
        assert len(refused) < 1000
        assert not refused or rows(count) == stored, file
    json.dumps(await pet.conversations.export(user="ana"), ensure_ascii=False).encode()


def texts(given: Any) -> list[str]:
    return [message["text"] for message in parse_import(given, user="ana").messages]


def test_one_odd_conversation_or_node_leaves_the_others_and_is_named() -> None:
    [talk] = CHATGPT
    odd = talk | {"title": "Shells", "mapping": {"e": node("e", None, "user", None, "I collect shells")}}
    broken = talk | {"title": "Broken", "mapping": None}
    lost_link = talk | {"mapping": talk["mapping"] | {"c": 7}, "title": "Link"}  # type: ignore[dict-item]
    parsed = parse_import([odd, broken, None, talk, lost_link], user="ana")
    assert [message["text"] for message in parsed.messages][:3] == ["I collect shells", *texts(talk)]
    assert "My boat is called Pollux." in texts(lost_link)
    assert [line.split(":")[0] for line in parsed.unreadable] == [
        "a message of entry 1 'Shells' cannot be read",
        "entry 2 'Broken' cannot be read",
        "entry 3 cannot be read",
        "a message of entry 5 'Link' cannot be read",
    ]


def test_the_last_branch_is_taken_whether_or_not_the_export_names_its_end() -> None:
    [talk] = CHATGPT
    unnamed = {name: value for name, value in talk.items() if name != "current_node"}
    assert texts(unnamed) == texts(talk)

    def sent(id: str, parent: str, text: str, minute: int) -> dict[str, Any]:
        at = f"2025-03-01T10:{minute:02}:00Z"
        return {"uuid": id, "parent_message_uuid": parent, "sender": "human", "text": text, "created_at": at}

    first = "00000000-0000-4000-8000-000000000000"
    asked = [sent("a", first, "I live in Vienna", 0), sent("b", "a", "And I row", 1)]
    branches = {"uuid": "u", "chat_messages": [sent("c", first, "I live in Linz", 2), *asked]}
    assert texts(branches) == ["I live in Linz"]
    assert texts(branches | {"current_leaf_message_uuid": "b"}) == ["I live in Vienna", "And I row"]


def test_of_a_message_of_claude_its_attachments_are_read_and_no_placeholder() -> None:
    at = "2025-03-01T10:00:00Z"
    attached = {"file_name": "club.txt", "extracted_content": "We row on Tuesdays"}
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "A club!"}]
    said = [
        {
            "uuid": "a",
            "sender": "human",
            "text": "",
            "content": [],
            "attachments": [attached],
            "created_at": at,
        },
        {
            "uuid": "b",
            "sender": "assistant",
            "text": "(not shown) A club!",
            "content": parts,
            "created_at": at,
        },
    ]
    assert texts({"uuid": "u", "chat_messages": said}) == ["club.txt:\nWe row on Tuesdays", "A club!"]


def archive(files: dict[str, str]) -> bytes:
    with ZipFile(packed := BytesIO(), "w", ZIP_DEFLATED) as written:
        for name, text in files.items():
            written.writestr(name, text)
    return packed.getvalue()


def test_an_archive_is_read_as_it_was_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"x/conversations-001.json": json.dumps(CLAUDE), "x/conversations-000.json": json.dumps(CHATGPT)}
    packed = archive({"x/user.json": "{}", "x/chat.html": "<p>", **parts})
    assert texts(read_json(packed)) == [*texts(CHATGPT), *texts(CLAUDE)]
    with pytest.raises(BadInput, match=r"this archive has no conversations\.json"):
        read_json(archive({"user.json": "{}"}))
    with pytest.raises(BadInput, match="cannot be unpacked"):
        read_json(packed[:100])
    monkeypatch.setattr("agent.services.transfer.formats.LARGEST_ARCHIVE", 100)
    with pytest.raises(BadInput, match="more than 100 bytes; unpack it"):
        read_json(packed)


async def test_a_memory_of_mem0_ends_with_the_day_that_it_names(open_pet: OpenPet, clock: Any) -> None:
    pet = await open_pet()
    ends = f"{clock() + timedelta(days=3):%Y-%m-%d}"
    guest = {"memory": "Ana has a guest", "created_at": clock().isoformat(), "expiration_date": ends}
    await pet.conversations.import_(parse_import([guest], user="ana"), user="ana")
    [fact] = await pet.memories.list(user="ana")
    assert fact.expires_at is not None
    assert f"{fact.expires_at:%Y-%m-%d %H:%M}" == f"{ends} 23:59"


def test_what_is_no_json_is_refused() -> None:
    for data in ('{"role": "user"}\nnonsense', b"\xff\xfe\xfd", "[" * 100_000):
        with pytest.raises(BadInput, match=r"^this is no JSON: "):
            read_json(data)
