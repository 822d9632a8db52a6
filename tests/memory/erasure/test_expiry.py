"""Deleting memories for good, from the database and from the index."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memory.audience import Audience, Place
from memory.errors import NotFound

if TYPE_CHECKING:
    from memory.records import Decision
    from tests.memory.conftest import Stack

on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)
SHOULDER = "Mickael broke his shoulder"
SHOULDER_ON = "Mickael broke his shoulder on 10 January 2026"
PARIS, LYON, ROME = (f"Mickael lives in {city}" for city in ("Paris", "Lyon", "Rome"))
OFFICE = "The office has moved to Lyon"
MICKAEL = Audience.of("mickael")


def in_acme(user: str) -> Audience:
    return Audience.of(user, Place.parse("acme"))


async def indexed(stack: Stack, *ids: str | None) -> set[str]:
    await stack.indexing.catch_up()
    return await stack.index.present([id for id in ids if id])


# Expiry.


@on_both
async def test_an_expired_memory_is_hidden_at_once_and_purged_later(stack: Stack) -> None:
    ill = await stack.remember("Mickael is ill", "mickael", ttl="7d")
    await stack.remember("Mickael has a cat", "mickael")
    assert ill.expires_at == stack.clock.now + timedelta(days=7)
    stack.clock.move(days=7, seconds=-1)
    assert await stack.forgetting.purge() == []
    assert await stack.found("Is Mickael ill?", "mickael") >= {"Mickael is ill"}

    stack.clock.move(seconds=1)
    assert await stack.index.present([str(ill.id)]) == {ill.id}
    assert "Mickael is ill" not in await stack.found("Is Mickael ill?", "mickael")
    assert await stack.known("mickael") == {"Mickael has a cat"}

    assert [memory.id for memory in await stack.forgetting.purge()] == [ill.id]
    assert await indexed(stack, ill.id) == set()
    assert await stack.known("mickael") == {"Mickael has a cat"}
    assert (await stack.store.totals(stack.clock.now))["expired"] == 0
    assert await stack.queue.counts() == (0, 0)
    assert await stack.forgetting.purge() == []


async def test_the_purge_deletes_for_everybody_in_batches(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.erasure.expiry.BATCH", 2)
    for user in ("anna", "ben", "cleo"):
        for number in range(2):
            await stack.remember(f"{user} has a meeting at {number}", user, "acme", ttl="1d")
    stack.clock.move(days=1)
    assert len(await stack.forgetting.purge()) == 6
    assert set((await stack.store.totals(stack.clock.now)).values()) == {0}
    await stack.indexing.catch_up()
    assert await stack.index.count() == 0


@on_both
@pytest.mark.parametrize("how", ["purge", "delete"])
async def test_an_index_that_was_unavailable_is_cleaned_later(stack: Stack, how: str) -> None:
    decision = await stack.remember(SHOULDER, "mickael", ttl="7d")
    await stack.indexing.catch_up()
    stack.index.away = True
    if how == "purge":
        stack.clock.move(days=7)
        assert len(await stack.forgetting.purge()) == 1
    else:
        await stack.forgetting.delete(await stack.the_memory("mickael"), "mickael")
    # The index still has it and the database does not: the database decides.
    assert await stack.known("mickael") == await stack.found("shoulder", "mickael") == set()
    stack.index.away = False
    assert await stack.index.present([str(decision.id)]) == {decision.id}
    assert await indexed(stack, decision.id) == set()
    assert await stack.queue.counts() == (0, 0)


@on_both
async def test_a_renewed_memory_is_not_purged(stack: Stack) -> None:
    for _ in range(2):
        await stack.remember("Mickael is ill", "mickael", ttl="7d")
        stack.clock.move(days=6)
    assert await stack.forgetting.purge() == []
    assert await stack.known("mickael") == {"Mickael is ill"}


async def test_what_an_expired_memory_had_replaced_is_purged_if_it_expired_too(stack: Stack) -> None:
    first = await stack.remember("Mickael is ill", "mickael", ttl="7d")
    stack.clock.move(hours=1)
    flu = "Mickael is ill with the flu"
    second = await stack.remember(flu, "mickael", ttl="7d", replaces=first.id)
    assert second.action == "replace"
    stack.clock.move(days=7)
    await stack.forgetting.purge()
    assert await indexed(stack, first.id, second.id) == set()
    assert (await stack.store.totals(stack.clock.now))["superseded"] == 0


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ([(PARIS, "30d"), (LYON, "7d")], PARIS),
        ([(PARIS, "30d"), (LYON, "7d"), (ROME, None)], ROME),
    ],
)
async def test_what_it_had_replaced_holds_again_unless_something_newer_does(
    stack: Stack, said: list[tuple[str, str | None]], known: str
) -> None:
    stack.rule(True)
    for text, ttl in said:
        await stack.remember(text, "mickael", ttl=ttl)
        stack.clock.move(days=1)
    assert await stack.known("mickael") == {said[-1][0]}
    stack.clock.move(days=7)
    await stack.forgetting.purge()
    assert await stack.known("mickael") == {known}
    await stack.indexing.catch_up()
    assert await stack.found("where does Mickael live?", "mickael") == {known}


@on_both
async def test_what_was_replaced_twice_in_the_same_words_holds_again_once(stack: Stack) -> None:
    stack.rule(True)
    await stack.remember(PARIS, "mickael", ttl="30d")
    stack.clock.move(days=1)
    await stack.remember(LYON, "mickael", ttl="7d")
    await stack.remember(PARIS, "mickael", said_at=stack.clock.now - timedelta(days=40))
    stack.clock.move(days=7)
    await stack.forgetting.purge()
    assert [memory.content for memory in await stack.memories("mickael")] == [PARIS]


@pytest.mark.parametrize("right", ["Mickael is ill", "Mickael has a guest"])
async def test_what_was_corrected_on_purpose_does_not_come_back(stack: Stack, right: str) -> None:
    first = await stack.remember("Mickael is ill", "mickael")
    await stack.remember(right, "mickael", ttl="7d", replaces=first.id)
    stack.clock.move(days=7)
    await stack.forgetting.purge()
    assert await stack.known("mickael") == set()


# Replies to others that repeat what is deleted.


@pytest.mark.parametrize("also", [None, "anna", "cleo"])
@pytest.mark.parametrize("how", ["purge", "delete"])
async def test_a_reply_to_somebody_else_is_emptied_with_the_last_that_tells_what_it_repeats(
    stack: Stack, how: str, also: str | None
) -> None:
    place = "acme/general"
    told = await stack.remember(PARIS, "anna", "acme", ttl="7d" if how == "purge" else None)
    shown = [str(told.id), *([await stack.receive(f"{PARIS}.", also, "acme")] if also else [])]
    cat = await stack.receive("I know of no cat.", "ben", place, role="assistant", shown=shown)
    said = "He lives in Paris: Mickael told me."
    paris = await stack.receive(said, "ben", place, role="assistant", shown=shown)
    await stack.indexing.catch_up()

    if how == "purge":
        stack.clock.move(days=7)
        await stack.forgetting.purge()
    else:
        await getattr(stack.forgetting, how)(await stack.the_memory("anna", "acme"), "anna")

    page = await stack.transcript.page(Audience.of("ben", Place.parse(place)), 10)
    assert {cat, paris} <= {line.id for line in page}
    assert {line.id for line in page if not line.text} == ({paris} if not also else set())
    await stack.indexing.catch_up()
    assert await indexed(stack, cat, paris) == {line.id for line in page if line.text} & {cat, paris}


@pytest.mark.parametrize("also", [None, "anna", "cleo"])
async def test_a_reply_to_somebody_else_that_contains_what_is_made_private_is_emptied(
    stack: Stack, also: str | None
) -> None:
    place = "acme/general"
    await stack.remember(PARIS, "anna", "acme")
    told = await stack.receive(f"{PARIS}.", also, "acme") if also else None
    cat = await stack.receive("I know of no cat.", "ben", place, role="assistant")
    paris = await stack.receive("He lives in Paris: Mickael told me.", "ben", place, role="assistant")
    await stack.forgetting.make_private(await stack.the_memory("anna", "acme"), "anna")
    page = await stack.transcript.page(Audience.of("ben", Place.parse(place)), 10)
    assert {line.id for line in page if line.text} == {cat, told} - {None}, "what was said is no reply"
    assert paris in {line.id for line in page}


# Deleting one memory.


async def test_deleting_removes_what_it_had_replaced_too(stack: Stack) -> None:
    first = await stack.remember(SHOULDER, "mickael", "acme")
    stack.clock.move(days=1)
    second = await stack.remember(SHOULDER_ON, "mickael", "acme", replaces=first.id)
    await stack.indexing.catch_up()
    await stack.forgetting.delete(await stack.the_memory("mickael"), "mickael")
    assert await stack.known("mickael") == await stack.known("mickael", "acme") == set()
    assert await indexed(stack, first.id, second.id) == await stack.found("shoulder", "mickael") == set()
    assert await stack.history.of(str(first.id), MICKAEL) == []
    assert (await stack.store.totals(stack.clock.now))["superseded"] == 0


async def test_others_keep_what_they_said_too_and_only_the_operator_deletes_for_all(stack: Stack) -> None:
    await stack.remember(OFFICE, "anna", "acme")
    with pytest.raises(NotFound, match="ben's"):
        await stack.forgetting.delete(await stack.the_memory("ben", "acme"), "ben")
    await stack.remember(OFFICE, "ben", "acme")
    await stack.forgetting.delete(await stack.the_memory("anna"), "anna")
    assert await stack.known("anna") == set()
    assert await stack.known("ben") == await stack.known("anna", "acme") == {OFFICE}
    assert await stack.queue.counts() == (0, 0)
    await stack.indexing.catch_up()
    assert await stack.found("office", "anna") == set()
    assert await stack.found("office", "ben") == {OFFICE}

    memory = await stack.the_memory("ben")
    await stack.forgetting.delete_for_all([memory])
    assert await stack.known("ben") == await stack.known("ben", "acme") == set()
    assert await indexed(stack, memory.id) == set()


@on_both
async def test_deleting_while_indexing_leaves_nothing_in_the_index(stack: Stack) -> None:
    for number in range(20):
        await stack.remember(f"Mickael has boat number {number}", "mickael")
    boats = await stack.memories("mickael")
    await stack.index.wipe()
    deletions = [stack.forgetting.delete(boat, "mickael") for boat in boats]
    await asyncio.gather(stack.indexing.catch_up(), *deletions)
    assert await stack.known("mickael") == set()
    await stack.indexing.catch_up()
    assert await stack.index.count() == 0


# Making private what was said in places.


async def make_private(stack: Stack, user: str = "mickael", place: str | None = "acme") -> None:
    stack.clock.move(minutes=1)
    await stack.forgetting.make_private(await stack.the_memory(user, place), user)
    stack.clock.move(minutes=1)


async def test_what_is_made_private_is_the_tellers_alone(stack: Stack) -> None:
    decision = await stack.remember(SHOULDER, "mickael", "acme")
    await stack.indexing.catch_up()
    await make_private(stack)
    assert await stack.known("ben", "acme") == await stack.known("mickael", "acme") == set()
    for _ in range(2):  # before and after the index hears of it
        assert await stack.found("shoulder", "ben", "acme") == set()
        await stack.indexing.catch_up()
    memory = await stack.the_memory("mickael")
    assert (memory.id, memory.place, memory.owners) == (decision.id, "dm", {"user:mickael"})
    assert await stack.found("shoulder", "mickael") == {SHOULDER}

    [step] = await stack.history.of(str(decision.id), MICKAEL)
    assert (step.reason, step.user_id) == ("made private", "mickael")
    assert step.old_id == step.new_id == decision.id
    for user in ("ben", "mickael"):
        assert await stack.history.of(str(decision.id), in_acme(user)) == []
    with pytest.raises(NotFound):  # saying it again makes it public, not undo
        await stack.history.undo(str(decision.id), MICKAEL, "mickael", stack.clock.now)
    with pytest.raises(NotFound):  # it is private already
        await make_private(stack, place=None)

    await stack.remember(SHOULDER, "mickael", "acme")
    assert await stack.known("ben", "acme") == {SHOULDER}


@on_both
async def test_the_places_history_loses_what_it_had_replaced_too(stack: Stack) -> None:
    first = await stack.remember(SHOULDER, "mickael", "acme")
    stack.clock.move(days=1)
    second = await stack.remember(SHOULDER_ON, "mickael", "acme", replaces=first.id)
    await make_private(stack)
    assert await stack.known("ben", "acme") == set()
    for id in (first.id, second.id):
        assert await stack.history.of(str(id), in_acme("ben")) == []
    assert await stack.known("mickael") == {SHOULDER_ON}
    stack.clock.move(days=1)
    await stack.history.undo(str(second.id), MICKAEL, "mickael", stack.clock.now)
    assert await stack.known("mickael") == {SHOULDER}
    assert await stack.known("ben", "acme") == set()


async def test_the_places_history_loses_what_was_brought_back_there(stack: Stack) -> None:
    stack.rule(True)
    first = await stack.remember(PARIS, "mickael", "acme")
    stack.clock.move(days=1)
    second = await stack.remember("Mickael moved to Lyon", "mickael", "acme")
    stack.clock.move(days=1)
    await stack.history.undo(str(second.id), in_acme("mickael"), "mickael", stack.clock.now)
    await make_private(stack)
    assert await stack.history.of(str(first.id), in_acme("mickael")) == []
    assert await stack.known("ben", "acme") == set()


async def test_only_the_sole_teller_makes_a_memory_private(stack: Stack) -> None:
    await stack.remember(SHOULDER, "mickael", "acme")
    for user in ("ben", "anna"):
        with pytest.raises(NotFound, match=f"not {user}'s"):
            await make_private(stack, user)
    await stack.remember(SHOULDER, "ben", "acme")
    for user in ("ben", "mickael"):
        with pytest.raises(NotFound, match="somebody else"):
            await make_private(stack, user)
    assert await stack.known("anna", "acme") == {SHOULDER}
    await stack.remember("The office is in Lyon", "admin", everybody=True)
    with pytest.raises(NotFound):
        await make_private(stack, "admin", None)


async def test_what_another_said_first_and_corrected_in_private_stays_in_the_place(stack: Stack) -> None:
    stack.rule(True)
    for user in ("ben", "mickael"):
        await stack.remember("Ben lives in Paris", user, "acme")
        stack.clock.move(days=1)
    await stack.remember("Ben lives in Lyon", "ben")
    assert await stack.known("ben") == {"Ben lives in Lyon"}
    with pytest.raises(NotFound):
        await make_private(stack)
    await stack.forgetting.delete(await stack.the_memory("mickael"), "mickael")
    assert await stack.known("anna", "acme") == {"Ben lives in Paris"}
    assert await stack.known("mickael") == set()


@pytest.mark.parametrize("private", [SHOULDER, SHOULDER_ON])
async def test_what_is_known_in_private_too_is_known_once(stack: Stack, private: str) -> None:
    kept = await stack.remember(private, "mickael")
    withdrawn = await stack.remember(SHOULDER, "mickael", "acme")
    await stack.indexing.catch_up()
    await make_private(stack)
    assert await stack.known("ben", "acme") == set()
    assert await stack.known("mickael") == {private, SHOULDER}
    assert len(await stack.memories("mickael")) == len({private, SHOULDER})
    gone = set() if private == SHOULDER else {withdrawn.id}
    assert await indexed(stack, kept.id, withdrawn.id) == {kept.id} | gone


async def test_a_place_where_it_was_corrected_does_not_show_it_in_its_history(stack: Stack) -> None:
    stack.rule(True)
    for place in ("acme", "acme/7"):  # in a thread too: there it is the same memory
        told = await stack.remember(PARIS, "mickael", place)
    stack.clock.move(days=1)
    newer = await stack.remember(LYON, "ben", "acme")
    await stack.replaced_before(told, newer)
    assert len(await stack.history.of(str(newer.id), in_acme("ben"))) == 1
    [in_thread] = [m for m in await stack.memories("mickael", "acme/7") if m.id != newer.id]
    await stack.forgetting.make_private(in_thread, "mickael")
    assert await stack.history.of(str(newer.id), in_acme("ben")) == []
    assert await stack.known("ben", "acme") == await stack.known("mickael", "acme/7") == {LYON}
    assert await stack.known("mickael") == {PARIS}


# What was made private is not learned again from what was said before.

PARIS_TOO = "Mickael lives in Paris near the canal"


async def learn(stack: Stack, content: str, said: str, user: str = "mickael", **given: Any) -> Decision:
    """What the model finds in a message in acme."""
    message = given.pop("message_id", None) or await stack.receive(said, user, "acme")
    return await stack.remember(content, user, "acme", message_id=message, said=said, live=True, **given)


@pytest.mark.parametrize(("stated", "found"), [(PARIS, PARIS), (PARIS_TOO, PARIS), (PARIS, PARIS_TOO)])
async def test_not_from_the_same_message(stack: Stack, stated: str, found: str) -> None:
    said = "I live in Paris, near the canal"
    message = {"message_id": await stack.receive(said, "mickael", "acme"), "said_at": stack.clock.now}
    await learn(stack, stated, said, **message)
    await make_private(stack)
    again = await learn(stack, found, said, **message)
    assert (again.action, again.id, again.target_id) == ("ignore", None, None)
    assert again.reason == "it was made private, and not said here since"
    assert await stack.known("ben", "acme") == set()
    assert await stack.known("mickael") == {stated}


async def test_only_from_a_later_message_that_says_it(stack: Stack) -> None:
    await learn(stack, PARIS, "Mickael lives in Paris")
    for _ in range(2):
        await make_private(stack)
        assert (await learn(stack, PARIS, "thank you")).action == "ignore"
        assert await stack.known("ben", "acme") == set()
        await learn(stack, PARIS, "yes: Mickael lives in Paris")
        assert await stack.known("ben", "acme") == {PARIS}
    assert (await learn(stack, "Mickael likes rowing", "I like rowing")).action == "add"


async def test_another_person_may_still_say_it(stack: Stack) -> None:
    await learn(stack, PARIS, "I live in Paris")
    then = stack.clock.now
    await make_private(stack)
    await learn(stack, PARIS, "Well.", "ben", said_at=then)
    assert await stack.known("anna", "acme") == {PARIS}


@pytest.mark.parametrize("known_in_private", [True, False])
async def test_it_stays_private_where_it_was_known_or_has_been_replaced(
    stack: Stack, known_in_private: bool
) -> None:
    stack.rule(True)
    if known_in_private:
        await stack.remember(PARIS, "mickael")
    then = stack.clock.now
    await learn(stack, PARIS, "I live in Paris", said_at=then)
    await make_private(stack)
    if not known_in_private:
        await stack.remember(LYON, "mickael")
        assert await stack.known("mickael") == {LYON}
    stack.clock.move(minutes=1)
    assert (await learn(stack, PARIS, "I live in Paris", said_at=then)).action == "ignore"
    assert await stack.known("ben", "acme") == set()
