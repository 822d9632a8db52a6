"""Memories in SQL: reading them for an audience, and what is written of them."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.facts.compare import content_key
from memory.records import Memory
from memory.sql.conditions import WAITING
from memory.sql.engine import Overtaken
from memory.sql.tables import memories, memory_owners

if TYPE_CHECKING:
    from tests.memory.conftest import House

ANNA, BEN, NOBODY = Audience.of("anna"), Audience.of("ben"), Audience.of(None)
ACME = Audience.of("anna", Place.parse("acme"))


async def keep(house: House, content: str, *owners: str, **changes: Any) -> Memory:
    fields: dict[str, Any] = {
        "id": str(uuid4()),
        "subjects": (),
        "created_at": house.clock.now,
        "expires_at": None,
        "source": "chat",
        "type": "fact",
        "importance": 0.5,
        "last_accessed_at": None,
        "uses": 0,
        "user_id": "anna",
        "place": "dm",
        "message_id": None,
    }
    memory = Memory(content=content, owners=frozenset(owners or {"user:anna"}), **fields | changes)
    async with house.database.write() as connection:
        await house.store.insert(connection, memory, content_key(content))
    return memory


async def give_way(
    house: House, old: Memory, *owners: str, new: str | None = None, reason: str = "why"
) -> None:
    async with house.database.write() as connection:
        await house.store.supersede(
            connection, old, owners, new_id=new, user="anna", reason=reason, now=house.clock.now
        )


async def test_a_memory_comes_back_as_it_was_kept(house: House) -> None:
    memory = await keep(
        house,
        "Anna's Hund heißt Çağla 🐕",
        "user:anna",
        "place:acme",
        subjects=("anna", "dog"),
        expires_at=house.clock.now + timedelta(days=7, microseconds=1),
        type="preference",
        importance=0.875,
        place="acme",
        message_id=str(uuid4()),
    )
    assert await house.store.get(memory.id, ANNA, house.clock.now) == memory


async def test_a_memory_is_read_by_its_owners_alone(house: House) -> None:
    mine = await keep(house, "a secret")
    shared = await keep(house, "hello all", "user:anna", "place:acme")
    everybodys = await keep(house, "the sky is blue", "global")
    now = house.clock.now
    readers = {
        ANNA: {mine.id, shared.id, everybodys.id},
        BEN: {everybodys.id},
        ACME: {shared.id, everybodys.id},
        Audience.of("ben", Place.parse("acme/general")): {shared.id, everybodys.id},
        NOBODY: set(),
    }
    for audience, ids in readers.items():
        every = [mine.id, shared.id, everybodys.id]
        assert {memory.id for memory in await house.store.newest(audience, now)} == ids
        assert set(await house.store.by_ids(every, audience, now)) == ids
        assert await house.store.count(audience, now) == len(ids)
        for id in every:
            if id in ids:
                assert (await house.store.get(id, audience, now)).id == id
            else:
                with pytest.raises(NotFound, match="no memory"):
                    await house.store.get(id, audience, now)


async def test_newest_first_and_as_many_as_asked_for(house: House) -> None:
    for number in range(5):
        await keep(house, f"fact {number}", created_at=house.clock.now + timedelta(days=number))
    found = await house.store.newest(ANNA, house.clock.now, 2)
    assert [memory.content for memory in found] == ["fact 4", "fact 3"]


async def test_memories_of_a_time(house: House) -> None:
    for number in range(5):
        await keep(house, f"fact {number}", created_at=house.clock.now + timedelta(days=number))
    since, until = (house.clock.now + timedelta(days=day) for day in (1, 3))
    found = await house.store.newest(ANNA, house.clock.now, since=since, until=until)
    assert [memory.content for memory in found] == ["fact 2", "fact 1"]


@pytest.mark.parametrize("length", [36, 20, 8])
async def test_a_memory_is_found_by_the_beginning_of_its_id(house: House, length: int) -> None:
    memory = await keep(house, "a fact")
    assert await house.store.get(memory.id[:length], ANNA, house.clock.now) == memory


@pytest.mark.parametrize("id", ["", "%", "________", "no such memory", "7" * 36])
async def test_an_id_that_names_nothing_finds_nothing(house: House, id: str) -> None:
    await keep(house, "a fact", id="12345678-0000-4000-8000-000000000000")
    with pytest.raises(NotFound, match="`hachi memories list` shows the ids"):
        await house.store.get(id, ANNA, house.clock.now)


async def test_a_beginning_that_two_ids_share_is_too_short(house: House) -> None:
    for end in ("1", "2"):
        await keep(house, f"fact {end}", id=f"12345678-0000-4000-8000-00000000000{end}")
    with pytest.raises(NotFound):
        await house.store.get("12345678", ANNA, house.clock.now)
    assert (await house.store.get("12345678-0000-4000-8000-000000000002", ANNA, house.clock.now)).content == (
        "fact 2"
    )


async def test_what_has_expired_is_read_no_more_though_it_is_still_there(house: House) -> None:
    memory = await keep(house, "Anna is ill", expires_at=house.clock.now + timedelta(days=7))
    house.clock.move(days=7, microseconds=-1)
    assert await house.known() == {"Anna is ill"}
    house.clock.move(microseconds=1)
    assert await house.known() == set()
    assert await house.store.by_ids([memory.id], ANNA, house.clock.now) == {}
    assert await house.store.count(ANNA, house.clock.now) == 0
    with pytest.raises(NotFound):
        await house.store.get(memory.id, ANNA, house.clock.now)
    assert (await house.store.totals(house.clock.now))["expired"] == 1


async def test_a_memory_gives_way_for_some_of_its_owners_and_stays_for_the_others(house: House) -> None:
    old = await keep(house, "a fact", "user:anna", "user:ben", "place:acme")
    await give_way(house, old, "user:anna", "place:acme", new=str(uuid4()))
    for audience in (ANNA, ACME):
        assert await house.store.newest(audience, house.clock.now) == []
        assert await house.store.by_ids([old.id], audience, house.clock.now) == {}
        assert await house.store.count(audience, house.clock.now) == 0
        with pytest.raises(NotFound):
            await house.store.get(old.id, audience, house.clock.now)
    [left] = await house.memories("ben")
    assert left.owners == {"user:ben"}
    assert await house.store.by_ids([old.id], BEN, house.clock.now) == {old.id: left}


async def test_a_further_owner_reads_it_and_one_that_gave_it_up_takes_it_back(house: House) -> None:
    memory = await keep(house, "a fact")
    await give_way(house, memory, "user:anna")
    for owner in ("user:ben", "user:anna"):
        async with house.database.write() as connection:
            await house.store.link(connection, memory.id, [owner], content_key("a fact"))
    assert (await house.the_memory("anna")).owners == {"user:anna", "user:ben"}


async def test_no_owner_has_the_same_words_twice(house: House) -> None:
    await keep(house, "a fact", "user:anna", "place:acme")
    with pytest.raises(Overtaken):
        await keep(house, "A fact.", "user:ben", "place:acme")
    assert await house.known("ben") == set()


async def test_holders_are_those_of_the_owners_who_have_the_very_words(house: House) -> None:
    shared = await keep(house, "a fact", "user:anna", "place:acme")
    bens = await keep(house, "a fact", "user:ben")
    given_up = await keep(house, "a fact", "user:cleo")
    await give_way(house, given_up, "user:cleo")
    async with house.database.write() as connection:
        everybody = ["user:anna", "user:ben", "user:cleo", "place:acme"]
        held = await house.store.holders(connection, everybody, content_key("A fact!"))
        assert await house.store.holders(connection, ["user:dan"], content_key("a fact")) == {}
    assert {owner: memory.id for owner, memory in held.items()} == {
        "user:anna": shared.id,
        "place:acme": shared.id,
        "user:ben": bens.id,
    }


async def test_candidates_are_those_named_and_those_that_wait_for_the_index(house: House) -> None:
    async def candidates(*ids: str) -> set[str]:
        async with house.database.write() as connection:
            found = await house.store.candidates(connection, ids, ["user:anna"], house.clock.now)
        return {memory.content for memory in found}

    indexed = await keep(house, "indexed")
    await house.store.mark_indexed({indexed.id: 0}, "g1")
    await keep(house, "waiting")
    foreign = await keep(house, "ben's", "user:ben")
    expired = await keep(house, "expired", expires_at=house.clock.now)
    superseded = await keep(house, "superseded")
    await give_way(house, superseded, "user:anna")
    assert await candidates() == {"waiting"}
    assert await candidates(indexed.id, foreign.id, expired.id, superseded.id) == {"indexed", "waiting"}
    for number in range(WAITING):
        await keep(house, f"fact {number}", created_at=house.clock.now + timedelta(seconds=1))
    assert await candidates(indexed.id) == {"indexed", *(f"fact {number}" for number in range(WAITING))}


# Saying it again.


async def test_importance_only_rises_and_the_end_is_only_put_off(house: House) -> None:
    week, month = (house.clock.now + timedelta(days=days) for days in (7, 30))
    memory = await keep(house, "a fact", expires_at=week, importance=0.5)

    async def refreshed(**values: Any) -> tuple[float, Any]:
        async with house.database.write() as connection:
            await house.store.refresh(connection, memory, **values)
        now = await house.the_memory()
        return now.importance, now.expires_at

    assert await refreshed(importance=0.75) == (0.75, week)
    assert await refreshed(importance=0.25, expires_at=month) == (0.75, month)
    assert await refreshed(expires_at=week) == (0.75, month)
    assert await refreshed(expires_at=None) == (0.75, None)
    assert await refreshed(expires_at=week) == (0.75, None)


async def test_only_what_the_index_shows_makes_a_memory_due_again(house: House) -> None:
    memory = await keep(house, "a fact", expires_at=house.clock.now + timedelta(days=7))
    await house.store.mark_indexed({memory.id: 0}, "g1")
    async with house.database.write() as connection:
        await house.store.refresh(connection, memory, importance=0.9)
    assert await house.store.count_unindexed("g1") == 0
    async with house.database.write() as connection:
        await house.store.refresh(connection, memory, expires_at=None)
    assert await house.store.count_unindexed("g1") == 1


async def test_what_was_deleted_meanwhile_is_not_taken_for_refreshed(house: House) -> None:
    memory = await keep(house, "a fact")
    async with house.database.write() as connection:
        await house.store.delete(connection, [memory.id])
        with pytest.raises(Overtaken, match="just been deleted"):
            await house.store.refresh(connection, memory, importance=0.9)


async def test_being_recalled_is_noted(house: House) -> None:
    one, other = await keep(house, "a fact"), await keep(house, "another")
    house.clock.move(hours=1)
    for ids in ([one.id, other.id], [one.id], []):
        await house.store.touch(ids, house.clock.now)
    uses = {memory.content: (memory.uses, memory.last_accessed_at) for memory in await house.memories()}
    assert uses == {"a fact": (2, house.clock.now), "another": (1, house.clock.now)}


# What the index is given.


async def test_every_change_that_shows_in_the_index_makes_a_memory_due(house: House) -> None:
    memory = await keep(house, "a fact")

    async def due_again() -> bool:
        due = await house.store.unindexed("g1", 10)
        await house.store.mark_indexed({memory.id: revision for memory, revision in due}, "g1")
        return [memory.id for memory, _ in due] == [memory.id]

    assert await due_again()
    assert not await due_again()
    await give_way(house, memory, "user:anna")
    assert await due_again()
    async with house.database.write() as connection:
        await house.store.link(connection, memory.id, ["user:anna", "user:ben"], content_key("a fact"))
    assert await due_again()
    async with house.database.write() as connection:
        await house.store.unlink(connection, memory, "ben")
    assert await due_again()
    assert not await due_again()


@pytest.mark.parametrize("generation", ["a", "z"])
async def test_what_another_index_shows_is_due_for_this_one(house: House, generation: str) -> None:
    memory = await keep(house, "a fact")
    await house.store.mark_indexed({memory.id: 0}, "m")
    assert await house.store.count_unindexed("m") == 0
    assert await house.store.count_unindexed(generation) == 1
    assert [found.id for found, _ in await house.store.unindexed(generation, 10)] == [memory.id]


async def test_as_many_as_asked_for_are_due_at_a_time(house: House) -> None:
    for number in range(5):
        await keep(house, f"fact {number}")
    assert len(await house.store.unindexed("g1", 3)) == 3
    assert await house.store.count_unindexed("g1") == 5


async def test_what_changed_while_it_was_put_stays_due(house: House) -> None:
    memory = await keep(house, "a fact")
    [(_, revision)] = await house.store.unindexed("g1", 10)
    async with house.database.write() as connection:
        await house.store.link(connection, memory.id, ["user:ben"], content_key("a fact"))
    await house.store.mark_indexed({memory.id: revision}, "g1")
    [(found, _)] = await house.store.unindexed("g1", 10)
    assert found.owners == {"user:anna", "user:ben"}


async def test_an_older_state_that_was_put_after_the_newer_one_is_put_right(house: House) -> None:
    """Of two replicas, one reads; the other changes the memory and indexes it; then the first one marks."""
    memory = await keep(house, "a fact")
    [(_, old)] = await house.store.unindexed("g1", 10)
    async with house.database.write() as connection:
        await house.store.link(connection, memory.id, ["user:ben"], content_key("a fact"))
    [(_, new)] = await house.store.unindexed("g1", 10)
    await house.store.mark_indexed({memory.id: new}, "g1")
    await house.store.mark_indexed({memory.id: old}, "g1")
    assert await house.store.count_unindexed("g1") == 1


async def test_what_has_no_row_any_more_is_told(house: House) -> None:
    memory = await keep(house, "a fact")
    assert await house.store.missing([memory.id, "gone"]) == {"gone"}
    assert await house.store.missing([]) == set()


# Taking away.


async def test_who_takes_it_away_loses_it_and_others_keep_theirs(house: House) -> None:
    memory = await keep(house, "a fact", "user:anna", "user:ben", "place:acme")
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, memory, "anna") == []
    assert await house.known("anna") == set()
    assert await house.known("ben") == await house.known("ben", "acme") == {"a fact"}


async def test_what_others_keep_no_longer_names_who_took_it_away(house: House) -> None:
    evidence = str(uuid4())
    memory = await keep(house, "a fact", "user:anna", "user:ben", "place:acme", message_id=evidence)
    async with house.database.write() as connection:
        await house.store.unlink(connection, memory, "anna")
    left = await house.the_memory("ben")
    assert (left.user_id, left.message_id) == ("ben", None)


async def test_what_only_one_person_said_goes_from_the_place_too(house: House) -> None:
    memory = await keep(house, "a fact", "user:anna", "place:acme")
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, memory, "anna") == [memory.id]
    assert await house.known("anna", "acme") == set()
    assert (await house.store.totals(house.clock.now)) == {
        "active": 0,
        "superseded": 0,
        "expired": 0,
        "unindexed": 0,
    }


@pytest.mark.parametrize("owners", [{"user:anna"}, {"user:anna", "place:acme"}, {"place:acme"}, {"global"}])
async def test_nobody_takes_away_what_somebody_else_said(house: House, owners: set[str]) -> None:
    memory = await keep(house, "a fact", *owners, user_id="anna")
    with pytest.raises(NotFound, match="not ben's to take away"):
        async with house.database.write() as connection:
            await house.store.unlink(connection, memory, "ben")
    assert (await house.store.totals(house.clock.now))["active"] == 1
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, memory, "anna") == [memory.id]


async def test_what_somebody_said_meanwhile_stays_theirs(house: House) -> None:
    read_before = await keep(house, "a fact")
    async with house.database.write() as connection:
        await house.store.link(connection, read_before.id, ["user:ben"], content_key("a fact"))
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, read_before, "anna") == []
    assert await house.known("ben") == {"a fact"}


async def test_what_is_gone_cannot_be_taken_away_again(house: House) -> None:
    memory = await keep(house, "a fact")
    async with house.database.write() as connection:
        await house.store.unlink(connection, memory, "anna")
    with pytest.raises(NotFound):
        async with house.database.write() as connection:
            await house.store.unlink(connection, memory, "anna")


async def chain(house: House, *owners: str) -> list[Memory]:
    """Three memories, each of which replaced the one before for these owners."""
    made = [await keep(house, f"fact {number}", *owners) for number in range(3)]
    for old, new in pairwise(made):
        await give_way(house, old, *owners, new=new.id)
    return made


async def left(house: House) -> set[str]:
    async with house.database.read() as connection:
        return set((await connection.execute(sa.select(memories.c.content))).scalars())


async def test_what_it_had_replaced_goes_with_it(house: House) -> None:
    made = await chain(house, "user:anna")
    async with house.database.write() as connection:
        gone = await house.store.unlink(connection, made[-1], "anna")
    assert sorted(gone) == sorted(memory.id for memory in made)
    assert await left(house) == set()
    assert await house.reasons(made[0].id) == []


async def test_what_it_had_replaced_stays_for_those_who_still_have_it(house: House) -> None:
    old = await keep(house, "fact 0", "user:anna", "user:ben")
    new = await keep(house, "fact 1")
    await give_way(house, old, "user:anna", new=new.id)
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, new, "anna") == [new.id]
    assert await house.known("ben") == {"fact 0"}
    assert await house.known("anna") == set()


async def test_what_stands_in_somebody_elses_history_stays_there(house: House) -> None:
    old = await keep(house, "fact 0", "user:anna", "user:ben")
    annas, bens = await keep(house, "fact A"), await keep(house, "fact B", "user:ben")
    await give_way(house, old, "user:anna", new=annas.id, reason="anna's")
    await give_way(house, old, "user:ben", new=bens.id, reason="ben's")
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, annas, "anna") == [annas.id]
    [step] = await house.history.of(bens.id, BEN)
    assert (step.old_content, step.reason) == ("fact 0", "ben's")
    assert await house.history.of(old.id, ANNA) == []
    async with house.database.write() as connection:
        assert set(await house.store.unlink(connection, bens, "ben")) == {bens.id, old.id}
    assert await left(house) == set()


async def test_one_step_of_two_people_is_forgotten_for_one_of_them(house: House) -> None:
    both = ("user:anna", "user:ben")
    old, new = await keep(house, "fact 0", *both), await keep(house, "fact 1", *both)
    await give_way(house, old, *both, new=new.id)
    async with house.database.write() as connection:
        assert await house.store.unlink(connection, new, "anna") == []
    assert await house.history.of(new.id, ANNA) == []
    assert [step.old_content for step in await house.history.of(new.id, BEN)] == ["fact 0"]
    async with house.database.read() as connection:
        owners = set((await connection.execute(sa.select(memory_owners.c.owner))).scalars())
    assert owners == {"user:ben"}


async def test_what_was_taken_back_is_not_lost_with_what_had_replaced_it(house: House) -> None:
    old, new = await keep(house, "fact 0"), await keep(house, "fact 1")
    await give_way(house, old, "user:anna", new=new.id)
    async with house.database.write() as connection:
        await house.store.link(connection, old.id, ["user:anna"], content_key("fact 0"))
        assert await house.store.unlink(connection, new, "anna") == [new.id]
    assert await house.known() == {"fact 0"}


async def test_memories_that_replaced_each_other_in_turn_can_be_deleted(house: House) -> None:
    one, other = await keep(house, "fact 0"), await keep(house, "fact 1")
    await give_way(house, one, "user:anna", new=other.id)
    await give_way(house, other, "user:anna", new=one.id)
    async with house.database.write() as connection:
        assert set(await house.store.delete(connection, [one.id])) == {one.id, other.id}
    assert await left(house) == set()


async def test_deleting_is_for_everybody(house: House) -> None:
    made = await chain(house, "user:anna", "place:acme")
    await keep(house, "another", "user:anna", "user:ben")
    async with house.database.write() as connection:
        gone = await house.store.delete(connection, [made[-1].id])
    assert sorted(gone) == sorted(memory.id for memory in made)
    assert await left(house) == {"another"}


async def test_counts_tell_what_is_there_without_its_content(house: House) -> None:
    old = await keep(house, "superseded")
    await give_way(house, old, "user:anna")
    await keep(house, "expired", expires_at=house.clock.now)
    active = await keep(house, "active")
    await house.store.mark_indexed({active.id: 0}, "g1")
    totals = await house.store.totals(house.clock.now)
    assert totals == {"active": 1, "superseded": 1, "expired": 1, "unindexed": 2}
