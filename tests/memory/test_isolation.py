"""Nobody reads what they may not: whatever was said, wherever, and whatever the index claims."""

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.audience import Audience, Place, owners_of
from memory.facts.compare import content_key
from memory.records import Decision
from memory.sql.messages.conversations import conversations_of
from memory.sql.tables import memories
from tests.memory.conftest import Stack

USERS = ("anna", "ben", "cleo")
PLACES = ("dm", "acme", "acme/general", "home")
TEXTS = (
    "Mickael broke his shoulder",
    "Mickael broke his shoulder on 10 January 2026",
    "Mickael broke his left shoulder",
    "Mickael lives in Paris",
    "Mickael lives in Lyon",
    "Mickael's dog is called Rex",
    "Mickael's dog is named Rex",
    "dev is also called Mickael",
    "dev lives in Rome",
)
QUESTIONS = ("what do you know about Mickael's shoulder and dog?", "where does dev live?", "what is new?")

who, where, text = st.sampled_from(USERS), st.sampled_from(PLACES), st.sampled_from(TEXTS)
SAY = st.tuples(st.just("say"), who, where, text, st.sampled_from([None, "1d", "30d"]))
HEAR = st.tuples(st.just("receive"), who, where, text)
CORRECT = st.tuples(st.just("correct"), who, where, text, st.integers(0, 20))
DELETE = st.tuples(st.just("delete"), who, where, st.integers(0, 20))
MOVE = st.tuples(st.just("move"), st.integers(0, 20))
UPKEEP = st.tuples(st.just("upkeep"))
STORY = st.lists(st.one_of(SAY, SAY, SAY, HEAR, CORRECT, DELETE, MOVE, UPKEEP), min_size=3, max_size=14)

_worlds = count()


