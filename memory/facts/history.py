"""The history of replacements: what replaced what, when and why; and undo."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from sqlalchemy import and_, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.process.spans import new_id
from memory.records import MemoryUpdate
from memory.sql.engine import Database
from memory.sql.memories import NO_REPLACEMENT, UNDONE, replaced_by, tellers
from memory.sql.memory_rows import begins, index_again, is_active, told_again
from memory.sql.tables import memories, memory_owners, memory_updates


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
        """Undo the replacement by this memory or, if it was replaced itself, by what holds in its place:
        everything that the replacement ended, and that has not come back since, is active again.

        Applies only to owners that the audience may read and the user may speak for: the user, and a place
        where nobody else stated the undone memory. An undo in a place also undoes the replacement among the
        user's own memories. Returns the new step. Raises NotFound if there is no such replacement.
        """
        own = user_key(user)
        async with self._database.write(lock=audience.keys | {own}) as connection:
            steps, texts = await self._chain(connection, id, audience)
            holding = await _holding(connection, id, steps, audience.keys)
            ended = [
                (o, row) for o, row in await replaced_by(connection, holding) if o in holding[row.new_id]
            ]
            if not ended:
                raise NotFound(f"memory {id!r} has replaced nothing that could be brought back")
            new, old = ended[-1][1].new_id, ended[-1][1].old_id
            owners = {owner for owner, row in ended if row.new_id == new}
            owners = await _may_undo_for(connection, new, owners, own)
            if not owners:
                raise NotFound(f"memory {id!r} is not {user}'s to take back: somebody else told it")
            if own not in audience.keys:
                owners.add(own)
            undone = await _undo(connection, new, owners, user, now)
            old = old if old in undone else next(iter(undone))
        return MemoryUpdate(**undone[old], old_content=texts.get(new, ""), new_content=texts.get(old))

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


async def _holding(
    connection: AsyncConnection, id: str, steps: Sequence[Any], owners: Collection[str]
) -> dict[str, set[str]]:
    """What holds in the place of the memory, by the owners for whom it does; `id` may be a prefix."""
    joined = {known for step in steps for known in (step.old_id, step.new_id) if known}
    links = select(memory_owners).where(memory_owners.c.memory_id.in_(joined), is_active())
    active = {(row.memory_id, row.owner) for row in await connection.execute(links)}
    last = {(step.old_id, owner): step for step in steps for owner in step.owners}
    after = {key: step.new_id for key, step in last.items() if step.reason not in NO_REPLACEMENT}
    found: dict[str, set[str]] = {}
    for known, owner in product((known for known in joined if known.startswith(id)), owners):
        holds: str | None = known
        while holds and (holds, owner) not in active:
            holds = after.pop((holds, owner), None)
        if holds:
            found.setdefault(holds, set()).add(owner)
    return found


async def _may_undo_for(connection: AsyncConnection, id: str, owners: Collection[str], own: str) -> set[str]:
    """The owners for whom the person may take the memory back."""
    links = select(memory_owners.c.owner).where(memory_owners.c.memory_id == id, is_active())
    active = (await connection.execute(links)).scalars().all()
    first = select(memories.c.user_id).where(memories.c.id == id)
    told = tellers(active, (await connection.execute(first)).scalar_one())
    return set(owners) if told == {own} else set(owners) & {own}


async def _undo(
    connection: AsyncConnection, id: str, owners: Collection[str], user: str, now: datetime
) -> dict[str, dict[str, Any]]:
    """Take the memory back for those of the owners for whom it replaced something. Returns the steps that
    record it, without the owners, by the id of what holds again."""
    ended: dict[str, set[str]] = {}
    for owner, row in await replaced_by(connection, [id]):
        if owner in owners:
            ended.setdefault(row.old_id, set()).add(owner)
    losing = set().union(*ended.values())
    step = {"user_id": user, "old_id": id, "reason": UNDONE, "created_at": now}
    undone = {old_id: step | {"id": new_id(), "new_id": old_id} for old_id in ended}
    await _set_superseded(connection, id, losing, 1)
    for old_id, back in ended.items():
        await _set_superseded(connection, old_id, back, 0)
        await connection.execute(insert(memory_updates).values(**undone[old_id], owners=sorted(back)))
    await withhold(connection, now, memory_ids=[id], owners=losing)
    await index_again(connection, [id, *ended])
    return undone


async def _set_superseded(
    connection: AsyncConnection, id: str, owners: Collection[str], superseded: int
) -> None:
    here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner.in_(owners))
    change = update(memory_owners).where(here).values(superseded=superseded)
    await connection.execute(change if superseded else change.where(~told_again()))
