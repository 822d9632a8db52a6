"""The conversations that somebody may read, each with what its readers may know of it."""

from memory.audience import Audience, Place
from memory.sql import hidden as entries
from memory.sql.messages.conversations import conversations_of
from tests.memory.conftest import Stack, on_both

ANNA = Audience.of("anna")


async def listed(
    stack: Stack, audience: Audience = ANNA, limit: int = 50, **of: object
) -> list[list[object]]:
    found = await conversations_of(stack.database, audience, stack.clock.now, limit, **of)  # type: ignore[arg-type]
    return [[one.id, one.place, one.title, one.messages, one.summary] for one in found]


@on_both
async def test_nobody_reads_of_a_conversation_what_was_not_said_to_them(stack: Stack) -> None:
    for user in ("anna", "ben"):
        await stack.receive(f"{user}'s secret", user, conversation="chat:one")
        await stack.receive("Noted.", user, role="assistant", conversation="chat:one")
        await stack.summarise(f"{user} told a secret", user, conversation="chat:one")
        await stack.receive(f"{user} is here", user, "acme/general")
        await stack.receive(f"Hello {user}", user, "acme/general", role="assistant")
    await stack.summarise("Anna and Ben came", place="acme/general")
    general = Audience.of("anna", Place.parse("acme/general/thread"))

    assert await listed(stack) == [
        ["place:acme/general", "acme/general", "anna is here", 1, ""],
        ["chat:one", "dm", "anna's secret", 2, "anna told a secret"],
    ]
    assert await listed(stack, general) == [
        ["place:acme/general", "acme/general", "anna is here", 4, "Anna and Ben came"]
    ]
    for nobodys in (Audience.of("cleo"), Audience.of(None), Audience.of("anna", Place.parse("acme"))):
        assert await listed(stack, nobodys) == []
    for other in ("dm:ben", ""):
        assert await listed(stack, id=other) == await stack.transcript.page(ANNA, 9, conversation=other) == []
    assert await listed(stack, Audience.of("ben"), id="chat:one") == [
        ["chat:one", "dm", "ben's secret", 2, "ben told a secret"]
    ]


@on_both
async def test_conversations_come_by_their_newest_message_in_parts(stack: Stack) -> None:
    for text in ("one", "two", "three", "one", "two"):
        await stack.receive(text, conversation=f"chat:{text}")
    first, *_ = found = await conversations_of(stack.database, ANNA, stack.clock.now, 1)
    assert [one.id for one in found] == ["chat:two"]
    rest = await conversations_of(stack.database, ANNA, stack.clock.now, 5, before=first.newest)
    assert [(one.id, one.messages) for one in rest] == [("chat:one", 2), ("chat:three", 1)]


async def test_what_is_hidden_is_in_no_conversation(stack: Stack) -> None:
    first = await stack.receive("my PIN is 4711", conversation="chat:one")
    await stack.receive("hello", conversation="chat:one")
    alone = await stack.receive("4711", conversation="chat:two")
    async with stack.database.write() as connection:
        forgetting = await entries.begin(connection, "anna", "forgotten", stack.clock.now, None)
        await entries.hide(connection, forgetting, {"message": [first, alone]})
    assert await listed(stack) == [["chat:one", "dm", "hello", 1, ""]]


async def test_a_conversation_is_read_in_slices(stack: Stack) -> None:
    for number in range(6):
        await stack.receive(str(number), conversation=f"chat:{number % 2}")
    await stack.receive("ben's", "ben", conversation="chat:0")
    page = await stack.transcript.page(ANNA, 2, conversation="chat:0")
    assert [message.text for message in page] == ["4", "2"]
    page = await stack.transcript.page(ANNA, 2, page[-1].id, conversation="chat:0")
    assert [message.text for message in page] == ["0"]
