"""Events that were taken already, on both databases."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select

from memory.sql.deliveries import KEPT, PURGE_EVERY, Deliveries
from memory.sql.engine import Database
from memory.sql.tables import deliveries


async def count(database: Database) -> int:
    async with database.read() as connection:
        return int((await connection.execute(select(func.count()).select_from(deliveries))).scalar_one())


async def test_an_event_is_taken_once(database: Database, clock: Callable[[], Any]) -> None:
    seen = Deliveries(database)
    assert await seen.first("discord", "1", clock())
    assert not await seen.first("discord", "1", clock())
    assert await seen.first("discord", "2", clock())


async def test_platforms_may_call_their_events_the_same(database: Database, clock: Callable[[], Any]) -> None:
    seen = Deliveries(database)
    assert await seen.first("discord", "1", clock())
    assert await seen.first("slack", "1", clock())


async def test_it_is_known_after_a_restart(database: Database, clock: Callable[[], Any]) -> None:
    assert await Deliveries(database).first("discord", "1", clock())
    assert not await Deliveries(database).first("discord", "1", clock())


async def test_of_several_replicas_one_takes_it(database: Database, clock: Callable[[], Any]) -> None:
    replicas = [Deliveries(database) for _ in range(5)]
    took = await asyncio.gather(*(replica.first("discord", "1", clock()) for replica in replicas))
    assert sorted(took) == [False, False, False, False, True]


async def test_old_ones_are_purged(database: Database, clock: Any) -> None:
    seen = Deliveries(database)
    await seen.first("discord", "old", clock())
    clock.now += KEPT
    await seen.first("discord", "new", clock())
    assert await count(database) == 2
    clock.now += PURGE_EVERY
    await seen.first("discord", "newer", clock())
    assert await count(database) == 2
    assert await seen.first("discord", "old", clock() + timedelta(seconds=1))
