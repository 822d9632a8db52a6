"""Whatever was said, asked and summarised: what a person had forgotten is found nowhere, and nothing else is
lost."""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from agent.services.arguments import audience_of
from agent.services.transfer.imports import parse_import
from agent.tracing.filters import TraceFilter
from memory.sql.tables import metadata

if TYPE_CHECKING:
    from hachi import Companion

OpenPet = Callable[..., Awaitable[Any]]

USERS, PLACES = ("ann", "ben"), (None, "acme")
FACTS = (
    ("my bank PIN is {}", "what is my bank PIN?"),
    ("my locker has the code {}", "which code has my locker?"),
    ("my parking permit carries number {}", "what number is on the parking permit?"),
)
who, where, which = st.sampled_from(USERS), st.sampled_from(PLACES), st.integers(0, len(FACTS) - 1)
SAY = st.tuples(st.just("say"), who, where, which)
ASK = st.tuples(st.just("ask"), who, where, which)
SETTLE = st.tuples(st.just("settle"), who, where, which)
STORY = st.lists(st.one_of(SAY, SAY, ASK, SETTLE), min_size=2, max_size=8)

NOT_COMPARED = ("revision", "uses", "last_accessed_at")
"""Columns that reading and indexing change."""

_worlds = count()


@dataclass
class World:
    """Two people, in private and in one channel. Each fact holds a number of its own."""

    pet: Companion
    number: int = field(default_factory=lambda: next(_worlds))

    def user(self, name: str) -> str:
        return f"{name}-{self.number}"

    def place(self, name: str | None) -> str | None:
        return name and f"{name}-{self.number}"

    def value(self, name: str, fact: int) -> str:
        """Ten digits, which no id and no duration has by chance."""
        return str(7_310_100_000 + 100 * self.number + 10 * USERS.index(name) + fact)

    async def act(self, kind: str, name: str, place: str | None, fact: int) -> None:
        at: dict[str, Any] = {"user": self.user(name), "place": self.place(place)}
        told, asked = FACTS[fact]
        if kind == "say":
            await self.pet.respond(told.format(self.value(name, fact)), **at, settle=True)
        elif kind == "ask":
            await self.pet.respond(asked, **at)
        else:
            await self.pet.settle()

    async def readable(self) -> str:
        """Everything that either of them may read anywhere."""
        found: list[Any] = await self.traces()
        for name in USERS:
            user = self.user(name)
            found.append(await self.pet.conversations.export(user=user))
            found.append(await self.pet.conversations.export_place(str(self.place("acme")), user=user))
            for place in map(self.place, PLACES):
                at: dict[str, Any] = {"user": user, "place": place}
                found += await self.pet.memories.list(**at)
                found += await self.pet.conversations.messages(**at, limit=100)
                found += await self.pet.components.recall.recent(audience_of(**at), 100)
                found.append(await self.pet.people.context(**at))
                for _, question in FACTS:
                    for author in ("", "hachi"):
                        found += await self.pet.search_memories(question, **at, limit=100, author=author)
        return "\n".join(map(str, found))

    async def traces(self) -> list[Any]:
        wanted, now = TraceFilter(kinds=frozenset()), self.pet.clock()
        listed = await self.pet.traces.list(wanted, now, 500)
        shown = [one.id for one in listed if one.content not in ("hidden", "forgotten")]
        return [*listed, *[await self.pet.traces.get(id, now) for id in shown]]

    async def stored(self, *but: str) -> str:
        """All rows of the database, with the bodies of traces, except these tables."""
        rows = []
        async with self.pet.components.database.read() as connection:
            for table in metadata.sorted_tables:
                columns = [c for c in table.columns if c.name not in NOT_COMPARED]
                if table.name not in but:
                    rows += [
                        str([_text(value) for value in row])
                        for row in await connection.execute(select(*columns))
                    ]
        return "\n".join(sorted(rows))

    async def said(self) -> dict[str, str]:
        """The texts of people's messages, by id."""
        pages = [await self.pet.conversations.messages(user=self.user(name), limit=100) for name in USERS]
        return {line.id: line.text for page in pages for line in page if line.role == "user"}


