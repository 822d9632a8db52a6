"""The history of replacements: what replaced what, when and why; and undo."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.process.spans import new_id
from memory.records import MemoryUpdate
from memory.sql.engine import Database
from memory.sql.hidden import link_is_hidden
from memory.sql.memories.memory_rows import begins, unexpired
from memory.sql.memories.owner_links import by_what_holds, end, gave_way, hold_again
from memory.sql.memories.store import UNDONE, tellers
from memory.sql.readable import is_active
from memory.sql.tables import hidden, memories, memory_owners, memory_updates


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
        """Undo the replacement by this memory or, if it was replaced itself, by what holds in its place:
        everything that the replacement ended, and that has not come back since, is active again.

        Applies only to owners that the audience may read and the user may speak for: the user, and a place
        where nobody else stated the undone memory. An undo in a place also undoes the replacement among the
        user's own memories. Returns the new step. Raises NotFound if there is no such replacement.
        """
        own = user_key(user)
        async with self._database.write(lock=audience.keys | {own}) as connection:
            holding = await _holding(connection, id, audience.keys)
            ended = gave_way(holding) & memory_owners.c.owner.in_(audience.keys) & _lasts(now)
            query = select(memory_owners).where(ended).order_by(memory_owners.c.superseded_at)
            given = (await connection.execute(query)).all()
            given = [row for row in given if row.owner in holding[row.superseded_by]]
            if not given:
                raise NotFound(f"memory {id!r} has replaced nothing that could be brought back")
            new, old = given[-1].superseded_by, given[-1].memory_id
            owners = {row.owner for row in given if row.superseded_by == new}
            owners = await _may_undo_for(connection, new, owners, own)
            if not owners:
                raise NotFound(f"memory {id!r} is not {user}'s to take back: somebody else told it")
            if own not in audience.keys:
                owners.add(own)
            undone = await _undo(connection, new, owners, user, now)
            old = old if old in undone else next(iter(undone))
            texts = await _texts(connection, {new, old})
        return MemoryUpdate(**undone[old], old_content=texts.get(new, ""), new_content=texts.get(old))

    async def _chain(
        self, connection: AsyncConnection, id: str, audience: Audience
    ) -> tuple[list[Any], dict[str, str]]:
        """The steps, oldest first, and the texts of all their memories. A step counts for the owners who
        still have what it replaced."""
        known = set(await connection.scalars(select(memories.c.id).where(begins(memories.c.id, id))))
        new = set(known)
        steps: dict[str, Any] = {}
        kept: ColumnElement[bool] = exists().where(
            memory_owners.c.memory_id == memory_updates.c.old_id,
            memory_owners.c.owner.in_(audience.keys),
            ~link_is_hidden(),
        )
        newer = [hidden.c.row_id == memory_updates.c.new_id + f" {key}" for key in audience.keys]
        kept = and_(kept, ~exists().where(hidden.c.kind == "link", or_(false(), *newer)))
        while new:
            touching = or_(memory_updates.c.old_id.in_(new), memory_updates.c.new_id.in_(new))
            rows = (await connection.execute(select(memory_updates).where(touching, kept))).all()
            rows = [row for row in rows if audience.may_read(row.owners)]
            steps |= {row.id: row for row in rows}
            new = {other for row in rows for other in (row.old_id, row.new_id) if other} - known
            known |= new
        joined = {id for row in steps.values() for id in (row.old_id, row.new_id) if id}
        return sorted(steps.values(), key=lambda row: row.created_at), await _texts(connection, joined)


async def _texts(connection: AsyncConnection, ids: Collection[str]) -> dict[str, str]:
    query = select(memories.c.id, memories.c.content).where(memories.c.id.in_(ids))
    return {row.id: row.content for row in await connection.execute(query)}


async def _holding(connection: AsyncConnection, id: str, owners: Collection[str]) -> dict[str, set[str]]:
    """What holds in the place of the memory, by the owners for whom it does; `id` may be a prefix. What was
    taken back, or never held, has nothing in its place."""
    link = memory_owners
    columns = (link.c.memory_id, link.c.owner, link.c.superseded_by, link.c.superseded_at)
    chain = select(*columns).where(begins(link.c.memory_id, id), link.c.owner.in_(owners)).cte(recursive=True)
    after = and_(link.c.memory_id == chain.c.superseded_by, link.c.owner == chain.c.owner)
    chain = chain.union(select(*columns).join(chain, and_(after, chain.c.superseded_at.is_not(None))))
    found: dict[str, set[str]] = {}
    for row in await connection.execute(select(chain).where(chain.c.superseded_by.is_(None))):
        found.setdefault(row.memory_id, set()).add(row.owner)
    return found


def _lasts(now: datetime) -> ColumnElement[bool]:
    """True for a link whose fact has not expired. One that has is not brought back: the purge takes it."""
    return memory_owners.c.memory_id.in_(select(memories.c.id).where(unexpired(now)))


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
    ended = gave_way([id]) & memory_owners.c.owner.in_(owners) & _lasts(now)
    rows = (await connection.execute(select(memory_owners).where(ended, by_what_holds()))).all()
    replaced: dict[str, set[str]] = {}
    for row in rows:
        replaced.setdefault(row.memory_id, set()).add(row.owner)
    losing = {row.owner for row in rows}
    for old_id, back in replaced.items():  # taken back: nothing brings it back
        await end(connection, [id], back, old_id, UNDONE, None)
    query = select(memory_owners.c.memory_id, memory_owners.c.owner).where(
        ended, memory_owners.c.owner.in_(losing)
    )
    rows = (await connection.execute(query.order_by(memory_owners.c.superseded_at.desc()))).all()
    await hold_again(connection, [(row.memory_id, row.owner) for row in rows])
    step = {"user_id": user, "old_id": id, "reason": UNDONE, "created_at": now}
    undone = {old_id: step | {"id": new_id(), "new_id": old_id} for old_id in replaced}
    for old_id, back in replaced.items():
        await connection.execute(insert(memory_updates).values(**undone[old_id], owners=sorted(back)))
    await withhold(connection, now, memory_ids=[id], owners=losing)
    return undone
