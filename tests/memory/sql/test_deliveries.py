"""Events that were taken already, on both databases."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from memory.sql.engine import Database
from memory.sql.jobs.deliveries import KEPT, PURGE_EVERY, Deliveries
from memory.sql.jobs.job import ANSWER
from memory.sql.jobs.queue import JobQueue
from memory.sql.tables import deliveries


async def count(database: Database) -> int:
    return len(await database.rows(select(deliveries.c.source)))


async def test_an_event_is_taken_once_by_one_of_all(database: Database, clock: Callable[[], Any]) -> None:
    seen = Deliveries(database, JobQueue(database, clock))
    assert await seen.first("discord", "1", clock())
    for again in (seen, Deliveries(database, JobQueue(database, clock))):
        assert not await again.first("discord", "1", clock())
    assert await seen.first("slack", "1", clock())
    replicas = [Deliveries(database, JobQueue(database, clock)) for _ in range(5)]
    took = await asyncio.gather(*(replica.first("discord", "2", clock()) for replica in replicas))
    assert sorted(took) == [False] * 4 + [True]


async def test_old_ones_are_purged(database: Database, clock: Any) -> None:
    seen = Deliveries(database, JobQueue(database, clock))
    await seen.first("discord", "old", clock())
    clock.now += KEPT
    await seen.first("discord", "new", clock())
    assert await count(database) == 2
    clock.now += PURGE_EVERY
    await seen.first("discord", "newer", clock())
    assert await count(database) == 2
    assert await seen.first("discord", "old", clock() + timedelta(seconds=1))


async def test_an_accepted_message_has_one_job_until_it_is_answered(database: Database, clock: Any) -> None:
    accepted = Deliveries(database, JobQueue(database, clock))
    job = str(await accepted.accept("chat:7", "chat:ana", clock()))
    assert await accepted.accept("chat:7", "chat:ana", clock()) is None
    assert await accepted.accept("chat:7", "chat:ana", clock(), version="edited") is None
    assert await accepted.queue.claim_of([ANSWER], "chat:", clock()) == [], (
        "the edited one waits for the one that is claimed"
    )
    await accepted.posted(job, ["chat:8"])
    await accepted.release([job], clock())
    assert await accepted.queue.claim_of([ANSWER], "chatty:", clock()) == []
    [due] = await accepted.queue.claim_of([ANSWER], "chat:", clock())
    assert (due.id, due.about, due.payload) == (job, "chat:7", {"posts": ["chat:8"]})
    await accepted.answered([job], clock())
    assert await accepted.queue.take(job) is None
    [edited] = await accepted.queue.claim_of([ANSWER], "chat:", clock())
    assert (edited.about, await accepted.gone([edited.id])) == ("chat:7", frozenset())
    for origin in ("chat:7", "chat:9"):
        await accepted.forget(origin, clock())
    assert await accepted.gone([edited.id]) == {edited.id}
    assert await accepted.accept("chat:9", "chat:ana", clock()) is None, "it was deleted before it came"
    await accepted.later(job, "nothing is left of it", clock())


async def test_a_bot_was_last_there_when_it_said_so(database: Database, clock: Any) -> None:
    accepted = Deliveries(database, JobQueue(database, clock))
    assert await accepted.last_here("chat") is None
    for _ in range(2):
        clock.now += timedelta(minutes=1)
        await accepted.here("chat", clock())
    assert await accepted.last_here("chat") == clock()
    assert await accepted.last_here("another") is None
