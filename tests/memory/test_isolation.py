"""Nobody reads what they may not: whatever was said, wherever, and whatever the index claims."""

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.audience import Audience, Place, owners_of, user_key
from memory.facts.compare import content_key
from memory.people.links import Links, NotLinked
from memory.records import Decision, Hit
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
LINK, UNLINK = st.tuples(st.just("link"), who, who), st.tuples(st.just("unlink"), who)
MOVE = st.tuples(st.just("move"), st.integers(0, 20))
PERIODIC_JOBS = st.tuples(st.just("periodic_jobs"))
STORY = st.lists(
    st.one_of(SAY, SAY, SAY, HEAR, HEAR, CORRECT, DELETE, MOVE, PERIODIC_JOBS, LINK, UNLINK),
    min_size=3,
    max_size=14,
)

_worlds = count()


@dataclass
class World:
    """A few people with names of their own, and the model: which texts were ever said for which owner key."""

    stack: Stack
    number: int = field(default_factory=lambda: next(_worlds))
    said: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: list[str] = field(default_factory=list)
    wrote: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The places in which each person wrote a message."""
    linked: list[set[str]] = field(default_factory=list)
    """Accounts of one person."""
    alone: bool = True
    """Whether what was decided still holds when it is looked at."""

    def user(self, name: str) -> str:
        return f"{name}-{self.number}"

    def place(self, name: str) -> Place:
        return Place.parse(name if name == "dm" else f"world-{self.number}/{name}")

    def audience(self, name: str, place: str) -> Audience:
        return Audience.of(self.user(name), self.place(place))

    def one_person(self, name: str) -> set[str]:
        return next((group for group in self.linked if name in group), {name})

    async def link(self, one: str, other: str) -> None:
        """The one gets a code, the other types it."""
        groups, now = [self.one_person(one), self.one_person(other)], self.stack.clock.now
        links = Links(self.stack.database)
        code = await links.code(self.user(one), now)
        if groups[0] == groups[1] or min(map(len, groups)) > 1:
            with pytest.raises(NotLinked):
                await links.link(code, self.user(other), now)
            return
        await links.link(code, self.user(other), now)
        self.linked = [*(group for group in self.linked if group not in groups), groups[0] | groups[1]]

    async def unlink(self, name: str) -> None:
        await Links(self.stack.database).unlink(self.user(name))
        self.linked = [group - {name} for group in self.linked]
        self.linked = [group for group in self.linked if len(group) > 1]

    async def reader(self, name: str, place: str, may: Collection[str]) -> Audience:
        """What is read by somebody who can read these places, as the platform says."""
        where, links = self.place(place), Links(self.stack.database)
        if not where.private:
            return await links.audience(self.user(name), where)
        besides, wrote = await links.with_places(self.user(name))
        can_read = {self.place(one) for one in may}
        places = {one.key: str(one) for one in wrote if one in can_read}
        return Audience.of(self.user(name), where, besides | places)

    def readable(self, name: str, place: str, may: Collection[str]) -> set[str]:
        """The texts that may be read there."""
        if place != "dm":
            return self.may_hear(self.audience(name, place))
        places = [self.place(one).key for one in self.wrote[name] & {*may}]
        people = [user_key(self.user(one)) for one in self.one_person(name)]
        return set().union(*(self.said[key] for key in (*people, *places)))

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
        self.wrote[name] |= {place} - {"dm"}
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

    async def check(self, readers: Iterable[tuple[str, str, Collection[str]]]) -> None:
        for name, place, may in readers:
            audience, allowed = await self.reader(name, place, may), self.readable(name, place, may)
            assert await self.everything_read_by(audience) <= allowed, (name, place, may)
            own, hits = self.audience(name, place), list[Hit]()
            for question in QUESTIONS:
                hits += await self.stack.recall.search(question, audience, limit=50)
            for memory in (hit.memory for hit in hits if hit.memory):
                assert bool(audience.origin(memory.owners)) != own.may_read(memory.owners), "it is named"
            found = {hit.id for hit in hits if hit.kind == "message"}
            for lines in (await self.stack.transcript.neighbours(found, audience)).values():
                for line in lines:
                    assert bool(audience.origin(line.owners)) != own.may_read(line.owners), "so is each line"

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
        texts |= {one.title for one in await stack.conversations.conversations(audience, now, 50)}
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
READERS = st.lists(st.tuples(who, where, st.sets(st.sampled_from(PLACES[1:]))), min_size=2, max_size=4)


async def live(stack: Stack, story: list[Any], lying: bool, readers: Any) -> None:
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
    await world.check(product(USERS, PLACES, [PLACES[1:]]))
