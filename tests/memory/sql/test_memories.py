"""Memories in SQL: reading them for an audience, and what is written of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.facts.compare import content_key
from memory.records import Memory
from memory.sql import changes
from memory.sql.changes import Moment
from memory.sql.memories.owner_links import link
from tests.memory.conftest import Stack

ANNA, BEN, NOBODY = Audience.of("anna"), Audience.of("ben"), Audience.of(None)
ACME = Audience.of("anna", Place.parse("acme"))


async def keep(stack: Stack, content: str, *owners: str, **changes: Any) -> Memory:
    start = Memory(
        *(str(uuid4()), content, (), stack.clock.now, None, "chat", "fact", 0.5, None, 0, "anna", "dm", None),
        owners=frozenset(owners or {"user:anna"}),
    )
    memory = replace(start, **changes)
    async with stack.database.write() as connection:
        await stack.store.insert(connection, {content_key(content): memory}, stack.clock.now)
    return memory


async def replace_for(stack: Stack, old: Memory, *owners: str, new: str, reason: str = "why") -> None:
    async with stack.database.write() as connection:
        await stack.store.supersede(
            connection, old, owners, new, user="anna", reason=reason, now=stack.clock.now
        )


async def test_a_memory_comes_back_as_it_was_kept(stack: Stack) -> None:
    end = stack.clock.now + timedelta(days=7, microseconds=1)
    given = {"subjects": ("anna", "dog"), "expires_at": end, "type": "preference", "importance": 0.875}
    given |= {"place": "acme", "message_id": str(uuid4())}
    memory = await keep(stack, "Anna's Hund heißt Çağla 🐕", "user:anna", "place:acme", **given)
    assert await stack.store.get(memory.id, ANNA, stack.clock.now) == memory


async def test_a_memory_is_found_by_its_id_or_an_unambiguous_beginning_of_it(stack: Stack) -> None:
    ids = [f"12345678-0000-4000-8000-00000000000{end}" for end in (1, 2)]
    for id in ids:
        await keep(stack, f"fact {id}", id=id)
    other = await keep(stack, "a fact")
    for given in (other.id, other.id[:20], other.id[:8]):
        assert await stack.store.get(given, ANNA, stack.clock.now) == other
    assert (await stack.store.get(ids[1], ANNA, stack.clock.now)).id == ids[1]
    for given in ("12345678", other.id[:7], "", "%", "________", "no such memory", "7" * 36):
        with pytest.raises(NotFound, match="`hachi memories list` shows the ids"):
            await stack.store.get(given, ANNA, stack.clock.now)


async def test_a_fact_is_compared_with_what_is_named_and_what_has_changed_since(
    stack: Stack,
) -> None:
    async def near(since: Moment | None, *ids: str) -> set[str]:
        async with stack.database.write() as connection:
            found = await stack.store.comparable_facts(
                connection, ["user:anna"], "", stack.clock.now, ids, since
            )
        return {memory.content for memory in found.near}

    named, other = await keep(stack, "named"), await keep(stack, "other")
    before = (await changes.now(stack.database)).moment
    await keep(stack, "new")
    foreign = await keep(stack, "ben's", "user:ben")
    expired = await keep(stack, "expired", expires_at=stack.clock.now)
    superseded = await keep(stack, "superseded")
    await replace_for(stack, superseded, "user:anna", new=named.id)
    assert await near(before) == {"new"}
    assert await near(before, named.id, foreign.id, expired.id, superseded.id) == {"named", "new"}
    assert await near(None, other.id) == {"other"}
    async with stack.database.write() as connection:
        await link(connection, foreign.id, ["user:anna"], content_key("ben's"), stack.clock.now)
    assert await near(before) == {"new", "ben's"}
    assert await near((await changes.now(stack.database)).moment) == set()


async def test_importance_only_rises_and_the_end_is_only_put_off(stack: Stack) -> None:
    week, month = (stack.clock.now + timedelta(days=days) for days in (7, 30))
    memory = await keep(stack, "a fact", expires_at=week, importance=0.5)

    async def refreshed(**values: Any) -> tuple[float, Any]:
        async with stack.database.write() as connection:
            await stack.store.refresh(connection, memory, **values)
        now = await stack.the_memory()
        return now.importance, now.expires_at

    assert await refreshed(importance=0.75) == (0.75, week)
    assert await refreshed(importance=0.25, expires_at=month) == (0.75, month)
    assert await refreshed(expires_at=week) == (0.75, month)
    assert await refreshed(expires_at=None) == (0.75, None)
    assert await refreshed(expires_at=week) == (0.75, None)
