"""The active conversation: its summary, kept and found."""

import asyncio
from datetime import timedelta

from memory.audience import GLOBAL, Audience, Place
from memory.sql.messages.summaries import ActiveConversation
from tests.memory.conftest import Stack

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
