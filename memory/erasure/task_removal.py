"""Forgets tasks that repeat what is forgotten. Each function runs in the caller's transaction."""

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.erasure.message_removal import Readers
from memory.erasure.repetition import Words, repeated_by_task
from memory.erasure.restore import Row, encoded
from memory.sql.tables import tasks


async def take(
    connection: AsyncConnection, readers: Readers, told: Sequence[str], teller: Words, *, shared: bool
) -> list[Row]:
    """Delete the person's tasks that repeat one of these texts, but not in places where somebody else told
    it too. Returns the rows as they were."""
    mine = select(tasks).where(tasks.c.user_id == readers.user)
    rows = [
        row
        for row in await connection.execute(mine.order_by(tasks.c.id).with_for_update())
        if readers.lost(row, shared) and repeated_by_task(row.description, told, teller)
    ]
    await connection.execute(delete(tasks).where(tasks.c.id.in_([row.id for row in rows])))
    return [encoded(row._mapping) for row in rows]
