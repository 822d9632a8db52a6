"""Memories in SQL: the record of truth.

Whose a memory is stands in its links (`memory_owners`). Being replaced happens an owner at a time: the link
is marked superseded, the row and its text stay for history and undo. A memory without an active link is
readable by nobody.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Literal
from uuid import uuid4

from sqlalchemy import ColumnElement, and_, case, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, user_key
from memory.database import Database
from memory.errors import NotFound
from memory.records import Memory, MemoryUpdate
from memory.tables import memories, memory_owners, memory_updates

Order = Literal["newest", "oldest"]


class MemoryStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    # Reading. Every one takes an audience.

    async def get(self, id: str, audience: Audience, now: datetime) -> Memory:
        """One memory by its id, or by the first eight or more characters of it."""
        matches = memories.c.id.startswith(id, autoescape=True) if len(id) >= 8 else memories.c.id == id
        async with self._database.read() as connection:
            found = await _fetch(connection, and_(matches, readable(audience), unexpired(now)))
        if len(found) != 1:
            raise NotFound(f"no memory {id!r} here; `hachi memories list` shows the ids")
        return found[0]

    async def by_ids(self, ids: Collection[str], audience: Audience, now: datetime) -> dict[str, Memory]:
        async with self._database.read() as connection:
            found = await _fetch(connection, and_(memories.c.id.in_(ids), readable(audience), unexpired(now)))
        return {memory.id: memory for memory in found}

    async def list(
        self, audience: Audience, now: datetime, *, limit: int | None = None, order: Order = "newest"
    ) -> list[Memory]:
        async with self._database.read() as connection:
            return await _fetch(connection, and_(readable(audience), unexpired(now)), limit, order)

    async def count(self, audience: Audience, now: datetime) -> int:
        query = select(func.count()).select_from(memories).where(readable(audience), unexpired(now))
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar_one()

    async def history(self, id: str, audience: Audience) -> list[MemoryUpdate]:
        """What replaced what along the chain this memory stands in, oldest first. Only steps taken for an
        owner this audience may read; never used for retrieval."""
        async with self._database.read() as connection:
            known, new = {id}, {id}
            steps: dict[str, Any] = {}
            while new:
                touching = or_(memory_updates.c.old_id.in_(new), memory_updates.c.new_id.in_(new))
                rows = (await connection.execute(select(memory_updates).where(touching))).all()
                rows = [row for row in rows if audience.may_read(row.owners)]
                steps |= {row.id: row for row in rows}
                new = {other for row in rows for other in (row.old_id, row.new_id) if other} - known
                known |= new
            texts = select(memories.c.id, memories.c.content).where(memories.c.id.in_(known))
            text = {row.id: row.content for row in await connection.execute(texts)}
        return [
            MemoryUpdate(
                row.id,
                row.user_id,
                row.old_id,
                row.new_id,
                row.reason,
                row.created_at,
                old_content=text.get(row.old_id, ""),
                new_content=text.get(row.new_id),
            )
            for row in sorted(steps.values(), key=lambda row: row.created_at)
        ]

    # Deciding and writing, inside the caller's transaction: see `memory.remember`.

    async def holders(
        self, connection: AsyncConnection, owners: Collection[str], content_key: str
    ) -> dict[str, Memory]:
        """For each owner that has these very words as an active memory, expired or not: that memory."""
        query = select(memory_owners.c.owner, memory_owners.c.memory_id).where(
            memory_owners.c.owner.in_(owners), memory_owners.c.content_key == content_key, _active()
        )
        held: dict[str, str] = {row.owner: row.memory_id for row in await connection.execute(query)}
        found = await _fetch(connection, memories.c.id.in_(set(held.values())))
        by_id = {memory.id: memory for memory in found}
        return {owner: by_id[id] for owner, id in held.items()}

    async def candidates(
        self, connection: AsyncConnection, ids: Collection[str], owners: Collection[str], now: datetime
    ) -> list[Memory]:
        """Of these memories, and of those that wait to be indexed, the ones some of `owners` hold."""
        held = exists().where(
            memory_owners.c.memory_id == memories.c.id, memory_owners.c.owner.in_(owners), _active()
        )
        near = or_(memories.c.id.in_(ids), memories.c.indexed_under.is_(None))
        return await _fetch(connection, and_(held, near, unexpired(now)))

    async def insert(self, connection: AsyncConnection, memory: Memory, content_key: str) -> None:
        values = {
            column.name: getattr(memory, column.name) for column in memories.c if column.name != "indexed_under"
        }
        await connection.execute(insert(memories).values(**values | {"subjects": list(memory.subjects)}))
        await self.link(connection, memory.id, memory.owners, content_key)

    async def link(
        self, connection: AsyncConnection, id: str, owners: Iterable[str], content_key: str
    ) -> None:
        """Give a memory further owners. One that had given it up before takes it back."""
        for owner in owners:
            here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner == owner)
            back = await connection.execute(update(memory_owners).where(here).values(superseded=0))
            if back.rowcount == 0:
                await connection.execute(
                    insert(memory_owners).values(memory_id=id, owner=owner, content_key=content_key)
                )
        await _index_again(connection, [id])

    async def supersede(
        self,
        connection: AsyncConnection,
        old: Memory,
        owners: Collection[str],
        *,
        new_id: str | None,
        user: str,
        reason: str,
        now: datetime,
    ) -> None:
        """For these owners `old` gives way to `new_id`; what other owners have stays as it is."""
        await connection.execute(
            update(memory_owners)
            .where(memory_owners.c.memory_id == old.id, memory_owners.c.owner.in_(owners))
            .values(superseded=1)
        )
        await connection.execute(
            insert(memory_updates).values(
                id=str(uuid4()),
                user_id=user,
                old_id=old.id,
                new_id=new_id,
                reason=reason,
                created_at=now,
                owners=sorted(owners),
            )
        )
        await _index_again(connection, [old.id])

    async def refresh(self, connection: AsyncConnection, memory: Memory, **values: Any) -> None:
        """Change importance, expiry or subjects of a memory that was said again."""
        if "subjects" in values:
            values["subjects"] = list(values["subjects"])
        await connection.execute(update(memories).where(memories.c.id == memory.id).values(**values))
        await _index_again(connection, [memory.id])

    # Upkeep.

    async def touch(self, ids: Collection[str], now: datetime) -> None:
        """These were recalled."""
        async with self._database.write() as connection:
            await connection.execute(
                update(memories)
                .where(memories.c.id.in_(ids))
                .values(last_accessed_at=now, uses=memories.c.uses + 1)
            )

    async def unindexed(self, generation: str, limit: int) -> list[Memory]:
        """Memories, superseded ones too, whose state the index of this generation does not show yet."""
        due = or_(memories.c.indexed_under.is_(None), memories.c.indexed_under != generation)
        async with self._database.read() as connection:
            return await _fetch(connection, due, limit, "oldest")

    async def mark_indexed(self, ids: Collection[str], generation: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(
                update(memories).where(memories.c.id.in_(ids)).values(indexed_under=generation)
            )

    async def unlink(self, connection: AsyncConnection, memory: Memory, user: str) -> bool:
        """Take a memory away from `user`, and from the places they said it in unless somebody else said it
        too. True when nobody holds it any more and it was deleted, with what it had replaced."""
        others = {owner for owner in memory.owners if owner.startswith("user:")} - {user_key(user)}
        gone = {user_key(user)} if others else set(memory.owners)
        here = and_(memory_owners.c.memory_id == memory.id, memory_owners.c.owner.in_(gone))
        await connection.execute(delete(memory_owners).where(here))
        if not others:
            await self.delete(connection, [memory.id])
            return True
        await _index_again(connection, [memory.id])
        return False

    async def delete(self, connection: AsyncConnection, ids: Collection[str]) -> list[str]:
        """Delete rows, and what they had replaced and nobody holds. Returns all ids that went."""
        gone, new = set(ids), set(ids)
        while new:
            older = select(memory_updates.c.old_id).where(
                memory_updates.c.new_id.in_(new), ~_held(memory_updates.c.old_id)
            )
            new = {row.old_id for row in await connection.execute(older)} - gone
            gone |= new
        for column in (memory_updates.c.old_id, memory_updates.c.new_id):
            await connection.execute(delete(memory_updates).where(column.in_(gone)))
        await connection.execute(delete(memory_owners).where(memory_owners.c.memory_id.in_(gone)))
        await connection.execute(delete(memories).where(memories.c.id.in_(gone)))
        return sorted(gone)

    async def expired(self, now: datetime, limit: int) -> list[Memory]:
        """What the purge is to delete, whoever it belongs to."""
        async with self._database.read() as connection:
            return await _fetch(connection, memories.c.expires_at <= now, limit, "oldest")

    async def totals(self, now: datetime) -> dict[str, int]:
        """Counts for `hachi doctor` and `hachi stats`; no content."""
        active = _held(memories.c.id)
        query = select(
            func.count(case((and_(active, unexpired(now)), 1))).label("active"),
            func.count(case((~active, 1))).label("superseded"),
            func.count(case((memories.c.expires_at <= now, 1))).label("expired"),
            func.count(case((memories.c.indexed_under.is_(None), 1))).label("unindexed"),
        ).select_from(memories)
        async with self._database.read() as connection:
            return dict((await connection.execute(query)).one()._mapping)


def readable(audience: Audience) -> ColumnElement[bool]:
    """The rows of `memories` that the audience may read: the twin of `Audience.may_read` in SQL."""
    return exists().where(
        memory_owners.c.memory_id == memories.c.id, memory_owners.c.owner.in_(audience.keys), _active()
    )


def unexpired(now: datetime) -> ColumnElement[bool]:
    return or_(memories.c.expires_at.is_(None), memories.c.expires_at > now)


def _active() -> ColumnElement[bool]:
    return memory_owners.c.superseded == 0


def _held(id: ColumnElement[str]) -> ColumnElement[bool]:
    return exists().where(memory_owners.c.memory_id == id, _active())


async def _index_again(connection: AsyncConnection, ids: Collection[str]) -> None:
    await connection.execute(update(memories).where(memories.c.id.in_(ids)).values(indexed_under=None))


async def _fetch(
    connection: AsyncConnection,
    where: ColumnElement[bool],
    limit: int | None = None,
    order: Order = "newest",
) -> list[Memory]:
    """Memories with their active owners."""
    by_age = memories.c.created_at.desc() if order == "newest" else memories.c.created_at
    query = select(memories).where(where).order_by(by_age, memories.c.id)
    rows = (await connection.execute(query if limit is None else query.limit(limit))).all()
    if not rows:
        return []
    links = select(memory_owners.c.memory_id, memory_owners.c.owner).where(
        memory_owners.c.memory_id.in_([row.id for row in rows]), _active()
    )
    owners: dict[str, set[str]] = {}
    for link in await connection.execute(links):
        owners.setdefault(link.memory_id, set()).add(link.owner)
    return [_memory(row, owners.get(row.id, set())) for row in rows]


def _memory(row: Any, owners: Iterable[str]) -> Memory:
    return Memory(
        id=row.id,
        content=row.content,
        subjects=tuple(row.subjects),
        created_at=row.created_at,
        expires_at=row.expires_at,
        source=row.source,
        type=row.type,
        importance=row.importance,
        last_accessed_at=row.last_accessed_at,
        uses=row.uses,
        user_id=row.user_id,
        place=row.place,
        message_id=row.message_id,
        owners=frozenset(owners),
    )
