"""Removes memories and their replaced predecessors, for one owner or for everybody. Each function runs in the
caller's transaction; `memory.erasure.expiry` also removes the vectors."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import PRIVATE, user_key
from memory.errors import NotFound
from memory.process.spans import new_id
from memory.records import Memory
from memory.sql.changes import changed
from memory.sql.memories import CORRECTED, MADE_PRIVATE, tellers
from memory.sql.memory_rows import fetch, index_again, is_active, unexpired
from memory.sql.message_rows import kept
from memory.sql.owner_links import bring_back, by_what_holds, end, gave_way, link, with_replaced
from memory.sql.rests_on import let_go, statements_of
from memory.sql.tables import memories, memory_owners, memory_updates, messages, rests_on


async def unlink(connection: AsyncConnection, memory: Memory, user: str) -> list[str]:
    """Remove a memory, and what it had replaced, for `user` and for its places. It stays in the places if
    somebody else stated it too. Returns the ids of the rows that were deleted because no owner is left.
    Raises NotFound if `user` did not state it."""
    links = await _lock(connection, memory.id)
    active = {row.owner for row in links if row.superseded_by is None}
    if not active or user_key(user) not in tellers(active, memory.user_id):
        raise NotFound(f"memory {memory.id!r} is not {user}'s to take away: somebody else said it")
    return await _unlink(connection, memory.id, user, links, memory.user_id)


async def unlink_same(connection: AsyncConnection, id: str, user: str) -> list[str]:
    """Like `unlink`, for a memory that may be superseded already. Does nothing if `user` did not state it."""
    links = await _lock(connection, id)
    first = (await connection.execute(select(memories.c.user_id).where(memories.c.id == id))).scalar() or ""
    if user_key(user) not in tellers({row.owner for row in links}, first):
        return []
    return await _unlink(connection, id, user, links, first)


async def _unlink(
    connection: AsyncConnection, id: str, user: str, links: Sequence[Any], first: str
) -> list[str]:
    """Remove a memory for `user`: for everybody if nobody else stated it, else for its places too, unless
    somebody else stated it who has not replaced it there. Who has, keeps it as history."""
    own, active = user_key(user), {row.owner for row in links if row.superseded_by is None}
    others = tellers({row.owner for row in links}, first) - {own}
    newer = memory_owners.alias("newer")
    replaced_there = select(memory_owners.c.owner).join(
        newer, newer.c.memory_id == memory_owners.c.superseded_by
    )
    places = newer.c.owner.in_(list(filter(_is_place, active)))
    gave_up = set(await connection.scalars(replaced_there.where(memory_owners.c.memory_id == id, places)))
    still = others - gave_up
    if others:
        await _leave_to(connection, id, user, min(still or others).removeprefix("user:"))
    shared = {own} if still else active | {own}
    gone = await take_away(connection, {id: shared if others else None})
    await index_again(connection, [id])
    return gone


async def _leave_to(connection: AsyncConnection, id: str, user: str, heir: str) -> None:
    """Leave a memory to another person who stated it: without the messages of `user` as evidence, and with
    one of the heir's if `user` was named as the first teller."""
    spoken = select(messages.c.id).where(messages.c.role == "user")
    own = rests_on.c.source_id.in_(spoken.where(messages.c.user_id == user))
    await connection.execute(delete(rests_on).where(rests_on.c.derived_id == id, own))
    theirs = select(messages.c.id).where(
        messages.c.id.in_(statements_of([id])), messages.c.user_id == heir, kept()
    )
    evidence = (await connection.execute(theirs.order_by(messages.c.seq).limit(1))).scalar()
    first = update(memories).where(memories.c.id == id, memories.c.user_id == user)
    await connection.execute(first.values(user_id=heir, message_id=evidence))


