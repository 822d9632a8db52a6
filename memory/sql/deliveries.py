"""Stores which events of a platform were already handled. Platforms deliver some events twice, even after a
restart or to another replica."""

from datetime import datetime, timedelta

from sqlalchemy import delete

from memory.sql.engine import Database
from memory.sql.tables import deliveries

KEPT = timedelta(days=7)
"""How long an event's id is kept. No platform delivers an older event again."""
PURGE_EVERY = timedelta(hours=1)


class Deliveries:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._purged_at: datetime | None = None

    async def first(self, source: str, id: str, now: datetime) -> bool:
        """True for the first call with this event, False for all others. `id` is unique within `source`."""
        event = self._database.insert(deliveries).values(source=source, id=id, seen_at=now)
        async with self._database.write() as connection:
            taken = (await connection.execute(event.on_conflict_do_nothing())).rowcount
            if self._purged_at is None or now - self._purged_at >= PURGE_EVERY:
                await connection.execute(delete(deliveries).where(deliveries.c.seen_at < now - KEPT))
                self._purged_at = now
        return taken == 1