@dataclass
class World:
    """A few people with names of their own, and the model: which texts were ever said for which owner key."""

    stack: Stack
    number: int = field(default_factory=lambda: next(_worlds))
    said: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: list[str] = field(default_factory=list)
    alone: bool = True
    """Whether what was decided still holds when it is looked at."""

    def user(self, name: str) -> str:
        return f"{name}-{self.number}"

    def place(self, name: str) -> Place:
        return Place.parse(name if name == "dm" else f"world-{self.number}/{name}")

    def audience(self, name: str, place: str) -> Audience:
        return Audience.of(self.user(name), self.place(place))

    def may_hear(self, audience: Audience) -> set[str]:
        return set().union(*(self.said[key] for key in audience.keys))

    def note(self, name: str, place: str, content: str) -> None:
        for owner in owners_of(self.user(name), self.place(place)):
            self.said[owner].add(content_key(content))

    async def say(self, name: str, place: str, content: str, ttl: str | None) -> None:
        self.note(name, place, content)
        decision = await self.stack.remember(content, self.user(name), str(self.place(place)), ttl=ttl)
        await self.told(decision, self.audience(name, place))

    async def correct(self, name: str, place: str, content: str, which: int) -> None:
        if self.ids:
            self.note(name, place, content)
            target = self.ids[which % len(self.ids)]
            decision = await self.stack.remember(
                content, self.user(name), str(self.place(place)), replaces=target
            )
            await self.told(decision, self.audience(name, place))

    async def told(self, decision: Decision, audience: Audience) -> None:
        """What a decision tells is only what those present may hear."""
        allowed = self.may_hear(audience)
        assert {content_key(memory.content) for memory in decision.close} <= allowed
        readable = " ".join(known for known in TEXTS if content_key(known) in allowed)
        hidden = {*re.findall(r"\w+", " ".join(TEXTS))} - {*re.findall(r"\w+", readable)}
        assert hidden.isdisjoint(re.findall(r"\w+", decision.reason.partition(":")[2])), decision
        named = [id for id in (decision.id, decision.target_id) if id]
        now = self.stack.clock.now
        if decision.id and self.alone:
            assert set(await self.stack.store.by_ids([decision.id], audience, now)) == {decision.id}
        found = await self.stack.store.where(memories.c.id.in_(named), now)
        assert {content_key(memory.content) for memory in found} <= allowed
        self.ids += named

    async def receive(self, name: str, place: str, content: str) -> None:
        self.note(name, place, content)
        await self.stack.receive(content, self.user(name), str(self.place(place)))

    async def delete(self, name: str, place: str, which: int) -> None:
        mine = await self.stack.store.newest(self.audience(name, place), self.stack.clock.now)
        if mine and (memory := mine[which % len(mine)]).user_id == self.user(name):
            await self.stack.delete(memory, self.user(name))

    async def move(self, days: int) -> None:
        self.stack.clock.advance(days=days)

    async def periodic_jobs(self) -> None:
        await self.stack.expire()
        await self.stack.indexing.catch_up()

    async def check(self, readers: Iterable[tuple[str, str]]) -> None:
        for name, place in readers:
            audience = self.audience(name, place)
            allowed = self.may_hear(audience)
            assert await self.everything_read_by(audience) <= allowed, (name, place)

    async def everything_read_by(self, audience: Audience) -> set[str]:
        stack, now = self.stack, self.stack.clock.now
        read = await stack.store.newest(audience, now)
        texts = {memory.content for memory in read}
        assert all(audience.may_read(memory.owners) for memory in read)
        assert all(memory.expires_at is None or memory.expires_at > now for memory in read)
        hits = await stack.recall.recent(audience, 50)
        for question in QUESTIONS:
            hits += await stack.recall.search(question, audience, limit=50)
            hits += await stack.recall.search(question, audience, limit=50, author="hachi")
        texts |= {hit.content for hit in hits}
        assert {hit.id for hit in hits if hit.kind == "memory"} <= {memory.id for memory in read}
        for id in set(self.ids):
            texts |= {memory.content for memory in (await stack.store.by_ids([id], audience, now)).values()}
            for step in await stack.history.of(id, audience):
                texts |= {step.old_content, step.new_content or step.old_content}
        for conversation in (
            *(f"dm:{self.user(name)}" for name in USERS),
            *(self.place(place).key for place in PLACES[1:]),
        ):
            texts |= {m.text for m in await stack.transcript.last(conversation, audience, 50)}
            texts |= {m.text for m in await stack.transcript.page(audience, 50, conversation=conversation)}
        texts |= {one.title for one in await conversations_of(stack.database, audience, now, 50)}
        assert len(await stack.store.times(audience, now)) == len(read)
        return {content_key(text) for text in texts}

    async def let_the_index_lie(self) -> None:
        """Everything there is, shown to everybody."""
        kept = [
            memory
            for id in set(self.ids)
            for memory in await self.stack.store.where(memories.c.id == id, self.stack.clock.now)
        ]
        self.stack.let_the_index_lie(kept)


PROFILE: Any = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
READERS = st.sets(st.tuples(who, where), min_size=2, max_size=4)


async def live(stack: Stack, story: list[Any], lying: bool, readers: set[tuple[str, str]]) -> None:
    world = World(stack)
    for kind, *details in story:
        await getattr(world, kind)(*details)
    if lying:
        await world.let_the_index_lie()
    await world.check(readers)


WORLD = given(story=STORY, lying=st.booleans(), readers=READERS)


@settings(max_examples=5, **PROFILE)
@WORLD
async def test_nobody_reads_what_was_not_said_to_them(
    stack: Stack, story: Any, lying: bool, readers: Any
) -> None:
    await live(stack, story, lying, readers)


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("WORLDS", "300")), **PROFILE)
@WORLD
async def test_nor_in_many_worlds(stack: Stack, story: Any, lying: bool, readers: Any) -> None:
    await live(stack, story, lying, readers)


async def test_nobody_reads_anything_said_by_others_at_the_same_time(stack: Stack) -> None:
    world = World(stack, alone=False)
    await asyncio.gather(*(world.say(*said, None) for said in product(USERS, PLACES, TEXTS[:2])))
    await world.check(product(USERS, PLACES))
