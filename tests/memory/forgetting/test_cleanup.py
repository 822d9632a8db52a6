"""Deleting memories for good, from the database and from the index."""

from datetime import timedelta

import pytest

from memory.audience import Audience, Place
from memory.facts.derived import ended_facts
from tests.memory.conftest import Stack, on_both

PARIS, LYON = "Mickael lives in Paris", "Mickael lives in Lyon"
OFFICE = "The office has moved to Lyon"


@on_both
async def test_an_expired_memory_is_hidden_at_once_and_purged_later(stack: Stack) -> None:
    ill = await stack.remember("Mickael is ill", "mickael", ttl="7d")
    await stack.remember("Mickael has a cat", "mickael")
    assert ill.expires_at == stack.clock.now + timedelta(days=7)
    stack.clock.advance(days=7, seconds=-1)
    assert await stack.expire() == []
    assert await stack.found("Is Mickael ill?", "mickael") >= {"Mickael is ill"}

    stack.clock.advance(seconds=1)
    assert "Mickael is ill" not in await stack.found("Is Mickael ill?", "mickael")
    assert await stack.known("mickael") == {"Mickael has a cat"}

    assert [memory.id for memory in await stack.expire()] == [ill.id]
    assert await stack.shown(ill.id) == set()
    assert await stack.known("mickael") == {"Mickael has a cat"}
    assert (await stack.store.totals(stack.clock.now))["expired"] == 0
    assert await stack.queue.counts() == (0, 0)
    assert await stack.expire() == []


async def test_a_purge_deletes_everybodys_in_batches(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.forgetting.purge.BATCH", 2)
    for user in ("anna", "ben", "cleo"):
        for number in range(2):
            await stack.remember(f"{user} has a meeting at {number}", user, "acme", ttl="1d")
    stack.clock.advance(days=1)
    assert len(await stack.expire()) == 6
    assert set((await stack.store.totals(stack.clock.now)).values()) == {0}


async def test_what_was_corrected_for_a_time_stays_replaced_while_a_message_states_it(stack: Stack) -> None:
    message = await stack.receive(PARIS, "anna")
    paris = await stack.remember(PARIS, "anna", message_id=message)
    await stack.remember(LYON, "anna", ttl="7d", replaces=paris.id, for_good=True)
    stack.clock.advance(days=7)
    await stack.expire()
    assert await stack.known("anna") == set()
    assert await ended_facts(stack.database, [message], "user:anna", stack.clock.now) == (PARIS,)
    await stack.forgetting.forget("message", message, "anna")
    assert await ended_facts(stack.database, [message], "user:anna", stack.clock.now) == ()


async def test_a_summary_that_rests_on_what_is_deleted_is_written_again(stack: Stack) -> None:
    said = await stack.receive("I am ill", "anna")
    await stack.remember("Anna is ill", "anna", message_id=said)
    await stack.summarise("Anna is ill.")
    await stack.delete(await stack.the_memory("anna"), "anna")
    left = await stack.conversations.of("dm:anna", "user:anna", stack.clock.now)
    assert left is not None
    assert (left.summary, left.withheld) == ("", True)


async def test_expiry_takes_neither_what_people_said_nor_replies(stack: Stack) -> None:
    told = await stack.receive("I am ill", "mickael", "acme")
    ill = await stack.remember("Mickael is ill", "mickael", "acme", ttl="7d", message_id=told)
    shown = [str(ill.id), told]
    await stack.receive("Mickael is ill.", "ben", "acme", role="assistant", shown=shown)
    stack.clock.advance(days=7)
    assert len(await stack.expire()) == 1
    page = await stack.transcript.page(Audience.of("ben", Place.parse("acme")), 10)
    assert [line.text for line in page] == ["Mickael is ill.", "I am ill"]
