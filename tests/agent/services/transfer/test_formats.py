"""Exports of other programs are taken in: their conversations in order and with their times, once."""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from agent.errors import BadInput
from agent.services.transfer.formats import read_json
from agent.services.transfer.imports import parse_import
from hachi import Companion

OpenPet = Callable[..., Awaitable[Companion]]


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
        ([{"mapping": {"a": {}}, "current_node": "x", "title": "t"}], "entry 1 cannot be read"),
        ([CLAUDE[0], {"chat_messages": [{}], "uuid": "u"}], "entry 2 cannot be read"),
        ([{"memory": "Ana rows"}], "memory 1 cannot be read: created_at: None is no ISO 8601 time"),
        ({"what": "ever"}, "no export of hachi, ChatGPT, Claude or mem0"),
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
async def test_a_file_with_odd_values_is_taken_in_or_refused_whole(
    open_pet: OpenPet, rows: Any, given: Any
) -> None:
    pet = await open_pet(traces=False)
    for file in damaged(given):
        stored, refused = len(rows("SELECT id FROM messages")), ""
        try:
            await pet.conversations.import_(parse_import(file, user="ana"), user="ana", for_others=True)
        except BadInput as error:
            refused = str(error)
        assert len(refused) < 1000
        assert not refused or len(rows("SELECT id FROM messages")) == stored, file
    json.dumps(await pet.conversations.export(user="ana"), ensure_ascii=False).encode()


def test_what_is_no_json_is_refused() -> None:
    for data in ('{"role": "user"}\nnonsense', b"\xff\xfe\xfd", "[" * 100_000):
        with pytest.raises(BadInput, match=r"^this is no JSON: "):
            read_json(data)
