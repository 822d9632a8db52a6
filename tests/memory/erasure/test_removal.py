"""Taking memories away for good, from the record and from the index."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from memory.erasure.removal import UNINDEX

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.records import Decision

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

SHOULDER = "Mickael broke his shoulder"
SHOULDER_ON = "Mickael broke his shoulder on 10 January 2026"


async def indexed(stack: Stack, *ids: str | None) -> set[str]:
    return await stack.index.present([id for id in ids if id])


async def do_the_work(stack: Stack) -> None:
    """What the companion does with the queue."""
    while piece := await stack.queue.claim(stack.clock.now):
        assert piece.kind == UNINDEX
        await stack.index.remove(piece.payload["ids"])
        await stack.queue.done(piece.id)


# What has expired.


async def test_being_ill_for_seven_days_is_over_after_seven_days(stack: Stack) -> None:
    decision = await stack.remember("Mickael is ill", "mickael", ttl="7d")
    await stack.remember("Mickael has a cat", "mickael")
    assert decision.expires_at == stack.clock.now + timedelta(days=7)
    stack.clock.move(days=7, seconds=-1)
    assert await stack.removal.purge() == []
    assert await stack.found("Is Mickael ill?", "mickael") >= {"Mickael is ill"}
    stack.clock.move(seconds=1)
    # Before the purge it is there, and shown to nobody.
    assert await indexed(stack, decision.id) == {decision.id}
    assert "Mickael is ill" not in await stack.found("Is Mickael ill?", "mickael")
    assert await stack.known("mickael") == {"Mickael has a cat"}
    assert [memory.id for memory in await stack.removal.purge()] == [decision.id]
    # After it, it is nowhere.
    assert await indexed(stack, decision.id) == set()
    assert await stack.known("mickael") == {"Mickael has a cat"}
    assert (await stack.store.totals(stack.clock.now))["expired"] == 0
    assert await stack.queue.counts() == (0, 0)
    assert await stack.removal.purge() == []


async def test_the_purge_takes_from_everybody(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.erasure.removal.BATCH", 2)
    for user in ("anna", "ben", "cleo"):
        for number in range(2):
            await stack.remember(f"{user} has a meeting at {number}", user, "acme", ttl="1d")
    stack.clock.move(days=1)
    assert len(await stack.removal.purge()) == 6
    assert await stack.store.totals(stack.clock.now) == {
        "active": 0,
        "superseded": 0,
        "expired": 0,
        "unindexed": 0,
    }
    assert await stack.index.count() == 0


async def test_what_expires_is_taken_out_of_an_index_that_was_away_once_it_is_back(stack: Stack) -> None:
    decision = await stack.remember("Mickael is ill", "mickael", ttl="7d")
    stack.clock.move(days=7)
    stack.index.away = True
    assert len(await stack.removal.purge()) == 1
    assert await stack.queue.counts() == (1, 0)
    stack.index.away = False
    assert await indexed(stack, decision.id) == {decision.id}
    await do_the_work(stack)
    assert await indexed(stack, decision.id) == set()
    assert await stack.queue.counts() == (0, 0)


async def test_what_was_put_off_in_time_is_not_purged(stack: Stack) -> None:
    await stack.remember("Mickael is ill", "mickael", ttl="7d")
    stack.clock.move(days=6)
    await stack.remember("Mickael is ill", "mickael", ttl="7d")
    stack.clock.move(days=6)
    assert await stack.removal.purge() == []
    assert await stack.known("mickael") == {"Mickael is ill"}


async def test_what_expires_takes_along_what_it_had_replaced_and_what_expired_with_it(stack: Stack) -> None:
    first = await stack.remember("Mickael is ill", "mickael", ttl="7d")
    second = await stack.remember("Mickael is ill with the flu", "mickael", ttl="7d")
    assert second.action == "replace"
    stack.clock.move(days=7)
    await stack.removal.purge()
    assert await indexed(stack, first.id, second.id) == set()
    assert (await stack.store.totals(stack.clock.now))["superseded"] == 0


async def test_what_held_longer_than_what_replaced_it_comes_back(stack: Stack) -> None:
    await stack.remember("Mickael lives in Paris", "mickael", ttl="30d")
    stack.clock.move(days=1)
    await stack.remember("Mickael lives in Lyon", "mickael", ttl="7d")
    assert await stack.known("mickael") == {"Mickael lives in Lyon"}
    stack.clock.move(days=7)
    await stack.removal.purge()
    assert await stack.known("mickael") == {"Mickael lives in Paris"}
    await stack.indexing.catch_up()
    assert await stack.found("where does Mickael live?", "mickael") == {"Mickael lives in Paris"}


async def test_what_was_replaced_again_meanwhile_does_not_come_back(stack: Stack) -> None:
    await stack.remember("Mickael lives in Paris", "mickael", ttl="30d")
    for place, ttl in (("Lyon", "7d"), ("Rome", None)):
        stack.clock.move(days=1)
        await stack.remember(f"Mickael lives in {place}", "mickael", ttl=ttl)
    stack.clock.move(days=7)
    await stack.removal.purge()
    assert await stack.known("mickael") == {"Mickael lives in Rome"}


async def test_what_was_replaced_twice_in_the_same_words_comes_back_once(stack: Stack) -> None:
    await stack.remember("Mickael lives in Paris", "mickael", ttl="30d")
    stack.clock.move(days=1)
    await stack.remember("Mickael lives in Lyon", "mickael", ttl="7d")
    await stack.remember("Mickael lives in Paris", "mickael", said_at=stack.clock.now - timedelta(days=40))
    stack.clock.move(days=7)
    await stack.removal.purge()
    assert await stack.known("mickael") == {"Mickael lives in Paris"}
    assert len(await stack.memories("mickael")) == 1


@pytest.mark.parametrize("right", ["Mickael is ill", "Mickael has a guest"])
async def test_what_was_corrected_on_purpose_does_not_come_back(stack: Stack, right: str) -> None:
    first = await stack.remember("Mickael is ill", "mickael")
    await stack.remember(right, "mickael", ttl="7d", replaces=first.id)
    stack.clock.move(days=7)
    await stack.removal.purge()
    assert await stack.known("mickael") == set()


# What people take away.


async def test_what_is_deleted_is_nowhere_any_more_with_all_it_had_replaced(stack: Stack) -> None:
    first = await stack.remember(SHOULDER, "mickael", "acme")
    stack.clock.move(days=1)
    second = await stack.remember(SHOULDER_ON, "mickael", "acme")
    await stack.indexing.catch_up()
    await stack.removal.delete(await stack.the_memory("mickael"), "mickael")
    assert await stack.known("mickael") == await stack.known("mickael", "acme") == set()
    assert await indexed(stack, first.id, second.id) == set()
    assert await stack.found("shoulder", "mickael") == set()
    assert await stack.history.of(str(first.id), Audience.of("mickael")) == []
    assert (await stack.store.totals(stack.clock.now))["superseded"] == 0


async def test_what_is_deleted_while_the_index_is_away_is_taken_out_of_it_later(stack: Stack) -> None:
    decision = await stack.remember(SHOULDER, "mickael")
    stack.index.away = True
    await stack.removal.delete(await stack.the_memory("mickael"), "mickael")
    assert await stack.known("mickael") == set()
    stack.index.away = False
    # The index still has it and the record does not: the record decides.
    assert await indexed(stack, decision.id) == {decision.id}
    assert await stack.found("shoulder", "mickael") == set()
    await do_the_work(stack)
    assert await indexed(stack, decision.id) == set()


async def test_others_keep_what_they_said_too(stack: Stack) -> None:
    for user in ("anna", "ben"):
        await stack.remember("The office has moved to Lyon", user, "acme")
    await stack.removal.delete(await stack.the_memory("anna"), "anna")
    assert await stack.known("anna") == set()
    assert await stack.known("ben") == await stack.known("anna", "acme") == {"The office has moved to Lyon"}
    assert await stack.queue.counts() == (0, 0)
    await stack.indexing.catch_up()
    assert await stack.found("office", "anna") == set()
    assert await stack.found("office", "ben") == {"The office has moved to Lyon"}


async def test_nobody_deletes_what_is_somebody_elses(stack: Stack) -> None:
    await stack.remember("The office has moved to Lyon", "anna", "acme")
    with pytest.raises(NotFound, match="not ben's to take away"):
        await stack.removal.delete(await stack.the_memory("ben", "acme"), "ben")
    assert await stack.known("ben", "acme") == {"The office has moved to Lyon"}


async def test_what_is_removed_is_removed_for_everybody(stack: Stack) -> None:
    for user in ("anna", "ben"):
        await stack.remember("The office has moved to Lyon", user, "acme")
    memory = await stack.the_memory("anna")
    await stack.removal.remove([memory])
    assert await stack.known("ben") == await stack.known("ben", "acme") == set()
    assert await indexed(stack, memory.id) == set()


async def test_deleting_what_is_being_indexed_leaves_nothing_in_the_index(stack: Stack) -> None:
    """However the two fall: the row is gone, so no point may stay."""
    for number in range(20):
        await stack.remember(f"Mickael has boat number {number}", "mickael")
    boats = await stack.memories("mickael")
    await stack.index.wipe()
    await asyncio.gather(
        stack.indexing.catch_up(), *(stack.removal.delete(boat, "mickael") for boat in boats)
    )
    assert await stack.known("mickael") == set()
    assert await stack.index.count() == 0


# What people take out of a place.


async def make_private(stack: Stack, user: str = "mickael", place: str | None = "acme") -> None:
    await stack.removal.make_private(await stack.the_memory(user, place), user)


async def test_what_is_made_private_is_the_tellers_alone(stack: Stack) -> None:
    decision = await stack.remember(SHOULDER, "mickael", "acme")
    await stack.indexing.catch_up()
    await make_private(stack)
    assert await stack.known("ben", "acme") == await stack.known("mickael", "acme") == set()
    assert await stack.found("shoulder", "ben", "acme") == set()  # the index has yet to hear of it
    memory = await stack.the_memory("mickael")
    assert (memory.id, memory.place, memory.owners) == (decision.id, "dm", {"user:mickael"})
    await stack.indexing.catch_up()
    assert await stack.found("shoulder", "ben", "acme") == set()
    assert await stack.found("shoulder", "mickael") == {SHOULDER}


async def test_that_it_was_made_private_stands_in_the_tellers_history_and_in_nobody_elses(
    stack: Stack,
) -> None:
    decision = await stack.remember(SHOULDER, "mickael", "acme")
    await make_private(stack)
    [step] = await stack.history.of(str(decision.id), Audience.of("mickael"))
    assert (step.reason, step.user_id, step.old_id, step.new_id) == (
        "made private",
        "mickael",
        decision.id,
        decision.id,
    )
    for user in ("ben", "mickael"):
        there = Audience.of(user, Place.parse("acme"))
        assert await stack.history.of(str(decision.id), there) == []
    with pytest.raises(NotFound):  # it is told again where it is to be known again
        await stack.history.undo(str(decision.id), Audience.of("mickael"), "mickael", stack.clock.now)


async def test_the_places_history_forgets_it_and_what_it_had_replaced(stack: Stack) -> None:
    first = await stack.remember(SHOULDER, "mickael", "acme")
    stack.clock.move(days=1)
    second = await stack.remember(SHOULDER_ON, "mickael", "acme")
    await make_private(stack)
    assert await stack.known("ben", "acme") == set()
    for id in (first.id, second.id):
        assert await stack.history.of(str(id), Audience.of("ben", Place.parse("acme"))) == []
    assert await stack.known("mickael") == {SHOULDER_ON}
    stack.clock.move(days=1)
    await stack.history.undo(str(second.id), Audience.of("mickael"), "mickael", stack.clock.now)
    assert await stack.known("mickael") == {SHOULDER}
    assert await stack.known("ben", "acme") == set()


async def test_what_was_brought_back_there_leaves_no_trace_either(stack: Stack) -> None:
    first = await stack.remember("Mickael lives in Paris", "mickael", "acme")
    stack.clock.move(days=1)
    second = await stack.remember("Mickael moved to Lyon", "mickael", "acme")
    there = Audience.of("mickael", Place.parse("acme"))
    stack.clock.move(days=1)
    await stack.history.undo(str(second.id), there, "mickael", stack.clock.now)
    await make_private(stack)
    texts = [step.old_content for step in await stack.history.of(str(first.id), there)]
    assert texts == []
    assert await stack.known("ben", "acme") == set()


async def test_nobody_makes_private_what_somebody_else_told(stack: Stack) -> None:
    await stack.remember(SHOULDER, "mickael", "acme")
    for user in ("ben", "anna"):
        with pytest.raises(NotFound, match=f"not {user}'s to make private"):
            await make_private(stack, user)
    await stack.remember(SHOULDER, "ben", "acme")
    for user in ("ben", "mickael"):
        with pytest.raises(NotFound, match="somebody else told it too"):
            await make_private(stack, user)
    assert await stack.known("anna", "acme") == {SHOULDER}


async def test_what_another_told_first_and_holds_otherwise_by_now_stays_in_the_place(stack: Stack) -> None:
    for user in ("ben", "mickael"):
        await stack.remember("Ben lives in Paris", user, "acme")
        stack.clock.move(days=1)
    await stack.remember("Ben lives in Lyon", "ben")  # in private
    assert await stack.known("ben") == {"Ben lives in Lyon"}
    with pytest.raises(NotFound):
        await make_private(stack)
    await stack.removal.delete(await stack.the_memory("mickael"), "mickael")
    assert await stack.known("anna", "acme") == {"Ben lives in Paris"}
    assert await stack.known("mickael") == set()


async def test_what_is_private_already_or_everybodys_is_left_alone(stack: Stack) -> None:
    await stack.remember(SHOULDER, "mickael")
    with pytest.raises(NotFound):
        await make_private(stack, place=None)
    await stack.remember("The office is in Lyon", "admin", everybody=True)
    with pytest.raises(NotFound):
        await make_private(stack, "admin", None)
    assert await stack.known("ben") == {"The office is in Lyon"}


async def test_who_knows_it_in_private_too_does_not_know_it_twice(stack: Stack) -> None:
    kept = await stack.remember(SHOULDER, "mickael")
    told = await stack.remember(SHOULDER, "mickael", "acme")
    await stack.indexing.catch_up()
    await make_private(stack)
    assert [memory.id for memory in await stack.memories("mickael")] == [kept.id]
    assert await stack.known("ben", "acme") == set()
    assert told.id != kept.id
    assert await indexed(stack, told.id) == set()


async def test_what_they_know_better_in_private_they_keep_as_it_was_told_too(stack: Stack) -> None:
    await stack.remember(SHOULDER_ON, "mickael")
    await stack.remember(SHOULDER, "mickael", "acme")
    await make_private(stack)
    assert await stack.known("mickael") == {SHOULDER_ON, SHOULDER}
    assert await stack.known("ben", "acme") == set()


async def test_a_place_where_it_was_corrected_does_not_show_it_in_its_history_either(stack: Stack) -> None:
    for place in ("acme", "acme/7"):  # in a thread too: there it is the same memory
        await stack.remember("Mickael lives in Paris", "mickael", place)
    stack.clock.move(days=1)
    newer = await stack.remember("Mickael lives in Lyon", "ben", "acme")
    there = Audience.of("ben", Place.parse("acme"))
    assert len(await stack.history.of(str(newer.id), there)) == 1
    [there_too] = [m for m in await stack.memories("mickael", "acme/7") if m.id != newer.id]
    await stack.removal.make_private(there_too, "mickael")
    assert await stack.history.of(str(newer.id), there) == []
    assert await stack.known("ben", "acme") == {"Mickael lives in Lyon"}
    assert await stack.known("mickael", "acme/7") == {"Mickael lives in Lyon"}
    assert await stack.known("mickael") == {"Mickael lives in Paris"}


async def test_said_there_again_it_is_known_there_again(stack: Stack) -> None:
    await stack.remember(SHOULDER, "mickael", "acme")
    await make_private(stack)
    await stack.remember(SHOULDER, "mickael", "acme")
    assert await stack.known("ben", "acme") == {SHOULDER}


PARIS = "Mickael lives in Paris"
PARIS_TOO = "Mickael lives in Paris near the canal"


async def told_there(stack: Stack, content: str, said: str, **given: Any) -> Decision:
    """What is found in what Mickael says in acme."""
    message = given.pop("message_id", None) or await stack.receive(said, "mickael", "acme")
    return await stack.remember(content, "mickael", "acme", message_id=message, said=said, live=True, **given)


@pytest.mark.parametrize(("told", "found"), [(PARIS, PARIS), (PARIS_TOO, PARIS), (PARIS, PARIS_TOO)])
async def test_what_was_made_private_is_not_found_again_in_what_was_said_before(
    stack: Stack, told: str, found: str
) -> None:
    said, then = "I live in Paris, near the canal", stack.clock.now
    message = await stack.receive(said, "mickael", "acme")
    await told_there(stack, told, said, message_id=message, said_at=then)
    stack.clock.move(minutes=1)
    await make_private(stack)
    stack.clock.move(minutes=1)
    again = await told_there(stack, found, said, message_id=message, said_at=then)
    assert (again.action, again.id, again.target_id) == ("ignore", None, None)
    assert again.reason == "it was made private, and not said here since"
    assert await stack.known("ben", "acme") == set()
    assert await stack.known("mickael") == {told}


async def test_nor_in_a_later_message_that_does_not_say_it(stack: Stack) -> None:
    await told_there(stack, PARIS, "I live in Paris")
    stack.clock.move(minutes=1)
    await make_private(stack)
    stack.clock.move(minutes=1)
    assert (await told_there(stack, PARIS, "thank you")).action == "ignore"
    assert await stack.known("ben", "acme") == set()
    assert (await told_there(stack, "Mickael likes rowing", "I like rowing")).action == "add"
    assert await stack.known("ben", "acme") == {"Mickael likes rowing"}


async def test_in_a_later_message_that_says_it_it_is_told_there_anew(stack: Stack) -> None:
    await told_there(stack, PARIS, "Mickael lives in Paris")
    stack.clock.move(minutes=1)
    await make_private(stack)
    stack.clock.move(minutes=1)
    await told_there(stack, PARIS, "yes: Mickael lives in Paris")
    assert await stack.known("ben", "acme") == {PARIS}
    stack.clock.move(minutes=1)
    await make_private(stack)
    stack.clock.move(minutes=1)
    assert (await told_there(stack, PARIS, "thank you")).action == "ignore"


async def test_what_was_made_private_of_one_is_for_another_to_tell(stack: Stack) -> None:
    await told_there(stack, PARIS, "I live in Paris")
    then = stack.clock.now
    stack.clock.move(minutes=1)
    await make_private(stack)
    message = await stack.receive("Mickael lives in Paris", "ben", "acme")
    await stack.remember(PARIS, "ben", "acme", message_id=message, said="Well.", live=True, said_at=then)
    assert await stack.known("anna", "acme") == {PARIS}


@pytest.mark.parametrize("before", [True, False])
async def test_it_stays_private_also_where_it_holds_no_longer_or_was_known_in_private_already(
    stack: Stack, before: bool
) -> None:
    if before:
        await stack.remember(PARIS, "mickael")
    then = stack.clock.now
    await told_there(stack, PARIS, "I live in Paris", said_at=then)
    stack.clock.move(minutes=1)
    await make_private(stack)
    if not before:
        stack.clock.move(minutes=1)
        await stack.remember("Mickael lives in Lyon", "mickael")
        assert await stack.known("mickael") == {"Mickael lives in Lyon"}
    stack.clock.move(minutes=1)
    assert (await told_there(stack, PARIS, "I live in Paris", said_at=then)).action == "ignore"
    assert await stack.known("ben", "acme") == set()