def _text(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    with suppress(zlib.error):
        return json.loads(zlib.decompress(value))
    return value.hex()


@pytest.fixture
async def pet(open_pet: OpenPet) -> Any:
    return await open_pet()


@pytest.mark.parametrize("purged", [False, True])
async def test_an_import_brings_nothing_back_that_was_forgotten(pet: Companion, purged: bool) -> None:
    for text in ("my bank PIN is 7310199999", "I row on Sundays"):
        await pet.respond(text, user="ann", settle=True)
    whole = await pet.conversations.export(user="ann")
    plain = [{"author": "ann", "text": "my PUK is 7310199999", "sent_at": pet.clock()}]
    assert await pet.conversations.import_messages(plain, user="ann") == 1
    for message in await pet.conversations.messages(user="ann"):
        if "7310199999" in message.text and message.role == "user":
            await pet.conversations.forget(message.id, user="ann")
    pet.clock.advance(days=purged)
    await pet.admin.purge()

    assert await pet.conversations.import_messages(plain, user="ann") == 0
    again = await pet.conversations.import_(parse_import(whole, user="ann"), user="ann")

    assert (again.messages, again.memories) == (0, 0)
    assert "7310199999" not in str(await pet.conversations.export(user="ann"))
    await pet.people.erase(user="ann")
    again = await pet.conversations.import_(parse_import(whole, user="ann"), user="ann")
    assert (again.messages, again.memories) == (4, 2), "somebody who is erased is new"


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(story=STORY, forgetful=who, fact=which, place=where, by_message=st.booleans())
async def test_what_is_forgotten_is_nowhere_and_nothing_else_is_lost(
    pet: Companion,
    story: list[tuple[str, str, str | None, int]],
    forgetful: str,
    fact: int,
    place: str | None,
    by_message: bool,
) -> None:
    world = World(pet)
    for kind, name, at, number in [*story, ("say", forgetful, place, fact), ("settle", forgetful, None, 0)]:
        await world.act(kind, name, at, number)
    user, value = world.user(forgetful), world.value(forgetful, fact)
    kept = (
        "work",
        "traces",
        "trace_bodies",
        "trace_rows",
        "active_conversations",
        "rests_on",
        "figures",
        "changes",
    )
    before, said = await world.stored(*kept), await world.said()
    assert value in await world.readable()

    receipts = []
    if by_message:
        for id, text in said.items():
            if value in text:
                receipts.append(await pet.conversations.forget(id, user=user))
    else:
        while holding := [memory for memory in await pet.memories.list(user=user) if value in memory.content]:
            receipts.append(await pet.memories.forget(holding[0].id, user=user))
    await pet.settle()

    assert value not in await world.readable()
    assert await world.said() == {id: text for id, text in said.items() if value not in text}
    others = {world.value(name, number) for name in USERS for number in range(len(FACTS))} - {value}
    facts = " ".join(
        [memory.content for name in USERS for memory in await pet.memories.list(user=world.user(name))]
    )
    assert {number for number in others if any(number in text for text in said.values())} == {
        number for number in others if number in facts
    }
    assert receipts
    for receipt in reversed(receipts):
        await pet.memories.undo_forget(str(receipt.undo_id), user=user)
    assert await world.stored(*kept) == before
    assert value in await world.readable()

    for id in [id for id, text in said.items() if value in text]:
        await pet.conversations.forget(id, user=user)
    for memory in await pet.memories.list(user=user):
        if value in memory.content:
            await pet.memories.forget(memory.id, user=user)
    pet.clock.advance(days=1)
    await pet.admin.purge()
    await pet.settle()
    assert value not in await world.stored()
