"""What is deleted for good: for whom, and what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from memory.audience import Audience
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
    assert set((await stack.store.totals(stack.clock.now)).values()) == {0}
