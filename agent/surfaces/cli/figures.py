"""Counts over everybody's data, for whoever runs Hachi: never any content."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import exists, func, select

from memory.sql.conditions import unexpired
from memory.sql.tables import memories, memory_owners, messages, tasks

if TYPE_CHECKING:
    from agent.companion import Companion


@dataclass(frozen=True, slots=True)
class Kept:
    """Of one memory, what is counted."""

    type: str
    subjects: tuple[str, ...]
    created_at: datetime


async def kept(pet: "Companion", user: str | None) -> Sequence[Kept]:
    """What is remembered now, of one person or of all."""
    if user is not None:
        return [Kept(m.type, m.subjects, m.created_at) for m in await pet.memories(user=user)]
    held = exists().where(memory_owners.c.memory_id == memories.c.id, memory_owners.c.superseded == 0)
    query = select(memories.c.type, memories.c.subjects, memories.c.created_at)
    async with pet.database.read() as connection:
        rows = await connection.execute(query.where(held, unexpired(pet.clock())))
        return [Kept(row.type, tuple(row.subjects), row.created_at) for row in rows]


async def counts(pet: "Companion") -> dict[str, int]:
    """By what is counted, in the order to show it."""
    totals = await pet.store.totals(pet.clock())
    waiting, given_up = await pet.queue.counts()
    async with pet.database.read() as connection:
        said = (await connection.execute(select(func.count()).select_from(messages))).scalar_one()
        by_status = await connection.execute(select(tasks.c.status, func.count()).group_by(tasks.c.status))
        statuses: dict[str, int] = {row[0]: row[1] for row in by_status}
    done = statuses.pop("done", 0)
    return {
        "memories": totals["active"],
        "memories superseded": totals["superseded"],
        "memories expired": totals["expired"],
        "messages": said,
        "tasks open": sum(statuses.values()),
        "tasks done": done,
        "work waiting": waiting,
        "work given up": given_up,
    }
