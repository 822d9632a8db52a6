"""The index in this process shows what a fresh one reads from SQL, whoever has written what meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from waiting import turns_of_others

from memory.index import CHUNKS, LANES, Question
from memory.index import rows as index_rows
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.engine import Engine
from memory.sql import changes
from memory.sql.engine import Database
from memory.sql.tables import (
    active_conversations,
    forgettings,
    hidden,
    knowledge_chunks,
    knowledge_documents,
    memories,
    memory_owners,
    messages,
    replacements,
)
from tests.memory.conftest import Stack, StackBuilder, on_both

WORDS = "dogs bark cats purr birds sing rain falls".split()
ROOM = 50_000_000


class Hashed:
    """An embedder of two words a dimension, as quick as the bundled one."""

    name = "bundled"
    dimension = 4
    thresholds = BundledEmbedder.thresholds

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        return [np.array([1 + text.count(word) for word in WORDS[::2]], np.float32) for text in texts]

    async def close(self) -> None: ...


@dataclass
class World:
    """Two people who write and talk, in private and in a place, by two processes with a transaction each."""

    databases: Sequence[Database]
    now: datetime
    name: str = field(default_factory=lambda: uuid4().hex[:8])
    told: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    _open: dict[int, tuple[AsyncExitStack, AsyncConnection]] = field(default_factory=dict)
    _touched: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))

    @property
    def owners(self) -> list[str]:
        return [f"user:a{self.name}", f"user:b{self.name}", f"place:{self.name}", f"place:{self.name}/x"]

    async def writer(self, number: int, touched: str) -> AsyncConnection:
        """The open transaction of a process. Nobody waits for what another one has touched: that one ends."""
        if self.databases[0].sqlite or touched in self._touched[1 - number]:
            await self.end(1 - number)
        if number not in self._open:
            closing = AsyncExitStack()
            self._open[number] = (
                closing,
                await closing.enter_async_context(self.databases[number].engine.begin()),
            )
        self._touched[number].add(touched)
        return self._open[number][1]

    async def end(self, number: int) -> None:
        self._touched[number].clear()
        if number in self._open:
            await self._open.pop(number)[0].aclose()

    async def say(self, number: int, who: int, where: int, words: str, role: str) -> None:
        by = await self.writer(number, id := str(uuid4()))
        place = self.owners[2 + where] if where < 2 else ""
        row = {"id": id, "conversation_id": f"{self.name} {where}", "role": role, "place": place}
        row |= {"user_id": self.owners[who].removeprefix("user:"), "author": f"author {who}", "text": words}
        await by.execute(insert(messages).values(**row, sent_at=self.now))
        self.told.append(row["id"])

    async def hide(self, number: int, message: int, kind: str) -> None:
        if self.told:
            by = await self.writer(number, self.told[message % len(self.told)])
            id, row = str(uuid4()), self.told[message % len(self.told)]
            await by.execute(
                insert(forgettings).values(id=id, person="a", at=self.now, until=None, why="forgotten")
            )
            await by.execute(insert(hidden).values(forgetting_id=id, kind=kind, row_id=row))

    async def show(self, number: int, message: int) -> None:
        if self.told:
            by = await self.writer(number, self.told[message % len(self.told)])
            await by.execute(delete(hidden).where(hidden.c.row_id == self.told[message % len(self.told)]))

    async def unsay(self, number: int, message: int) -> None:
        if self.told:
            by = await self.writer(number, self.told[message % len(self.told)])
            await by.execute(delete(messages).where(messages.c.id == self.told[message % len(self.told)]))

    async def learn(self, number: int, owners: set[int], words: str, hours: int) -> None:
        by = await self.writer(number, id := str(uuid4()))
        row = {"id": id, "content": words, "subjects": ["pets"], "created_at": self.now, "source": "note"}
        row |= {"type": "fact", "importance": 0.5, "user_id": "a", "place": "dm"}
        row |= {"expires_at": self.now + timedelta(hours=hours) if hours else None}
        await by.execute(insert(memories).values(**row))
        links = [{"memory_id": id, "owner": self.owners[at], "content_key": id} for at in owners]
        await by.execute(insert(memory_owners), links)
        self.facts.append(id)

    async def replace(self, number: int, old: int, owner: int, new: int) -> None:
        if self.facts:
            old_id, new_id = (self.facts[at % len(self.facts)] for at in (old, new))
            by = await self.writer(number, old_id)
            theirs = replacements.c.old_id == old_id, replacements.c.owner == self.owners[owner]
            await by.execute(delete(replacements).where(*theirs))
            link = select(memory_owners).where(
                memory_owners.c.memory_id == old_id, memory_owners.c.owner == self.owners[owner]
            )
            if old_id != new_id and (await by.execute(link)).first():
                row = {"old_id": old_id, "new_id": new_id, "owner": self.owners[owner]}
                row |= {"lasts": "while it holds", "at": self.now, "reason": ""}
                await by.execute(insert(replacements).values(**row))

    async def forget(self, number: int, fact: int) -> None:
        if self.facts:
            by = await self.writer(number, self.facts[fact % len(self.facts)])
            await by.execute(delete(memories).where(memories.c.id == self.facts[fact % len(self.facts)]))

    async def add(self, number: int, owner: int, words: str) -> None:
        by = await self.writer(number, id := str(uuid4()))
        row = {"id": id, "owner": self.owners[owner], "path": id, "title": "t", "digest": "d"}
        await by.execute(insert(knowledge_documents).values(**row, added_at=self.now))
        chunk = {"id": str(uuid4()), "document_id": id, "chunk_index": 0, "heading": "h", "text": words}
        await by.execute(insert(knowledge_chunks).values(**chunk))
        self.documents.append(id)

    async def drop(self, number: int, document: int) -> None:
        if self.documents:
            by = await self.writer(number, self.documents[document % len(self.documents)])
            gone = knowledge_documents.c.id == self.documents[document % len(self.documents)]
            await by.execute(delete(knowledge_documents).where(gone))

    async def sum_up(self, number: int, owner: int, words: str) -> None:
        by = await self.writer(number, self.owners[owner])
        key = (active_conversations.c.owner == self.owners[owner],)
        written = update(active_conversations).where(*key)
        changed = await by.execute(
            written.values(summary=words, revision=active_conversations.c.revision + 1)
        )
        if not changed.rowcount:
            row = {"id": str(uuid4()), "conversation_id": self.name, "owner": self.owners[owner]}
            await by.execute(insert(active_conversations).values(**row, summary=words, updated_at=self.now))


who, which, words = (
    st.integers(0, 1),
    st.integers(0, 7),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
)
step = st.one_of(
    *[st.tuples(st.just("say"), who, st.integers(0, 2), words, st.sampled_from(["user", "assistant"]))] * 2,
    st.tuples(st.just("hide"), which, st.sampled_from(["message", "told"])),
    st.tuples(st.just("show"), which),
    st.tuples(st.just("unsay"), which),
    st.tuples(st.just("learn"), st.sets(st.integers(0, 3), min_size=1), words, st.integers(0, 3)),
    st.tuples(st.just("replace"), which, st.integers(0, 3), which),
    st.tuples(st.just("forget"), which),
    st.tuples(st.just("add"), st.integers(0, 3), words),
    st.tuples(st.just("drop"), which),
    st.tuples(st.just("sum_up"), st.integers(0, 1), words),
)
act = st.one_of(
    st.tuples(who, step),
    st.tuples(who, step),
    st.tuples(who, st.just(("end",))),
    st.tuples(st.just(0), st.just(("read",))),
    st.tuples(st.just(0), st.just(("wait",))),
)


async def seen(engine: Engine, owners: Sequence[str], now: datetime) -> list[dict[str, dict[str, float]]]:
    """All that each reader finds, in each lane, with its score."""
    [vector] = await Hashed().embed(["dogs cats"])
    found = []
    for audience in ({owners[0]}, {owners[1], owners[2]}, {*owners[2:]}):
        for kinds in (frozenset({"memory", "message", "summary"}), CHUNKS):
            question = Question(frozenset(audience), now, vector, " ".join(WORDS), kinds, limit=1000)  # type: ignore[arg-type]
            rankings = await engine.search(question)
            found.append({lane: {hit.id: hit.score for hit in getattr(rankings, lane)} for lane in LANES})
    return found


def alike(one: Any, other: Any) -> bool:
    return all(
        a.keys() == b.keys() and all(a[id] == pytest.approx(b[id], abs=1e-4) for id in a)
        for reader, same in zip(one, other, strict=True)
        for a, b in zip(reader.values(), same.values(), strict=True)
    )


READ = (0, ("read",))
ONE_SAYS, OTHER_ANSWERS = ("say", 0, 1, "dogs", "user"), ("say", 1, 1, "cats", "user")


@on_both
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([READ, (0, ONE_SAYS), (1, OTHER_ANSWERS), (0, ("end",)), READ, (1, ("end",))])
@example([READ, (0, ONE_SAYS), (1, OTHER_ANSWERS), (1, ("end",)), READ, (0, ("end",))])
@given(acts=st.lists(act, min_size=4, max_size=30))
async def test_it_shows_what_a_fresh_one_does_in_whatever_order_others_commit(
    stack: Stack, another: Stack, several_connections: None, acts: list[Any]
) -> None:
    world = World([stack.database, another.database], stack.clock.now)
    engine = Engine(stack.database, Hashed(), ROOM)
    for number, (name, *rest) in [*acts, READ, (0, ("end",)), READ, (1, ("end",)), READ]:
        if name == "read" and not (stack.database.sqlite and world._open):
            fresh = Engine(stack.database, Hashed(), ROOM)
            shown, right = [await seen(one, world.owners, world.now) for one in (engine, fresh)]
            assert alike(shown, right)
        elif name == "wait":
            world.now += timedelta(hours=1)
        elif name == "end":
            await world.end(number)
        elif name != "read":
            await getattr(world, name)(number, *rest)


@pytest.mark.parametrize("key", ["user:anna", "place:town"])
async def test_windows_are_the_same_however_few_rows_are_read_at_once(stack: Stack, key: str) -> None:
    for talk in "abababababtttttabababab":
        for user in ("anna", "ben"):
            await stack.receive("words", user, "town" if talk == "t" else None, conversation=talk)
    rows, read = stack.indexing.engine.rows, []
    for size in (100, 1, 2, 3, 4, 5, 6, 7):
        parts = [part async for part in rows.of_owner(key, stack.clock.now, size)]
        read.append({row.point.id: row.window for part in parts for row in part})
    assert (len(read[0]), read[1:]) == (10 if key == "place:town" else 23, read[:1] * 7)


async def test_facts_become_rows_of_the_index_a_part_at_a_time(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, of_memory = list[Any](), index_rows._of_memory
    for number in range(5):
        await stack.remember(f"fact {number}", place="town")
    monkeypatch.setattr(index_rows, "_of_memory", lambda links: made.append(1) or of_memory(links))
    parts = stack.indexing.engine.rows.of_owner("user:anna", stack.clock.now, 2)
    assert [(len(part), len(made)) async for part in parts] == [(2, 2), (2, 4), (1, 5)]


class Slow(Hashed):
    """An embedder whose vectors are stored."""

    name = "openai:slow"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        self.texts += texts
        return await super().embed(texts)


async def test_another_embedders_vectors_are_made_once_and_words_are_found_meanwhile(
    database: Database, build_stack: StackBuilder, open_again: Any
) -> None:
    one, two = await build_stack(database, Slow()), await build_stack(await open_again(), Slow())
    for stack in (one, two):
        stack.indexing.wake = lambda: None  # type: ignore[method-assign]
    await one.receive("dogs bark at birds")
    await one.remember("Anna's cats purr")
    question = Question(frozenset({"user:anna"}), one.clock.now, [1, 0, 0, 0], "dogs cats")
    found = await one.indexing.search(question)
    assert (len(found.words), len(found.dense), found.partial) == (2, 1, True), (
        "a fact is stored with its vector"
    )
    await one.indexing.catch_up()
    one.embedder.real.texts.clear()
    for stack in (one, two):
        found = await stack.indexing.search(question)
        assert (len(found.words), len(found.dense), len(found.window_dense)) == (2, 2, 1)
        assert not found.partial
    assert await two.indexing.catch_up() == 0
    assert (one.embedder.real.texts, two.embedder.real.texts) == ([], [])


async def test_those_who_searched_last_stay_and_one_that_is_too_big_is_searched_in_part(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.index.engine.AT_A_TIME", 16)
    for user in ("anna", "ben"):
        for number in range(90):
            await stack.receive(f"message {number}", user)
    engine = Engine(stack.database, Hashed(), ROOM)
    question = Question(frozenset({"user:anna"}), stack.clock.now, text="message", limit=100)
    await engine.search(question)
    small = Engine(stack.database, Hashed(), engine.bytes + 1_000)
    for user in ("anna", "ben", "anna"):
        found = await small.search(replace(question, audience=frozenset({f"user:{user}"})))
        assert (len(found.words), found.partial) == (90, False)
        assert await small.count() == 90
    tiny = Engine(stack.database, Hashed(), engine.bytes // 2)
    found = await tiny.search(question)
    assert found.partial
    assert 0 < len(found.words) < 90
    newest = select(messages.c.id).where(messages.c.user_id == "anna").order_by(messages.c.seq.desc())
    [row] = await stack.database.rows(newest.limit(1))
    assert row.id in {hit.id for hit in found.words}
    assert await engine.too_big() == []
    assert await Engine(stack.database, Hashed(), 90 * 500).too_big() == ["user:anna", "user:ben"]


async def test_others_run_while_an_entry_is_loaded_or_a_big_one_searched(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        await stack.receive(f"fact {number}")
    engine = Engine(stack.database, Hashed(), ROOM)
    question = Question(frozenset({"user:anna"}), stack.clock.now, text="fact")
    assert await turns_of_others(engine.search(question), monkeypatch) >= 300 // 256
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_refresh", None)
        assert len((await engine.search(question, fresh=False)).words) == 50, "nothing is read again"
    monkeypatch.setattr("memory.index.engine.BIG", 299)
    assert await turns_of_others(engine.search(question), monkeypatch)


async def test_after_a_cut_of_the_log_an_erasure_or_a_clock_that_went_back_it_is_loaded_anew(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(stack.database, Hashed(), ROOM)
    ends = stack.clock.now + timedelta(days=1)
    question = Question(frozenset({"user:anna"}), stack.clock.now, text="cat dog bird")
    await stack.remember("a cat", ttl="1d")
    assert len((await engine.search(question)).words) == 1
    assert (await engine.search(replace(question, now=ends))).words == ()
    assert len((await engine.search(question)).words) == 1
    monkeypatch.setattr(changes, "LATEST", 1)
    await stack.remember("a dog")
    await stack.remember("a bird", "ben")
    await stack.remember("a bird", "ben", place="x")
    await changes.cut(stack.database)
    assert len((await engine.search(question)).words) == 2
    await engine.search(replace(question, audience=frozenset({"user:ben"})))
    await changes.erase(stack.database, "user:ben")
    await engine.search(question)
    assert await engine.count() == 2, "nothing of an erased person is kept"
