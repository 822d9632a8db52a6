"""Deleting memories for good, from the database and from the index."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from memory.audience import Audience, Place
from memory.facts.derived import no_longer
from tests.memory.conftest import Stack, on_both
from tests.memory.sql.test_memories import keep, replace_for

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


NICE = "Mickael is in Nice"


async def test_what_a_model_replaced_for_a_time_holds_again_at_its_end(stack: Stack) -> None:
    paris = await stack.remember(PARIS, "mickael", "acme")
    lyon = await stack.remember(LYON, "mickael", "acme", ttl="7d", replaces=paris.id)
    await stack.remember(NICE, "mickael", "acme", ttl="3d", replaces=lyon.id)
    for days, known in ((3, LYON), (4, PARIS)):
        stack.clock.advance(days=days)
        assert await stack.known("mickael") == await stack.known("mickael", "acme") == {known}
        await stack.expire()
    assert await stack.shown(str(paris.id), str(lyon.id)) == {paris.id}


async def test_a_purge_that_dies_has_changed_nothing_and_what_was_corrected_on_purpose_does_not_come_back(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, for_good in (("mickael", False), ("anna", True)):
        paris = await stack.remember(PARIS, user)
        await stack.remember(LYON, user, ttl="7d", replaces=paris.id, for_good=for_good)
    stack.clock.advance(days=7)
    with monkeypatch.context() as patched:
        patched.setattr("memory.forgetting.purge._delete_sources", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            await stack.expire()
    assert (await stack.store.totals(stack.clock.now))["expired"] == 2
    await stack.expire()
    assert (await stack.known("mickael"), await stack.known("anna")) == ({PARIS}, set())


async def test_what_was_corrected_for_a_time_stays_replaced_while_a_message_states_it(stack: Stack) -> None:
    message = await stack.receive(PARIS, "anna")
    paris = await stack.remember(PARIS, "anna", message_id=message)
    await stack.remember(LYON, "anna", ttl="7d", replaces=paris.id, for_good=True)
    stack.clock.advance(days=7)
    await stack.expire()
    assert await stack.known("anna") == set()
    assert await no_longer(stack.database, [message], "user:anna", stack.clock.now) == (PARIS,)
    await stack.forgetting.forget("message", message, "anna")
    assert await no_longer(stack.database, [message], "user:anna", stack.clock.now) == ()


async def test_what_somebody_else_said_is_not_deleted(stack: Stack) -> None:
    await stack.remember(OFFICE, "anna", "acme")
    assert not await stack.delete(await stack.the_memory("ben", "acme"), "ben")
    assert await stack.known("anna") == await stack.known("ben", "acme") == {OFFICE}


async def test_what_stands_in_somebody_elses_history_stays_there(stack: Stack) -> None:
    old = await keep(stack, "fact 0", "user:anna", "user:ben")
    annas, bens = await keep(stack, "fact A"), await keep(stack, "fact B", "user:ben")
    await replace_for(stack, old, "user:anna", new=annas.id, reason="anna's")
    await replace_for(stack, old, "user:ben", new=bens.id, reason="ben's")
    assert await stack.delete(annas, "anna")
    [step] = await stack.history.of(bens.id, Audience.of("ben"))
    assert (step.old_content, step.reason) == ("fact 0", "ben's")
    assert await stack.history.of(old.id, Audience.of("anna")) == []
    assert await stack.delete(bens, "ben")
    assert set((await stack.store.totals(stack.clock.now)).values()) == {0}


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
