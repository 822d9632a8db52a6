"""What is deleted for good: for whom, and what stays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import sqlalchemy as sa

from memory.audience import Audience
from memory.facts.compare import content_key
from memory.records import Memory
from memory.sql.memories.owner_links import link
from memory.sql.tables import memories, memory_owners
from tests.memory.sql.test_memories import give_way, keep

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

ANNA, BEN = Audience.of("anna"), Audience.of("ben")


async def test_who_takes_it_away_loses_it_and_others_keep_theirs_without_that_name(stack: Stack) -> None:
    owners = ("user:anna", "user:ben", "place:acme")
    memory = await keep(stack, "a fact", *owners, message_id=str(uuid4()))
    assert await stack.purge.delete_for(memory, "anna")
    assert await stack.known("anna") == set()
    assert await stack.known("ben") == await stack.known("ben", "acme") == {"a fact"}
    left = await stack.the_memory("ben")
    assert (left.user_id, left.message_id) == ("ben", None)


@pytest.mark.parametrize("owners", [{"user:anna"}, {"user:anna", "place:acme"}, {"place:acme"}, {"global"}])
async def test_nobody_takes_away_what_somebody_else_said(stack: Stack, owners: set[str]) -> None:
    memory = await keep(stack, "a fact", *owners, user_id="anna")
    assert not await stack.purge.delete_for(memory, "ben")
    assert (await stack.store.totals(stack.clock.now))["active"] == 1
    assert await stack.purge.delete_for(memory, "anna")
    assert not await stack.purge.delete_for(memory, "anna")
    assert set((await stack.store.totals(stack.clock.now)).values()) == {0}


async def test_what_somebody_said_meanwhile_stays_theirs(stack: Stack) -> None:
    read_before = await keep(stack, "a fact")
    async with stack.database.write() as connection:
        await link(connection, read_before.id, ["user:ben"], content_key("a fact"))
    assert await stack.purge.delete_for(read_before, "anna")
    assert await stack.known("ben") == {"a fact"}


async def chain(stack: Stack, *owners: str) -> list[Memory]:
    """Three memories, each of which replaced the one before for these owners."""
    made = [await keep(stack, f"fact {number}", *owners) for number in range(3)]
    for old, new in pairwise(made):
        await give_way(stack, old, *owners, new=new.id)
    return made


async def left(stack: Stack) -> set[str]:
    async with stack.database.read() as connection:
        return set((await connection.execute(sa.select(memories.c.content))).scalars())


async def test_what_it_had_replaced_goes_with_it(stack: Stack) -> None:
    made = await chain(stack, "user:anna")
    assert await stack.purge.delete_for(made[-1], "anna")
    assert await left(stack) == set()
    assert await stack.reasons(made[0].id) == []


async def test_what_it_had_replaced_stays_for_those_who_still_have_it(stack: Stack) -> None:
    old = await keep(stack, "fact 0", "user:anna", "user:ben")
    new = await keep(stack, "fact 1")
    await give_way(stack, old, "user:anna", new=new.id)
    assert await stack.purge.delete_for(new, "anna")
    assert await stack.known("ben") == {"fact 0"}
    assert await stack.known("anna") == set()


async def test_what_stands_in_somebody_elses_history_stays_there(stack: Stack) -> None:
    old = await keep(stack, "fact 0", "user:anna", "user:ben")
    annas, bens = await keep(stack, "fact A"), await keep(stack, "fact B", "user:ben")
    await give_way(stack, old, "user:anna", new=annas.id, reason="anna's")
    await give_way(stack, old, "user:ben", new=bens.id, reason="ben's")
    assert await stack.purge.delete_for(annas, "anna")
    [step] = await stack.history.of(bens.id, BEN)
    assert (step.old_content, step.reason) == ("fact 0", "ben's")
    assert await stack.history.of(old.id, ANNA) == []
    assert await stack.purge.delete_for(bens, "ben")
    assert await left(stack) == set()


async def test_one_step_of_two_people_is_forgotten_for_one_of_them(stack: Stack) -> None:
    both = ("user:anna", "user:ben")
    old, new = await keep(stack, "fact 0", *both), await keep(stack, "fact 1", *both)
    await give_way(stack, old, *both, new=new.id)
    assert await stack.purge.delete_for(new, "anna")
    assert await stack.history.of(new.id, ANNA) == []
    assert [step.old_content for step in await stack.history.of(new.id, BEN)] == ["fact 0"]
    async with stack.database.read() as connection:
        owners = set((await connection.execute(sa.select(memory_owners.c.owner))).scalars())
    assert owners == {"user:ben"}


async def test_what_was_taken_back_is_not_lost_with_what_had_replaced_it(stack: Stack) -> None:
    old, new = await keep(stack, "fact 0"), await keep(stack, "fact 1")
    await give_way(stack, old, "user:anna", new=new.id)
    async with stack.database.write() as connection:
        await link(connection, old.id, ["user:anna"], content_key("fact 0"))
    assert await stack.purge.delete_for(new, "anna")
    assert await stack.known() == {"fact 0"}


async def test_memories_that_replaced_each_other_in_turn_can_be_deleted(stack: Stack) -> None:
    one, other = await keep(stack, "fact 0"), await keep(stack, "fact 1")
    await give_way(stack, one, "user:anna", new=other.id)
    await give_way(stack, other, "user:anna", new=one.id)
    await stack.purge.delete_for_all([one])
    assert await left(stack) == set()


async def test_deleting_is_for_everybody(stack: Stack) -> None:
    made = await chain(stack, "user:anna", "place:acme")
    await keep(stack, "another", "user:anna", "user:ben")
    await stack.purge.delete_for_all([made[-1]])
    assert await left(stack) == {"another"}
