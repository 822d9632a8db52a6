"""Derived text does not outlive the message or the memory that it rests on."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.facts.derived import no_longer, remaining, withhold
from memory.sql.messages.summaries import LOOK_BACK
from memory.sql.rests_on import let_go, record
from memory.sql.tables import memories

if TYPE_CHECKING:
    from tests.memory.conftest import Stack


on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)
on_postgresql = pytest.mark.parametrize("on_database", ["postgresql"], indirect=True)


@on_both
async def test_a_summary_is_emptied_and_due_again_when_a_message_it_covers_no_longer_holds(
    stack: Stack,
) -> None:
    told = await stack.receive("I moved to Lisbon.", conversation="talk")
    later = await stack.receive("And to Porto.", conversation="talk")
    await stack.store_summary("She moved to Lisbon.", after=0, covered=1)

    async with stack.database.write() as connection:
        await withhold(connection, stack.clock.now, message_ids=[later])
    kept = await stack.conversations.of("talk", "user:anna", stack.clock.now)
    assert kept is not None
    assert kept.summary == "She moved to Lisbon."

    async with stack.database.write() as connection:
        await withhold(connection, stack.clock.now, message_ids=[told])
    kept = await stack.conversations.of("talk", "user:anna", stack.clock.now)
    assert kept is not None
    assert (kept.summary, kept.covered) == ("", 1)
    [due] = await stack.queue.claim_due(stack.clock.now, 10)
    assert (due.kind, due.user_id) == (LOOK_BACK, "anna")


TELL = st.tuples(st.just("tell"), st.sampled_from(["", "acme"]), st.sampled_from([None, None, "1d"]))
CHANGE = st.tuples(st.sampled_from(["correct", "delete", "undo"]), st.integers(0, 9), st.booleans())
UPKEEP = st.tuples(st.sampled_from(["summarise", "summarise", "day", "purge"]))
_worlds = count()


class World:
    """One person, who tells facts in private and in a channel. Each fact has a word of its own, and every
    derived text repeats whatever it may be written from."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.user = stack, f"anna{next(_worlds)}"
        self.channel = f"acme{self.user}"
        self.told = count()

    async def step(self, kind: str, *given: Any) -> None:
        if kind == "tell":
            await self.tell(self.channel if given[0] else None, given[1])
        elif kind == "summarise":
            for place in (None, self.channel):
                await self.summarise(place)
        elif kind == "day":
            self.stack.clock.move(days=1)
        elif kind == "purge":
            await self.stack.purge.expire()
        else:
            await self.change(kind, *given)
        self.stack.clock.move(minutes=1)

    async def tell(self, place: str | None, ttl: str | None = None, replaces: str | None = None) -> None:
        word = f"w{next(self.told)}x"
        heard = await self.stack.receive(f"I keep {word}.", self.user, place, sent_at=self.stack.clock.now)
        await self.stack.remember(
            f"{self.user} keeps {word}", self.user, place, ttl=ttl, replaces=replaces, message_id=heard
        )

    async def change(self, kind: str, number: int, in_channel: bool) -> None:
        place = self.channel if in_channel else None
        known = await self.stack.memories(self.user, place)
        if not known:
            return
        memory = known[number % len(known)]
        if kind == "correct":
            await self.tell(place, replaces=memory.id)
        elif kind == "delete":
            await self.stack.purge.delete_for(memory, self.user)
        else:
            audience = Audience.of(self.user, Place.parse(place))
            with suppress(NotFound):
                await self.stack.history.undo(memory.id, audience, self.user, self.stack.clock.now)

    async def summarise(self, place: str | None) -> None:
        """What the consolidation does, with a model that repeats everything."""
        where, now = Place.parse(place), self.stack.clock.now
        talk, owner = (where.key, where.key) if place else (f"dm:{self.user}", f"user:{self.user}")
        active = await self.stack.conversations.of(talk, owner, now)
        after = active.covered if active else 0
        lines = await self.stack.transcript.following(talk, owner, after, 50, most=50)
        rebuilt = active is None or not active.summary
        known = {memory.id for memory in await self.stack.memories(self.user, place)}
        async with self.stack.database.write() as connection:
            heard = [line.message for line in lines]
            if active and active.withheld:
                heard = [*await remaining(connection, talk, owner, after, 50), *heard]
            over = " ".join(await no_longer(connection, [one.id for one in heard], owner, now))
            told = [word for one in heard for word in words_in(one.text) if word not in over]
            written = await self.stack.conversations.update_in(
                connection,
                talk,
                owner,
                " ".join([active.summary if active else "", *told]),
                after=after,
                revision=active.revision if active else 0,
                covered=lines[-1].seq if lines else after,
                now=now,
                rebuilt=rebuilt,
            )
            if written:
                await let_go(connection, [written.id] if rebuilt else [])
                await record(connection, written.id, known, "covered")

    async def check(self) -> None:
        """Each reader is shown derived texts about what holds for them, and about nothing that is known to
        hold no longer. What was said is history: it may be told after the fact is purged."""
        async with self.stack.database.read() as connection:
            own = select(memories.c.content).where(memories.c.user_id == self.user)
            stored = {content.split()[-1] for content in await connection.scalars(own)}
        for place in (None, self.channel):
            where = Place.parse(place)
            audience = Audience.of(self.user, where)
            known = {memory.content.split()[-1] for memory in await self.stack.memories(self.user, place)}
            summaries = await self.stack.conversations.newest(audience, self.stack.clock.now, 9)
            shown = " ".join(one.summary for one in summaries)
            assert words_in(shown) & stored <= known


