"""What replaced what, when and why; and taking it back."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import and_, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience
from memory.database import Database
from memory.errors import NotFound
from memory.records import MemoryUpdate
from memory.selecting import index_again
from memory.tables import memories, memory_owners, memory_updates

UNDONE = "undone"
"""The reason of the step that takes another one back."""


class History:
    """The audit of memories. For a person's own inspection and undo, never for retrieval; and only of steps
    taken for an owner that the audience may read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, id: str, audience: Audience) -> list[MemoryUpdate]:
        """The steps along the chain this memory stands in, oldest first. `id` may be the first eight or more
        characters of it."""
        async with self._database.read() as connection:
            steps, texts = await self._chain(connection, id, audience)
        return [
            MemoryUpdate(
                row.id,
                row.user_id,
                row.old_id,
                row.new_id,
                row.reason,
                row.created_at,
                old_content=texts.get(row.old_id, ""),
                new_content=texts.get(row.new_id),
            )
            for row in steps
        ]

    async def undo(self, id: str, audience: Audience, user: str, now: datetime) -> MemoryUpdate:
        """Bring back what this memory replaced, or this memory itself where it was replaced: the last step it
        took part in is taken back, for the owners it was taken for. Raises NotFound where there is none."""
        async with self._database.write(lock=audience.keys) as connection:
            steps, texts = await self._chain(connection, id, audience)
            mine = [row for row in steps if _begins(row.old_id, id) or _begins(row.new_id, id)]
            if not mine or mine[-1].reason == UNDONE:
                raise NotFound(f"memory {id!r} has replaced nothing that could be brought back")
            step = mine[-1]
            owners = sorted(set(step.owners) & audience.keys)
            await _set_superseded(connection, step.new_id, owners, 1)
            await _set_superseded(connection, step.old_id, owners, 0)
            taken_back = {
                "id": str(uuid4()),
                "user_id": user,
                "old_id": step.new_id or step.old_id,
                "new_id": step.old_id,
                "reason": UNDONE,
                "created_at": now,
                "owners": owners,
            }
            await connection.execute(insert(memory_updates).values(**taken_back))
            await index_again(connection, [step.old_id, *([step.new_id] if step.new_id else [])])
        del taken_back["owners"]
        return MemoryUpdate(
            **taken_back, old_content=texts.get(step.new_id, ""), new_content=texts.get(step.old_id)
        )

    async def _chain(
        self, connection: AsyncConnection, id: str, audience: Audience
    ) -> tuple[list[Any], dict[str, str]]:
        """The steps, oldest first, and the texts of all memories they join."""
        starts = memories.c.id.startswith(id, autoescape=True) if len(id) >= 8 else memories.c.id == id
        known = set((await connection.execute(select(memories.c.id).where(starts))).scalars())
        new = set(known)
        steps: dict[str, Any] = {}
        while new:
            touching = or_(memory_updates.c.old_id.in_(new), memory_updates.c.new_id.in_(new))
            rows = (await connection.execute(select(memory_updates).where(touching))).all()
            rows = [row for row in rows if audience.may_read(row.owners)]
            steps |= {row.id: row for row in rows}
            new = {other for row in rows for other in (row.old_id, row.new_id) if other} - known
            known |= new
        joined = {id for row in steps.values() for id in (row.old_id, row.new_id) if id}
        query = select(memories.c.id, memories.c.content).where(memories.c.id.in_(joined))
        texts = {row.id: row.content for row in await connection.execute(query)}
        return sorted(steps.values(), key=lambda row: row.created_at), texts


def _begins(id: str | None, with_: str) -> bool:
    return id is not None and id.startswith(with_)


async def _set_superseded(
    connection: AsyncConnection, id: str | None, owners: Collection[str], superseded: int
) -> None:
    here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner.in_(owners))
    await connection.execute(update(memory_owners).where(here).values(superseded=superseded))
