"""Conversations and their summaries, stored, listed and searched."""

import asyncio
from datetime import timedelta

from memory.audience import GLOBAL, Audience, Place
from memory.sql import hidden as entries
from memory.sql.messages.summaries import ActiveConversation
from tests.memory.conftest import Stack, on_both

ANNA, BEN, NOBODY = Audience.of("anna"), Audience.of("ben"), Audience.of(None)
ACME = Place.parse("acme")


async def kept(stack: Stack, owner: str = "user:anna", conversation: str = "talk") -> ActiveConversation:
    found = await stack.conversations.of(conversation, owner, stack.clock.now)
    assert found is not None
    return found


async def test_a_summary_comes_back_as_it_was_kept_and_is_found(stack: Stack) -> None:
    summary = "アンナは五月までに船を青く塗ると決めた。⛵️"
    assert await stack.conversations.of("talk", "user:anna", stack.clock.now) is None
    assert await stack.store_summary(f"\n {summary} ", 0, 4)
    found = await kept(stack)
    assert found == ActiveConversation(found.id, "talk", "user:anna", None, summary, 4, stack.clock.now, 1)
    await stack.indexing.catch_up()
    assert await stack.found(summary) == {summary}


async def test_the_next_summary_takes_the_place_of_the_last(stack: Stack) -> None:
    await stack.store_summary("They paint the boat.", 0, 4)
    first = await kept(stack)
    stack.clock.advance(minutes=1)
    assert await stack.store_summary("They paint the boat blue.", 4, 6)
    second = await kept(stack)
    assert (second.id, second.summary, second.covered) == (first.id, "They paint the boat blue.", 6)
    assert second.updated_at == first.updated_at + timedelta(minutes=1)
    assert {kind for _, kind, _ in await stack.logged()} == {"summary"}
    stack.clock.advance(minutes=1)
    assert await stack.store_summary("They paint the boat blue.", 6, 8), "the same words are no change"
    third = await kept(stack)
    assert (third.covered, third.updated_at) == (8, second.updated_at)
    assert await stack.logged() == []


async def test_what_is_not_made_from_the_last_summary_is_refused(stack: Stack) -> None:
    await stack.store_summary("They paint the boat.", 0, 4)
    before = await kept(stack)
    stack.clock.advance(minutes=1)
    for after, covered in ((3, 6), (4, 3)):
        assert not await stack.store_summary("They talk of the weather.", after, covered)
        assert await kept(stack) == before


async def test_of_several_workers_at_once_one_wins(stack: Stack) -> None:
    done = await asyncio.gather(*(stack.store_summary(f"By worker {n}.", 0, 2 + n) for n in range(5)))
    assert sorted(done) == [False] * 4 + [True]
    winner = done.index(True)
    found = await kept(stack)
    assert (found.summary, found.covered) == (f"By worker {winner}.", 2 + winner)


async def test_what_a_conversation_is_for_can_be_said_before_its_first_message(stack: Stack) -> None:
    await stack.conversations.set_mode("talk", "user:anna", "study", stack.clock.now)
    found = await kept(stack)
    assert (found.mode, found.summary, found.covered) == ("study", "", 0)
    assert await stack.store_summary("They paint the boat.", 0, 4)
    found = await kept(stack)
    assert (found.mode, found.summary) == ("study", "They paint the boat.")


async def test_a_summary_is_read_by_its_audience_alone(stack: Stack) -> None:
    ids = {}
    for owner, user, place in (
        ("user:anna", "anna", None),
        ("user:ben", "ben", None),
        ("place:acme", "x", "acme"),
    ):
        ids[owner] = await stack.summarise(f"What {owner} heard.", user, place, conversation="talk")
    for audience, owner in (
        (ANNA, "user:anna"),
        (BEN, "user:ben"),
        (Audience.of("anna", ACME), "place:acme"),
        (Audience.of("cleo", Place.parse("acme/general")), "place:acme"),
    ):
        assert set(await stack.conversations.by_ids(ids.values(), audience, stack.clock.now)) == {ids[owner]}
        [newest] = await stack.conversations.newest(audience, stack.clock.now, 5)
        assert (newest.id, newest.owner) == (ids[owner], owner)
    assert await stack.conversations.by_ids([], ANNA, stack.clock.now) == {}
    await stack.summarise("A secret.", GLOBAL)  # of somebody who is called so
    assert len(await stack.conversations.newest(Audience.of(GLOBAL), stack.clock.now, 5)) == 1
    for audience in (NOBODY, Audience.of("cleo"), Audience.of("anna", Place.parse("ac"))):
        assert await stack.conversations.by_ids(ids.values(), audience, stack.clock.now) == {}
        assert await stack.conversations.newest(audience, stack.clock.now, 5) == []


async def test_the_newest_are_those_whose_summary_changed_last(stack: Stack) -> None:
    for name in ("first", "second", "third"):
        await stack.summarise(name, conversation=name)
        stack.clock.advance(days=1)
    await stack.summarise("first again", conversation="first")
    assert await newest(stack, 2) == ["first again", "third"]
    start = stack.clock.now - timedelta(days=2)
    assert await newest(stack, 5, since=start) == ["first again", "third", "second"]
    assert await newest(stack, 5, since=start, until=stack.clock.now) == ["third", "second"]
    [latest] = await stack.conversations.newest(ANNA, stack.clock.now, 1)
    assert await newest(stack, 1, exclude=[latest.id]) == ["third"]


async def newest(stack: Stack, limit: int, **given: object) -> list[str]:
    found = await stack.conversations.newest(ANNA, stack.clock.now, limit, **given)  # type: ignore[arg-type]
    return [known.summary for known in found]


async def listed(
    stack: Stack, audience: Audience = ANNA, limit: int = 50, **of: object
) -> list[list[object]]:
    found = await stack.conversations.conversations(audience, stack.clock.now, limit, **of)  # type: ignore[arg-type]
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
    first, *_ = found = await stack.conversations.conversations(ANNA, stack.clock.now, 1)
    assert [one.id for one in found] == ["chat:two"]
    rest = await stack.conversations.conversations(ANNA, stack.clock.now, 5, before=first.newest)
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
