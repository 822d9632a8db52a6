"""The history of replacements: what replaced what, when and why; and undo."""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import and_, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.process.spans import new_id
from memory.records import MemoryUpdate
from memory.sql.engine import Database
from memory.sql.memories import MADE_PRIVATE, tellers
from memory.sql.memory_rows import begins, index_again, is_active
from memory.sql.tables import memories, memory_owners, memory_updates

UNDONE = "undone"
"""The reason of a step that undoes another."""


class History:
    """The audit of memories, for a person's own inspection and undo, never for retrieval. It shows only steps
    whose owners the audience may read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, id: str, audience: Audience) -> list[MemoryUpdate]:
        """The steps of the memory's chain, oldest first. `id` may be its first eight or more characters."""
        async with self._database.read() as connection:
            steps, texts = await self._chain(connection, id, audience)
            joined = memories.c.id.in_(texts)
            query = select(memories.c.id, memories.c.message_id).where(joined)
            messages = {row.id: row.message_id for row in await connection.execute(query)}
        return [
            MemoryUpdate(
                *(row.id, row.user_id, row.old_id, row.new_id, row.reason, row.created_at),
                old_content=texts.get(row.old_id, ""),
                new_content=texts.get(row.new_id),
                old_message_id=messages.get(row.old_id),
            )
            for row in steps
        ]

    async def undo(self, id: str, audience: Audience, user: str, now: datetime) -> MemoryUpdate:
        """Undo the last step of the memory, which makes the replaced memory active again.

        Applies only to owners that the audience may read and the user may speak for: the user, and a place
        where nobody else stated the undone memory. An undo in a place also undoes the step among the user's
        own memories. Returns the new step. Raises NotFound if there is no such step.
        """
        own = user_key(user)
        async with self._database.write(lock=audience.keys | {own}) as connection:
            step, texts = await self._last_step(connection, id, audience)
            owners = await _may_undo_for(connection, step, set(step.owners) & audience.keys, own)
            if not owners:
                raise NotFound(f"memory {id!r} is not {user}'s to take back: somebody else told it")
            undone = await _undo(connection, step, owners, user, now)
            if own not in audience.keys:
                await self._undo_own(connection, step, user, now)
        return MemoryUpdate(
            **undone, old_content=texts.get(step.new_id, ""), new_content=texts.get(step.old_id)
        )

    async def _last_step(
        self, connection: AsyncConnection, id: str, audience: Audience
    ) -> tuple[Any, dict[str, str]]:
        """The last step of the memory, and the texts of its chain. Raises NotFound if it cannot be undone."""
        steps, texts = await self._chain(connection, id, audience)
        steps = [row for row in steps if _begins(row.old_id, id) or _begins(row.new_id, id)]
        steps = [row for row in steps if row.reason != MADE_PRIVATE]
        if not steps or steps[-1].reason == UNDONE:
            raise NotFound(f"memory {id!r} has replaced nothing that could be brought back")
        return steps[-1], texts

    async def _undo_own(self, connection: AsyncConnection, step: Any, user: str, now: datetime) -> None:
        """Undo the step for the user alone, unless they have replaced the new memory in private since."""
        alone = Audience(frozenset({user_key(user)}))
        if step.new_id is None:
            return
        with suppress(NotFound):
            last, _ = await self._last_step(connection, step.new_id, alone)
            if last.new_id == step.new_id:
                await _undo(connection, last, alone.keys, user, now)

    async def _chain(
        self, connection: AsyncConnection, id: str, audience: Audience
    ) -> tuple[list[Any], dict[str, str]]:
        """The steps, oldest first, and the texts of all their memories."""
        known = set(await connection.scalars(select(memories.c.id).where(begins(memories.c.id, id))))
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


async def _may_undo_for(
    connection: AsyncConnection, step: Any, owners: Collection[str], own: str
) -> set[str]:
    """The owners for which the person may undo the step."""
    giving_way = step.new_id or step.old_id
    links = select(memory_owners.c.owner).where(memory_owners.c.memory_id == giving_way, is_active())
    active = (await connection.execute(links)).scalars().all()
    first = select(memories.c.user_id).where(memories.c.id == giving_way)
    told = tellers(active, (await connection.execute(first)).scalar_one())
    return set(owners) if told == {own} else set(owners) & {own}


async def _undo(
    connection: AsyncConnection, step: Any, owners: Collection[str], user: str, now: datetime
) -> dict[str, Any]:
    """Undo the step for these owners. Returns the fields of the step that records it, without the owners."""
    await _set_superseded(connection, step.new_id, owners, 1)
    await _set_superseded(connection, step.old_id, owners, 0)
    ids = {"id": new_id(), "old_id": step.new_id or step.old_id, "new_id": step.old_id}
    undone = ids | {"user_id": user, "reason": UNDONE, "created_at": now}
    await connection.execute(insert(memory_updates).values(**undone, owners=sorted(owners)))
    if step.new_id:
        await withhold(connection, now, memory_ids=[step.new_id], owners=owners)
    await index_again(connection, [step.old_id, *([step.new_id] if step.new_id else [])])
    return undone


def _begins(id: str | None, with_: str) -> bool:
    return id is not None and id.startswith(with_)


async def _set_superseded(
    connection: AsyncConnection, id: str | None, owners: Collection[str], superseded: int
) -> None:
    here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner.in_(owners))
    await connection.execute(update(memory_owners).where(here).values(superseded=superseded))
