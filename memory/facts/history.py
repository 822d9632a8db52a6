"""List which memories superseded which, when and why, and undo it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, false, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.process.spans import new_id
from memory.records import MemoryUpdate
from memory.sql.engine import Database
from memory.sql.hidden import link_is_hidden
from memory.sql.memories.memory_rows import begins, fetch
from memory.sql.memories.replacements import (
    ALWAYS,
    TOLD_AGAIN,
    holds,
    replace,
    unexpired,
)
from memory.sql.memories.store import UNDONE, tellers
from memory.sql.tables import hidden, memories, memory_owners, memory_updates, replacements


@dataclass(frozen=True)
class History:
    """The audit trail of memories, for inspection and undo, not for recall. It shows only steps of owners
    that the audience may read."""

    database: Database

    async def of(self, id: str, audience: Audience) -> list[MemoryUpdate]:
        """Return the steps of the memory's chain, oldest first. `id` may be a prefix of eight characters."""
        async with self.database.read() as connection:
            steps, texts = await self._chain(connection, id, audience)
            joined = memories.c.id.in_(texts)
            query = select(memories.c.id, memories.c.message_id).where(joined)
            messages = {row.id: row.message_id for row in await connection.execute(query)}
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
                old_message_id=messages.get(row.old_id),
            )
            for row in steps
        ]

    async def undo(self, id: str, audience: Audience, user: str, now: datetime) -> MemoryUpdate:
        """Restore what this memory superseded or, if it was superseded itself, what its successor superseded.

        Applies to the user, and to a place where nobody else stated the undone memory; an undo in a place
        also applies to the user's own link. Returns the new step. Raises NotFound if nothing can be undone.
        """
        person = user_key(user)
        async with self.database.write(lock=audience.keys | {person}) as connection:
            restorable = await _restorable(connection, id, audience.keys | {person}, now)
            visible = [row for row in restorable if row.owner in audience.keys]
            if not visible:
                raise NotFound(await _why_not(connection, id, audience, now))
            new = visible[-1].new_id
            owners = {row.owner for row in visible if row.new_id == new}
            [by] = await fetch(connection, memories.c.id == new, now)
            owners = owners if tellers(by.owners, by.user_id) == {person} else owners & {person}
            if not owners:
                raise NotFound(f"memory {id!r} cannot be undone by {user}: it was stated by somebody else")
            steps = [row for row in restorable if row.new_id == new and row.owner in {*owners, person}]
            undone = await _undo(connection, new, steps, user, now)
            old = next(row.old_id for row in [*reversed(visible), *steps] if row.old_id in undone)
            texts = await _texts(connection, {new, old})
        return MemoryUpdate(**undone[old], old_content=texts.get(new, ""), new_content=texts.get(old))

    async def _chain(
        self, connection: AsyncConnection, id: str, audience: Audience
    ) -> tuple[list[Any], dict[str, str]]:
        """Return the steps, oldest first, and the texts of their memories. Only steps whose old memory is
        still linked to the audience are returned."""
        reached = set(await connection.scalars(select(memories.c.id).where(begins(memories.c.id, id))))
        new = set(reached)
        steps: dict[str, Any] = {}
        linked: ColumnElement[bool] = exists().where(
            memory_owners.c.memory_id == memory_updates.c.old_id,
            memory_owners.c.owner.in_(audience.keys),
            ~link_is_hidden(),
        )
        newer = [hidden.c.row_id == memory_updates.c.new_id + f" {key}" for key in audience.keys]
        linked = and_(linked, ~exists().where(hidden.c.kind == "link", or_(false(), *newer)))
        while new:
            touching = or_(memory_updates.c.old_id.in_(new), memory_updates.c.new_id.in_(new))
            rows = (await connection.execute(select(memory_updates).where(touching, linked))).all()
            rows = [row for row in rows if audience.may_read(row.owners)]
            steps |= {row.id: row for row in rows}
            new = {other for row in rows for other in (row.old_id, row.new_id) if other} - reached
            reached |= new
        joined = {id for row in steps.values() for id in (row.old_id, row.new_id) if id}
        return sorted(steps.values(), key=lambda row: row.created_at), await _texts(connection, joined)


async def _texts(connection: AsyncConnection, ids: Collection[str]) -> dict[str, str]:
    query = select(memories.c.id, memories.c.content).where(memories.c.id.in_(ids))
    return {row.id: row.content for row in await connection.execute(query)}


_pair, _old = replacements.c, memories.alias("old")
_CAN_BE_RESTORED = (
    select(replacements)
    .join(_old, and_(_old.c.id == _pair.old_id, unexpired(_old)))
    .join(memories, and_(memories.c.id == _pair.new_id, unexpired()))
    .where(_pair.lasts != ALWAYS, _pair.reason != TOLD_AGAIN)
    .where(holds(_pair.new_id, _pair.owner), holds(_pair.old_id, _pair.owner, but=_pair.new_id))
    .order_by(_pair.at)
)
"""The replacements by active memories without which the older memory would be active."""


async def _restorable(
    connection: AsyncConnection, id: str, owners: Collection[str], now: datetime
) -> Sequence[Any]:
    """Return the replacements by this memory or its successor that can be undone, oldest first."""
    mine = _pair.owner.in_(owners)
    newer = select(_pair.new_id).where(begins(_pair.old_id, id), mine, _pair.lasts != ALWAYS)
    query = _CAN_BE_RESTORED.where(mine, or_(begins(_pair.new_id, id), _pair.new_id.in_(newer)))
    return (await connection.execute(query, {"now": now})).all()


async def _why_not(connection: AsyncConnection, id: str, audience: Audience, now: datetime) -> str:
    """Return why the memories that this one superseded cannot be restored."""
    superseding = (begins(_pair.new_id, id), _pair.owner.in_(audience.keys), _pair.lasts != ALWAYS)
    ended = select(memories.c.expires_at).where(*superseding, memories.c.id == _pair.old_id)
    at = await connection.scalar(ended.where(memories.c.expires_at <= now))
    if at is not None:
        return f"what memory {id!r} superseded expired on {at:%d %B %Y}, so it cannot be restored"
    return f"memory {id!r} has superseded nothing that could be restored"


async def _undo(
    connection: AsyncConnection, id: str, steps: Sequence[Any], user: str, now: datetime
) -> dict[str, dict[str, Any]]:
    """Supersede the memory by the memories that these steps had replaced. Returns the new steps, without
    owners, keyed by the restored id."""
    losing = {row.owner for row in steps}
    undoing = (_pair.new_id == id, _pair.owner.in_(losing), _pair.lasts != ALWAYS, _pair.reason != TOLD_AGAIN)
    await connection.execute(delete(replacements).where(*undoing))
    undone = {}
    for old in dict.fromkeys(row.old_id for row in steps):
        owners = {row.owner for row in steps if row.old_id == old}
        await replace(connection, [(id, owner) for owner in owners], old, ALWAYS, UNDONE, now)
        step = {"user_id": user, "old_id": id, "new_id": old, "reason": UNDONE, "created_at": now}
        undone[old] = step | {"id": new_id()}
        await connection.execute(insert(memory_updates).values(**undone[old], owners=sorted(owners)))
    await withhold(connection, now, memory_ids=[id], owners=losing)
    return undone
