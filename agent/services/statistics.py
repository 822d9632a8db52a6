"""Counts over everybody's data, for the operator. They never contain content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, func, select

from memory.audience import Audience
from memory.sql.engine import Database
from memory.sql.jobs import JobQueue
from memory.sql.memories import MemoryStore
from memory.sql.memory_rows import unexpired
from memory.sql.tables import memories, memory_owners, messages, tasks


@dataclass(frozen=True, slots=True)
class CountedMemory:
    """The columns of a memory that the statistics need."""

    type: str
    subjects: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True)
class StatisticsService:
    database: Database
    store: MemoryStore
    queue: JobQueue
    clock: Callable[[], datetime]

    async def memories(self, user: str | None) -> Sequence[CountedMemory]:
        """Return the active memories of one person in private, or of everybody."""
        if user is not None:
            own = await self.store.newest(Audience.of(user), self.clock())
            return [CountedMemory(m.type, m.subjects, m.created_at) for m in own]
        held = exists().where(memory_owners.c.memory_id == memories.c.id, memory_owners.c.superseded == 0)
        query = select(memories.c.type, memories.c.subjects, memories.c.created_at)
        async with self.database.read() as connection:
            rows = await connection.execute(query.where(held, unexpired(self.clock())))
            return [CountedMemory(row.type, tuple(row.subjects), row.created_at) for row in rows]

    async def totals(self) -> dict[str, int]:
        """Return the count of each kind of row, in display order."""
        kept = await self.store.totals(self.clock())
        waiting, given_up = await self.queue.counts()
        async with self.database.read() as connection:
            said = (await connection.execute(select(func.count()).select_from(messages))).scalar_one()
            grouped = await connection.execute(select(tasks.c.status, func.count()).group_by(tasks.c.status))
            by_status: dict[str, int] = {row[0]: row[1] for row in grouped}
        done = by_status.pop("done", 0)
        return {
            "memories": kept["active"],
            "memories superseded": kept["superseded"],
            "memories expired": kept["expired"],
            "messages": said,
            "tasks open": sum(by_status.values()),
            "tasks done": done,
            "work waiting": waiting,
            "work given up": given_up,
        }
