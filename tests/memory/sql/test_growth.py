"""What a turn, a forgetting and a purge cost does not grow with what a home holds.

Counted are the steps of SQLite's virtual machine, which are the same on a busy machine as on an idle one.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, insert

from memory.audience import PRIVATE, Audience
from memory.facts.compare import content_key
from memory.people.profile_store import ProfileStore
from memory.records import Message
from memory.search.core_facts import core_facts
from memory.sql import tables as t
from memory.sql.engine import Database
from memory.sql.messages.message_rows import forgotten_since
from memory.sql.messages.reply_sources import note_answer
from memory.sql.rests_on import record_each
from memory.sql.tables.triggers import create_triggers, drop_triggers
from tests.memory.conftest import Stack

pytestmark = pytest.mark.parametrize("on_database", ["sqlite"], indirect=True)
STEP = 20
GROWS = 2.0
"""How many times as much it may cost where there is ten times as much."""


async def fill(stack: Stack, user: str, exchanges: int) -> list[str]:
    """A person who has said so much, and told a fact in every fifth message, which replies were shown.
    Returns the ids of the facts, the newest last."""
    now, lines, facts, links, rests = stack.clock.now, [], [], [], []
    for n in range(exchanges):
        said, answered = str(uuid4()), str(uuid4())
        for id, role in ((said, "user"), (answered, "assistant")):
            lines.append(
                {"id": id, "conversation_id": f"dm:{user}", "user_id": user, "place": "", "role": role}
                | {"author": user if role == "user" else "hachi", "text": f"{role} {n} of the boat {id}"}
                | {"sent_at": now - timedelta(minutes=exchanges - n)}
            )
        rests.append((answered, said, "answered"))
        rests += [(answered, fact["id"], "found") for fact in facts[-3:]]
        if n % 5 == 0:
            fact = {"id": str(uuid4()), "content": f"{user} keeps boat {n} of {said}", "subjects": ["boat"]}
            fact |= {"created_at": lines[-1]["sent_at"], "source": "user", "type": "fact", "importance": 0.5}
            facts.append(fact | {"user_id": user, "place": "", "message_id": said, "uses": 0})
            key = content_key(fact["content"])
            links.append({"memory_id": fact["id"], "owner": f"user:{user}", "content_key": key})
            links[-1] |= {"created_at": fact["created_at"]}
            rests.append((fact["id"], said, "stated"))
    async with stack.database.write() as connection:
        await connection.run_sync(drop_triggers)
        who = {"id": user, "created_at": now}
        await connection.execute(insert(t.users).prefix_with("OR IGNORE"), who)
        talk = {"id": f"dm:{user}", "user_id": user, "place": "", "created_at": now}
        await connection.execute(insert(t.conversations).prefix_with("OR IGNORE"), talk)
        for table, rows in ((t.messages, lines), (t.memories, facts), (t.memory_owners, links)):
            await connection.execute(insert(table), rows)
        await record_each(connection, rests)
        await connection.run_sync(create_triggers)
    return [fact["id"] for fact in facts]


class Counted:
    """Counts the steps of a database's statements, from `begin` on."""

    def __init__(self, database: Database) -> None:
        self.steps = 0
        self._seen = set[int]()
        event.listen(database.engine.sync_engine, "checkout", self._watch)

    def _watch(self, connection: sqlite3.Connection, *_: Any) -> None:
        connection.set_progress_handler(self._count, STEP)

    def _count(self) -> int:
        self.steps += STEP
        return 0


async def costs(stack: Stack, facts: list[str]) -> dict[str, int]:
    """How many steps each of these takes for Anna, who has these facts."""
    counted, found, me = Counted(stack.database), dict[str, int](), Audience.of("anna")
    now, profiles = stack.clock.now, ProfileStore(stack.database)

    async def measured(name: str, act: Callable[[], Awaitable[object]]) -> None:
        before = counted.steps
        await act()
        found[name] = counted.steps - before

    async def reads() -> None:
        await stack.transcript.block("dm:anna", me, 12, None)
        await stack.conversations.of("dm:anna", "user:anna", now)
        await profiles.view("anna", PRIVATE, now)
        await core_facts(stack.store, "anna", me, now)
        await stack.tasks.relevant("anna", "what about the boat?", PRIVATE, now=now)

    async def writes() -> None:
        question = await stack.receive("what about the boat?")
        reply = Message(str(uuid4()), "dm:anna", "assistant", "hachi", "It floats.", stack.clock.now)
        async with stack.database.write() as connection:
            condition = forgotten_since("anna", now)
            given: dict[str, Any] = {"user": "anna", "place": PRIVATE, "now": now, "answering": question}
            assert await stack.transcript.append(connection, reply, **given, unless=condition)
            await note_answer(connection, reply, "anna", PRIVATE)
            await record_each(connection, [(reply.id, id, "found") for id in facts[-10:]])

    async def purge() -> None:
        assert len(await stack.expire()) == 1

    await writes()  # each connection reads the tables' descriptions first
    await reads()
    await measured("what a turn reads", reads)
    await measured("what a turn writes", writes)
    await measured("find rows of hits", lambda: stack.store.by_ids(facts[-20:], me, now))
    await measured("list", lambda: stack.store.newest(me, now, 50))
    told_in = (await stack.store.get(facts[0], me, now)).message_id or ""
    for kind, id in (("memory", facts[0]), ("message", told_in)):
        oldest = await stack.forgetting.named(kind, id, "anna")
        await measured(f"show what goes with a {kind}", partial(stack.forgetting.preview, oldest, "anna"))
    await measured("forget", lambda: stack.forgetting.forget("memory", facts[-5], "anna"))
    await stack.remember("Anna is ill", ttl="1h")
    stack.clock.advance(hours=2)
    await measured("purge", purge)
    return found


@pytest.mark.parametrize("more", ["a person", "people"])
async def test_what_is_done_all_the_time_costs_the_same_with_ten_times_as_much(
    stack: Stack, more: str, tmp_path: Path
) -> None:
    facts = await fill(stack, "anna", 200)
    for n in range(5):
        await fill(stack, f"ben {n}", 20)
    small = await costs(stack, facts)
    if more == "a person":
        facts = await fill(stack, "anna", 2_000)
    else:
        for n in range(5, 60):
            await fill(stack, f"ben {n}", 20)
    large = await costs(stack, facts)
    grown = {name: round(large[name] / max(small[name], 500), 1) for name in small}
    assert {name: times for name, times in grown.items() if times > GROWS} == {}


async def test_few_replies_are_read_to_forget_the_oldest_fact(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    [oldest, *_] = await fill(stack, "anna", 400)
    read = list[str]()
    monkeypatch.setattr("memory.forgetting.repetition.folded", lambda text: read.append(text) or text)
    await stack.forgetting.forget("memory", oldest, "anna")
    assert len(read) < 20
