"""Taking memories away for good, from the record and from the index."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memory.audience import Audience, Place
from memory.erasure.removal import UNINDEX
from memory.errors import NotFound
from memory.records import Decision

if TYPE_CHECKING:
    from tests.memory.conftest import House

SHOULDER = "Mickael broke his shoulder"
SHOULDER_ON = "Mickael broke his shoulder on 10 January 2026"


async def indexed(house: House, *ids: str | None) -> set[str]:
    return await house.index.present([id for id in ids if id])


async def do_the_work(house: House) -> None:
    """What the companion does with the queue."""
    while piece := await house.queue.claim(house.clock.now):
        assert piece.kind == UNINDEX
        await house.index.remove(piece.payload["ids"])
        await house.queue.done(piece.id)


# What has expired.


async def test_being_ill_for_seven_days_is_over_after_seven_days(house: House) -> None:
    decision = await house.remember("Mickael is ill", "mickael", ttl="7d")
    await house.remember("Mickael has a cat", "mickael")
    assert decision.expires_at == house.clock.now + timedelta(days=7)
    house.clock.move(days=7, seconds=-1)
    assert await house.removal.purge() == []
    assert await house.found("Is Mickael ill?", "mickael") >= {"Mickael is ill"}
    house.clock.move(seconds=1)
    # Before the purge it is there, and shown to nobody.
    assert await indexed(house, decision.id) == {decision.id}
    assert "Mickael is ill" not in await house.found("Is Mickael ill?", "mickael")
    assert await house.known("mickael") == {"Mickael has a cat"}
    assert [memory.id for memory in await house.removal.purge()] == [decision.id]
    # After it, it is nowhere.
    assert await indexed(house, decision.id) == set()
    assert await house.known("mickael") == {"Mickael has a cat"}
    assert (await house.store.totals(house.clock.now))["expired"] == 0
    assert await house.queue.counts() == (0, 0)
    assert await house.removal.purge() == []


async def test_the_purge_takes_from_everybody(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.erasure.removal.BATCH", 2)
    for user in ("anna", "ben", "cleo"):
        for number in range(2):
            await house.remember(f"{user} has a meeting at {number}", user, "acme", ttl="1d")
    house.clock.move(days=1)
    assert len(await house.removal.purge()) == 6
    assert await house.store.totals(house.clock.now) == {
        "active": 0,
        "superseded": 0,
        "expired": 0,
        "unindexed": 0,
    }
    assert await house.index.count() == 0


async def test_what_expires_is_taken_out_of_an_index_that_was_away_once_it_is_back(house: House) -> None:
    decision = await house.remember("Mickael is ill", "mickael", ttl="7d")
    house.clock.move(days=7)
    house.index.away = True
    assert len(await house.removal.purge()) == 1
    assert await house.queue.counts() == (1, 0)
    house.index.away = False
    assert await indexed(house, decision.id) == {decision.id}
    await do_the_work(house)
    assert await indexed(house, decision.id) == set()
    assert await house.queue.counts() == (0, 0)


async def test_what_was_put_off_in_time_is_not_purged(house: House) -> None:
    await house.remember("Mickael is ill", "mickael", ttl="7d")
    house.clock.move(days=6)
    await house.remember("Mickael is ill", "mickael", ttl="7d")
    house.clock.move(days=6)
    assert await house.removal.purge() == []
    assert await house.known("mickael") == {"Mickael is ill"}


async def test_what_expires_takes_along_what_it_had_replaced_and_what_expired_with_it(house: House) -> None:
    first = await house.remember("Mickael is ill", "mickael", ttl="7d")
    second = await house.remember("Mickael is ill with the flu", "mickael", ttl="7d")
    assert second.action == "replace"
    house.clock.move(days=7)
    await house.removal.purge()
    assert await indexed(house, first.id, second.id) == set()
    assert (await house.store.totals(house.clock.now))["superseded"] == 0


async def test_what_held_longer_than_what_replaced_it_comes_back(house: House) -> None:
    await house.remember("Mickael lives in Paris", "mickael", ttl="30d")
    house.clock.move(days=1)
    await house.remember("Mickael lives in Lyon", "mickael", ttl="7d")
    assert await house.known("mickael") == {"Mickael lives in Lyon"}
    house.clock.move(days=7)
    await house.removal.purge()
    assert await house.known("mickael") == {"Mickael lives in Paris"}
    await house.indexing.catch_up()
    assert await house.found("where does Mickael live?", "mickael") == {"Mickael lives in Paris"}


async def test_what_was_replaced_again_meanwhile_does_not_come_back(house: House) -> None:
    await house.remember("Mickael lives in Paris", "mickael", ttl="30d")
    for place, ttl in (("Lyon", "7d"), ("Rome", None)):
        house.clock.move(days=1)
        await house.remember(f"Mickael lives in {place}", "mickael", ttl=ttl)
    house.clock.move(days=7)
    await house.removal.purge()
    assert await house.known("mickael") == {"Mickael lives in Rome"}


async def test_what_was_replaced_twice_in_the_same_words_comes_back_once(house: House) -> None:
    await house.remember("Mickael lives in Paris", "mickael", ttl="30d")
    house.clock.move(days=1)
    await house.remember("Mickael lives in Lyon", "mickael", ttl="7d")
    await house.remember("Mickael lives in Paris", "mickael", said_at=house.clock.now - timedelta(days=40))
    house.clock.move(days=7)
    await house.removal.purge()
    assert await house.known("mickael") == {"Mickael lives in Paris"}
    assert len(await house.memories("mickael")) == 1


@pytest.mark.parametrize("right", ["Mickael is ill", "Mickael has a guest"])
async def test_what_was_corrected_on_purpose_does_not_come_back(house: House, right: str) -> None:
    first = await house.remember("Mickael is ill", "mickael")
    await house.remember(right, "mickael", ttl="7d", replaces=first.id)
    house.clock.move(days=7)
    await house.removal.purge()
    assert await house.known("mickael") == set()


# What people take away.


async def test_what_is_deleted_is_nowhere_any_more_with_all_it_had_replaced(house: House) -> None:
    first = await house.remember(SHOULDER, "mickael", "acme")
    house.clock.move(days=1)
    second = await house.remember(SHOULDER_ON, "mickael", "acme")
    await house.indexing.catch_up()
    await house.removal.delete(await house.the_memory("mickael"), "mickael")
    assert await house.known("mickael") == await house.known("mickael", "acme") == set()
    assert await indexed(house, first.id, second.id) == set()
    assert await house.found("shoulder", "mickael") == set()
    assert await house.history.of(str(first.id), Audience.of("mickael")) == []
    assert (await house.store.totals(house.clock.now))["superseded"] == 0


async def test_what_is_deleted_while_the_index_is_away_is_taken_out_of_it_later(house: House) -> None:
    decision = await house.remember(SHOULDER, "mickael")
    house.index.away = True
    await house.removal.delete(await house.the_memory("mickael"), "mickael")
    assert await house.known("mickael") == set()
    house.index.away = False
    # The index still has it and the record does not: the record decides.
    assert await indexed(house, decision.id) == {decision.id}
    assert await house.found("shoulder", "mickael") == set()
    await do_the_work(house)
    assert await indexed(house, decision.id) == set()


async def test_others_keep_what_they_said_too(house: House) -> None:
    for user in ("anna", "ben"):
        await house.remember("The office has moved to Lyon", user, "acme")
    await house.removal.delete(await house.the_memory("anna"), "anna")
    assert await house.known("anna") == set()
    assert await house.known("ben") == await house.known("anna", "acme") == {"The office has moved to Lyon"}
    assert await house.queue.counts() == (0, 0)
    await house.indexing.catch_up()
    assert await house.found("office", "anna") == set()
    assert await house.found("office", "ben") == {"The office has moved to Lyon"}


async def test_nobody_deletes_what_is_somebody_elses(house: House) -> None:
    await house.remember("The office has moved to Lyon", "anna", "acme")
    with pytest.raises(NotFound, match="not ben's to take away"):
        await house.removal.delete(await house.the_memory("ben", "acme"), "ben")
    assert await house.known("ben", "acme") == {"The office has moved to Lyon"}


async def test_what_is_removed_is_removed_for_everybody(house: House) -> None:
    for user in ("anna", "ben"):
        await house.remember("The office has moved to Lyon", user, "acme")
    memory = await house.the_memory("anna")
    await house.removal.remove([memory])
    assert await house.known("ben") == await house.known("ben", "acme") == set()
    assert await indexed(house, memory.id) == set()


async def test_deleting_what_is_being_indexed_leaves_nothing_in_the_index(house: House) -> None:
    """However the two fall: the row is gone, so no point may stay."""
    for number in range(20):
        await house.remember(f"Mickael has boat number {number}", "mickael")
    boats = await house.memories("mickael")
    await house.index.wipe()
    await asyncio.gather(
        house.indexing.catch_up(), *(house.removal.delete(boat, "mickael") for boat in boats)
    )
    assert await house.known("mickael") == set()
    assert await house.index.count() == 0


# What people take out of a place.


async def make_private(house: House, user: str = "mickael", place: str | None = "acme") -> None:
    await house.removal.make_private(await house.the_memory(user, place), user)


async def test_what_is_made_private_is_the_tellers_alone(house: House) -> None:
    decision = await house.remember(SHOULDER, "mickael", "acme")
    await house.indexing.catch_up()
    await make_private(house)
    assert await house.known("ben", "acme") == await house.known("mickael", "acme") == set()
    assert await house.found("shoulder", "ben", "acme") == set()  # the index has yet to hear of it
    memory = await house.the_memory("mickael")
    assert (memory.id, memory.place, memory.owners) == (decision.id, "dm", {"user:mickael"})
    await house.indexing.catch_up()
    assert await house.found("shoulder", "ben", "acme") == set()
    assert await house.found("shoulder", "mickael") == {SHOULDER}


async def test_that_it_was_made_private_stands_in_the_tellers_history_and_in_nobody_elses(
    house: House,
) -> None:
    decision = await house.remember(SHOULDER, "mickael", "acme")
    await make_private(house)
    [step] = await house.history.of(str(decision.id), Audience.of("mickael"))
    assert (step.reason, step.user_id, step.old_id, step.new_id) == (
        "made private",
        "mickael",
        decision.id,
        decision.id,
    )
    for user in ("ben", "mickael"):
        there = Audience.of(user, Place.parse("acme"))
        assert await house.history.of(str(decision.id), there) == []
    with pytest.raises(NotFound):  # it is told again where it is to be known again
        await house.history.undo(str(decision.id), Audience.of("mickael"), "mickael", house.clock.now)


async def test_the_places_history_forgets_it_and_what_it_had_replaced(house: House) -> None:
    first = await house.remember(SHOULDER, "mickael", "acme")
    house.clock.move(days=1)
    second = await house.remember(SHOULDER_ON, "mickael", "acme")
    await make_private(house)
    assert await house.known("ben", "acme") == set()
    for id in (first.id, second.id):
        assert await house.history.of(str(id), Audience.of("ben", Place.parse("acme"))) == []
    assert await house.known("mickael") == {SHOULDER_ON}
    house.clock.move(days=1)
    await house.history.undo(str(second.id), Audience.of("mickael"), "mickael", house.clock.now)
    assert await house.known("mickael") == {SHOULDER}
    assert await house.known("ben", "acme") == set()


async def test_what_was_brought_back_there_leaves_no_trace_either(house: House) -> None:
    first = await house.remember("Mickael lives in Paris", "mickael", "acme")
    house.clock.move(days=1)
    second = await house.remember("Mickael moved to Lyon", "mickael", "acme")
    there = Audience.of("mickael", Place.parse("acme"))
    house.clock.move(days=1)
    await house.history.undo(str(second.id), there, "mickael", house.clock.now)
    await make_private(house)
    texts = [step.old_content for step in await house.history.of(str(first.id), there)]
    assert texts == []
    assert await house.known("ben", "acme") == set()


async def test_nobody_makes_private_what_somebody_else_told(house: House) -> None:
    await house.remember(SHOULDER, "mickael", "acme")
    for user in ("ben", "anna"):
        with pytest.raises(NotFound, match=f"not {user}'s to make private"):
            await make_private(house, user)
    await house.remember(SHOULDER, "ben", "acme")
    for user in ("ben", "mickael"):
        with pytest.raises(NotFound, match="somebody else told it too"):
            await make_private(house, user)
    assert await house.known("anna", "acme") == {SHOULDER}


async def test_what_another_told_first_and_holds_otherwise_by_now_stays_in_the_place(house: House) -> None:
    for user in ("ben", "mickael"):
        await house.remember("Ben lives in Paris", user, "acme")
        house.clock.move(days=1)
    await house.remember("Ben lives in Lyon", "ben")  # in private
    assert await house.known("ben") == {"Ben lives in Lyon"}
    with pytest.raises(NotFound):
        await make_private(house)
    await house.removal.delete(await house.the_memory("mickael"), "mickael")
    assert await house.known("anna", "acme") == {"Ben lives in Paris"}
    assert await house.known("mickael") == set()


async def test_what_is_private_already_or_everybodys_is_left_alone(house: House) -> None:
    await house.remember(SHOULDER, "mickael")
    with pytest.raises(NotFound):
        await make_private(house, place=None)
    await house.remember("The office is in Lyon", "admin", everybody=True)
    with pytest.raises(NotFound):
        await make_private(house, "admin", None)
    assert await house.known("ben") == {"The office is in Lyon"}


async def test_who_knows_it_in_private_too_does_not_know_it_twice(house: House) -> None:
    kept = await house.remember(SHOULDER, "mickael")
    told = await house.remember(SHOULDER, "mickael", "acme")
    await house.indexing.catch_up()
    await make_private(house)
    assert [memory.id for memory in await house.memories("mickael")] == [kept.id]
    assert await house.known("ben", "acme") == set()
    assert told.id != kept.id
    assert await indexed(house, told.id) == set()


async def test_what_they_know_better_in_private_they_keep_as_it_was_told_too(house: House) -> None:
    await house.remember(SHOULDER_ON, "mickael")
    await house.remember(SHOULDER, "mickael", "acme")
    await make_private(house)
    assert await house.known("mickael") == {SHOULDER_ON, SHOULDER}
    assert await house.known("ben", "acme") == set()


async def test_a_place_where_it_was_corrected_does_not_show_it_in_its_history_either(house: House) -> None:
    for place in ("acme", "acme/7"):  # in a thread too: there it is the same memory
        await house.remember("Mickael lives in Paris", "mickael", place)
    house.clock.move(days=1)
    newer = await house.remember("Mickael lives in Lyon", "ben", "acme")
    there = Audience.of("ben", Place.parse("acme"))
    assert len(await house.history.of(str(newer.id), there)) == 1
    [there_too] = [m for m in await house.memories("mickael", "acme/7") if m.id != newer.id]
    await house.removal.make_private(there_too, "mickael")
    assert await house.history.of(str(newer.id), there) == []
    assert await house.known("ben", "acme") == {"Mickael lives in Lyon"}
    assert await house.known("mickael", "acme/7") == {"Mickael lives in Lyon"}
    assert await house.known("mickael") == {"Mickael lives in Paris"}


async def test_said_there_again_it_is_known_there_again(house: House) -> None:
    await house.remember(SHOULDER, "mickael", "acme")
    await make_private(house)
    await house.remember(SHOULDER, "mickael", "acme")
    assert await house.known("ben", "acme") == {SHOULDER}


PARIS = "Mickael lives in Paris"
PARIS_TOO = "Mickael lives in Paris near the canal"


async def told_there(house: House, content: str, said: str, **given: Any) -> Decision:
    """What is found in what Mickael says in acme."""
    message = given.pop("message_id", None) or await house.receive(said, "mickael", "acme")
    return await house.remember(content, "mickael", "acme", message_id=message, said=said, live=True, **given)


@pytest.mark.parametrize(("told", "found"), [(PARIS, PARIS), (PARIS_TOO, PARIS), (PARIS, PARIS_TOO)])
async def test_what_was_made_private_is_not_found_again_in_what_was_said_before(
    house: House, told: str, found: str
) -> None:
    said, then = "I live in Paris, near the canal", house.clock.now
    message = await house.receive(said, "mickael", "acme")
    await told_there(house, told, said, message_id=message, said_at=then)
    house.clock.move(minutes=1)
    await make_private(house)
    house.clock.move(minutes=1)
    again = await told_there(house, found, said, message_id=message, said_at=then)
    assert (again.action, again.id, again.target_id) == ("ignore", None, None)
    assert again.reason == "it was made private, and not said here since"
    assert await house.known("ben", "acme") == set()
    assert await house.known("mickael") == {told}


async def test_nor_in_a_later_message_that_does_not_say_it(house: House) -> None:
    await told_there(house, PARIS, "I live in Paris")
    house.clock.move(minutes=1)
    await make_private(house)
    house.clock.move(minutes=1)
    assert (await told_there(house, PARIS, "thank you")).action == "ignore"
    assert await house.known("ben", "acme") == set()
    assert (await told_there(house, "Mickael likes rowing", "I like rowing")).action == "add"
    assert await house.known("ben", "acme") == {"Mickael likes rowing"}


async def test_in_a_later_message_that_says_it_it_is_told_there_anew(house: House) -> None:
    await told_there(house, PARIS, "Mickael lives in Paris")
    house.clock.move(minutes=1)
    await make_private(house)
    house.clock.move(minutes=1)
    await told_there(house, PARIS, "yes: Mickael lives in Paris")
    assert await house.known("ben", "acme") == {PARIS}
    house.clock.move(minutes=1)
    await make_private(house)
    house.clock.move(minutes=1)
    assert (await told_there(house, PARIS, "thank you")).action == "ignore"


async def test_what_was_made_private_of_one_is_for_another_to_tell(house: House) -> None:
    await told_there(house, PARIS, "I live in Paris")
    then = house.clock.now
    house.clock.move(minutes=1)
    await make_private(house)
    message = await house.receive("Mickael lives in Paris", "ben", "acme")
    await house.remember(PARIS, "ben", "acme", message_id=message, said="Well.", live=True, said_at=then)
    assert await house.known("anna", "acme") == {PARIS}


@pytest.mark.parametrize("before", [True, False])
async def test_it_stays_private_also_where_it_holds_no_longer_or_was_known_in_private_already(
    house: House, before: bool
) -> None:
    if before:
        await house.remember(PARIS, "mickael")
    then = house.clock.now
    await told_there(house, PARIS, "I live in Paris", said_at=then)
    house.clock.move(minutes=1)
    await make_private(house)
    if not before:
        house.clock.move(minutes=1)
        await house.remember("Mickael lives in Lyon", "mickael")
        assert await house.known("mickael") == {"Mickael lives in Lyon"}
    house.clock.move(minutes=1)
    assert (await told_there(house, PARIS, "I live in Paris", said_at=then)).action == "ignore"
    assert await house.known("ben", "acme") == set()
