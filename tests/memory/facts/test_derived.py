"""Derived text does not outlive the message or the memory that it rests on."""

from memory.facts.derived import ended_facts, remaining_messages, withhold
from memory.sql.messages.summaries import CONSOLIDATE, ActiveConversation
from tests.memory.conftest import Stack, on_both


async def summary(stack: Stack) -> ActiveConversation:
    conversation = await stack.conversations.of("talk", "user:anna", stack.clock.now)
    assert conversation is not None
    return conversation


@on_both
async def test_a_summary_is_emptied_and_due_again_when_a_message_of_it_no_longer_holds(stack: Stack) -> None:
    covered = await stack.receive("I moved to Lisbon.", conversation="talk")
    later = await stack.receive("And to Porto.", conversation="talk")
    await stack.store_summary("She moved to Lisbon.", after=0, covered=1)

    async with stack.database.write() as connection:
        await withhold(connection, stack.clock.now, message_ids=[later])
    assert (await summary(stack)).summary == "She moved to Lisbon."

    async with stack.database.write() as connection:
        await withhold(connection, stack.clock.now, message_ids=[covered])
    emptied = await summary(stack)
    assert (emptied.summary, emptied.covered) == ("", 1)
    [due] = await stack.queue.claim_due(stack.clock.now, 10)
    assert (due.kind, due.user_id) == (CONSOLIDATE, "anna")


@on_both
async def test_a_message_outlives_its_fact_and_its_summary_is_written_again_from_it(stack: Stack) -> None:
    """With the list of what no longer holds, as long as that is stored."""
    message = await stack.receive("I have the flu", conversation="talk")
    await stack.remember("Anna has the flu", ttl="1d", message_id=message)
    stack.clock.advance(seconds=1)
    paris = await stack.remember("Anna lives in Paris", message_id=message)
    await stack.remember("Anna lives in Lyon", replaces=paris.id)
    await stack.store_summary("Anna has the flu.", after=0, covered=1)
    stack.clock.advance(days=2)
    now, key = stack.clock.now, ("talk", "user:anna")
    withheld = await summary(stack)
    assert (withheld.summary, withheld.withheld) == ("", True)
    over = await ended_facts(stack.database, [message], "user:anna", now)
    assert over == ("Anna has the flu", "Anna lives in Paris (since then: Anna lives in Lyon)")
    async with stack.database.write() as connection:
        [remaining] = await remaining_messages(connection, *key, 1, 50)
        assert remaining.text == "I have the flu"
        fields = {"after": 1, "revision": withheld.revision, "covered": 1, "now": now, "rebuilt": True}
        assert await stack.conversations.update_in(connection, *key, "She had the flu.", **fields)
    await stack.expire()
    assert (await summary(stack)).summary == "She had the flu."