async def make_private(connection: AsyncConnection, memory: Memory, user: str, now: datetime) -> list[str]:
    """Remove a memory, and what it had replaced, from all places. `user`, the only person who stated it,
    keeps it. Returns the ids of the deleted rows. Raises NotFound if the memory is in no place, or if
    somebody else stated it too."""
    links, own = await _lock(connection, memory.id), user_key(user)
    active = {row.owner for row in links if row.superseded_by is None}
    if tellers(active, memory.user_id) != {own} or not any(map(_is_place, active)):
        raise NotFound(f"memory {memory.id!r} is not {user}'s to make private: somebody else told it too")
    content_key = links[0].content_key
    same_words = (memory_owners.c.owner == own, memory_owners.c.content_key == content_key, is_active())
    held = await connection.scalar(select(memory_owners.c.memory_id).where(*same_words))
    if held is None and own not in {row.owner for row in links}:
        await link(connection, memory.id, [own], content_key)
    places = {row.owner for row in links if _is_place(row.owner)}
    gone = await take_away(connection, {memory.id: places})
    if memory.id not in gone:
        alone = update(memories).where(memories.c.id == memory.id)
        await connection.execute(alone.values(place=str(PRIVATE)))
        await index_again(connection, [memory.id])
    kept = (held if memory.id in gone else None) or memory.id
    shown = sorted(places & active)  # where it is not noted again
    await link(connection, kept, shown, content_key)
    await end(connection, [kept], shown, None, MADE_PRIVATE, now)
    step = {"id": new_id(), "user_id": user, "old_id": kept, "new_id": kept, "owners": [own]}
    await connection.execute(insert(memory_updates).values(**step, reason=MADE_PRIVATE, created_at=now))
    return gone


async def delete_for_everybody(connection: AsyncConnection, ids: Collection[str]) -> list[str]:
    """Delete these memories and those that they had replaced. Returns the ids of all deleted rows."""
    return await take_away(connection, dict.fromkeys(ids))


async def expired(connection: AsyncConnection, now: datetime, limit: int) -> list[Memory]:
    """Up to `limit` expired memories of all owners, locked until the transaction ends. The next purge handles
    those that another transaction has locked."""
    due = select(memories.c.id).where(memories.c.expires_at <= now).order_by(memories.c.id).limit(limit)
    ids = (await connection.execute(due.with_for_update(skip_locked=True))).scalars().all()
    return await fetch(connection, memories.c.id.in_(ids)) if ids else []


async def revive(
    connection: AsyncConnection, ids: Collection[str], now: datetime, *, corrected: bool = False
) -> None:
    """Reactivate what these expiring or deleted memories had replaced: when a temporary address ends, the old
    one is valid again. Skips a memory that has expired itself and owners who have an active memory with the
    same words; and, unless `corrected`, a memory that was corrected on purpose."""
    unended = select(memories.c.id).where(unexpired(now), memories.c.id.not_in(ids))
    again = gave_way(ids) & by_what_holds() & memory_owners.c.memory_id.in_(unended)
    await bring_back(connection, again if corrected else again & (memory_owners.c.reason != CORRECTED))


async def _lock(connection: AsyncConnection, id: str) -> list[Any]:
    """Lock all links of a memory, so that a concurrent statement of the same memory waits."""
    await connection.execute(select(memories.c.id).where(memories.c.id == id).with_for_update())
    links = await connection.execute(select(memory_owners).where(memory_owners.c.memory_id == id))
    return list(links.all())


async def take_away(connection: AsyncConnection, lost: dict[str, Collection[str] | None]) -> list[str]:
    """Delete the links of these owners (None: all owners) to each memory, and to those that it had replaced
    for them. A row is deleted with its last link; it stays while it is part of any owner's history."""
    chain = await with_replaced(connection, lost)
    query = select(memory_owners).where(memory_owners.c.memory_id.in_(chain))
    links = (await connection.execute(query)).all()
    gone: dict[str, set[str]] = {}
    waiting = [
        (id, row.owner)
        for id, owners in lost.items()
        for row in links
        if id in (row.memory_id, row.superseded_by) and (owners is None or row.owner in owners)
    ]
    while waiting:
        id, owner = waiting.pop()
        if owner not in gone.setdefault(id, set()):
            gone[id].add(owner)
            waiting += [
                (row.memory_id, owner) for row in links if (row.superseded_by, row.owner) == (id, owner)
            ]
    for id, owners in gone.items():
        here = (memory_owners.c.memory_id == id, memory_owners.c.owner.in_(owners))
        await connection.execute(delete(memory_owners).where(*here))
    touched = gone.keys() | lost.keys()
    linked = select(memory_owners.c.memory_id).where(memory_owners.c.memory_id.in_(touched))
    unowned = touched - set(await connection.scalars(linked))
    await connection.execute(delete(memory_updates).where(memory_updates.c.old_id.in_(unowned)))
    await connection.execute(delete(memories).where(memories.c.id.in_(unowned)))
    await let_go(connection, unowned)
    await changed(connection, "memory", unowned, gone=True)
    return sorted(unowned)


def _is_place(owner: str) -> bool:
    return owner.startswith("place:")
