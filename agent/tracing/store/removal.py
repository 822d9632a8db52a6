"""Prunes traces, erases those of a person, and withholds and empties those that show what was forgotten."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, delete, or_, select

from agent.tracing.store.rows import BATCH, inside
from agent.tracing.store.traces import delete_bodies
from memory.sql.engine import Database
from memory.sql.tables import traces


async def prune(database: Database, before: datetime) -> int:
    """Delete traces that began before that time. Returns how many were deleted."""
    return await _delete(database, traces.c.started_at < before)


async def places_of(database: Database, user: str) -> set[str]:
    """Return the keys of the places where a person spoke."""
    query = select(traces.c.place).where(traces.c.user_id == user, traces.c.place != "").distinct()
    return {row.place for row in await database.rows(query)}


async def erase(database: Database, user: str, places: Collection[str]) -> int:
    """Delete a person's traces, and those of `places`, whose prompts contain what the person said there.
    Returns how many were deleted."""
    gone = await _delete(database, or_(traces.c.user_id == user, *(inside(place) for place in places)))
    await database.empty_log()
    return gone


async def _delete(database: Database, condition: ColumnElement[bool]) -> int:
    gone = 0
    while True:
        async with database.write() as connection:
            ids = list(await connection.scalars(select(traces.c.id).where(condition).limit(BATCH)))
            await delete_bodies(connection, ids)
            await connection.execute(delete(traces).where(traces.c.id.in_(ids)))
        gone += len(ids)
        if len(ids) < BATCH:
            return gone