def words_in(text: str) -> set[str]:
    return set(re.findall(r"w\d+x", text))


STEPS = st.lists(st.one_of(TELL, TELL, CHANGE, UPKEEP, UPKEEP), min_size=3, max_size=14)
PROFILE: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@settings(max_examples=30, **PROFILE)
@given(steps=STEPS)
async def test_no_derived_text_outlives_what_it_rests_on(stack: Stack, steps: list[tuple[Any, ...]]) -> None:
    await live(stack, steps)


@on_postgresql
@settings(max_examples=5, **PROFILE)
@given(steps=STEPS)
async def test_nor_does_it_on_postgresql(stack: Stack, steps: list[tuple[Any, ...]]) -> None:
    await live(stack, steps)


async def live(stack: Stack, steps: list[tuple[Any, ...]]) -> None:
    world = World(stack)
    for step in steps:
        await world.step(*step)
        await world.check()


@on_both
async def test_a_message_outlives_its_fact_and_its_summary_is_written_again_from_it(stack: Stack) -> None:
    """With the list of what no longer holds, as long as that is stored."""
    message = await stack.receive("I have the flu", conversation="talk")
    await stack.remember("Anna has the flu", ttl="1d", message_id=message)
    stack.clock.move(seconds=1)
    paris = await stack.remember("Anna lives in Paris", message_id=message)
    await stack.remember("Anna lives in Lyon", replaces=paris.id)
    await stack.store_summary("Anna has the flu.", after=0, covered=1)
    stack.clock.move(days=2)
    now, here = stack.clock.now, ("talk", "user:anna")
    kept = await stack.conversations.of(*here, now)
    assert kept is not None
    assert (kept.summary, kept.withheld) == ("", True)
    async with stack.database.write() as connection:
        [said] = await remaining(connection, *here, 1, 50)
        assert said.text == "I have the flu"
        over = await no_longer(connection, [message], "user:anna", now)
        assert over == ("Anna has the flu", "Anna lives in Paris (since then: Anna lives in Lyon)")
        given = {"after": 1, "revision": kept.revision, "covered": 1, "now": now, "rebuilt": True}
        assert await stack.conversations.update_in(connection, *here, "She had the flu.", **given)
    await stack.purge.expire()
    kept = await stack.conversations.of(*here, now)
    assert kept is not None
    assert kept.summary == "She had the flu."
