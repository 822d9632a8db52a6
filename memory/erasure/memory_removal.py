"""Removes memories and their replaced predecessors, for one owner or for everybody. Each function runs in the
caller's transaction; `memory.erasure.expiry` also removes the vectors."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import PRIVATE, user_key
from memory.errors import NotFound
from memory.process.spans import new_id
from memory.records import Memory
from memory.sql.memories import CORRECTED, MADE_PRIVATE, link, replaced_by, tellers
from memory.sql.memory_rows import fetch, index_again, is_active, told_again, unexpired
from memory.sql.message_rows import kept
from memory.sql.tables import memories, memory_owners, memory_sources, memory_updates, messages


async def unlink(connection: AsyncConnection, memory: Memory, user: str) -> list[str]:
    """Remove a memory, and what it had replaced, for `user` and for its places. It stays in the places if
    somebody else stated it too. Returns the ids of the rows that were deleted because no owner is left.
    Raises NotFound if `user` did not state it."""
    links = await _lock(connection, memory.id)
    active = {row.owner for row in links if not row.superseded}
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
    own, active = user_key(user), {row.owner for row in links if not row.superseded}
    others = tellers({row.owner for row in links}, first) - {own}
    replaced_there = (
        select(memory_updates.c.owners)
        .join(memory_owners, memory_owners.c.memory_id == memory_updates.c.new_id)
        .where(memory_updates.c.old_id == id, memory_owners.c.owner.in_(filter(_is_place, active)))
    )
    gave_up = {owner for owners in await connection.scalars(replaced_there) for owner in owners}
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
    own = memory_sources.c.message_id.in_(spoken.where(messages.c.user_id == user))
    await connection.execute(delete(memory_sources).where(memory_sources.c.memory_id == id, own))
    theirs = (
        select(messages.c.id)
        .join(memory_sources, memory_sources.c.message_id == messages.c.id)
        .where(memory_sources.c.memory_id == id, messages.c.user_id == heir, kept())
    )
    evidence = (await connection.execute(theirs.order_by(messages.c.seq).limit(1))).scalar()
    first = update(memories).where(memories.c.id == id, memories.c.user_id == user)
    await connection.execute(first.values(user_id=heir, message_id=evidence))


async def make_private(connection: AsyncConnection, memory: Memory, user: str, now: datetime) -> list[str]:
    """Remove a memory, and what it had replaced, from all places. `user`, the only person who stated it,
    keeps it. Returns the ids of the deleted rows. Raises NotFound if the memory is in no place, or if
    somebody else stated it too."""
    links, own = await _lock(connection, memory.id), user_key(user)
    active = {row.owner for row in links if not row.superseded}
    if tellers(active, memory.user_id) != {own} or not any(map(_is_place, active)):
        raise NotFound(f"memory {memory.id!r} is not {user}'s to make private: somebody else told it too")
    content_key = links[0].content_key
    same_words = (memory_owners.c.owner == own, memory_owners.c.content_key == content_key, is_active())
    held = await connection.scalar(select(memory_owners.c.memory_id).where(*same_words))
    if held is None and own not in {row.owner for row in links}:
        await link(connection, memory.id, [own], content_key)
    gone = await take_away(connection, {memory.id: {row.owner for row in links if _is_place(row.owner)}})
    for step in await _steps(connection, memory_updates.c.old_id == memory.id):
        await _keep_owners(connection, step, [owner for owner in step.owners if not _is_place(owner)])
    if memory.id not in gone:
        alone = update(memories).where(memories.c.id == memory.id)
        await connection.execute(alone.values(place=str(PRIVATE)))
        await index_again(connection, [memory.id])
    kept = held if memory.id in gone else memory.id
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
    for owner, step in await replaced_by(connection, ids):
        if step.old_id in ids or (step.reason == CORRECTED and not corrected):
            continue
        theirs = (memory_owners.c.memory_id == step.old_id, memory_owners.c.owner == owner)
        unended = select(memories.c.id).where(memories.c.id == step.old_id, unexpired(now))
        back = update(memory_owners).where(*theirs, memory_owners.c.memory_id.in_(unended), ~told_again())
        await connection.execute(back.values(superseded=0))
        await index_again(connection, [step.old_id])


async def _lock(connection: AsyncConnection, id: str) -> list[Any]:
    """Lock all links of a memory, so that a concurrent statement of the same memory waits."""
    await connection.execute(select(memories.c.id).where(memories.c.id == id).with_for_update())
    links = await connection.execute(select(memory_owners).where(memory_owners.c.memory_id == id))
    return list(links.all())


async def take_away(connection: AsyncConnection, lost: dict[str, Collection[str] | None]) -> list[str]:
    """Delete the links of these owners (None: all owners) to each memory, and to those that it had replaced
    for them. A row is deleted with its last link; it stays while it is part of any owner's history."""
    touched: set[str] = set()
    waiting = list(lost.items())
    while waiting:
        id, owners = waiting.pop()
        touched.add(id)
        here = memory_owners.c.owner.in_(owners) if owners is not None else true()
        await connection.execute(delete(memory_owners).where(memory_owners.c.memory_id == id, here))
        for step in await _steps(connection, memory_updates.c.new_id == id):
            theirs = [owner for owner in step.owners if owners is None or owner in owners]
            await _keep_owners(connection, step, [owner for owner in step.owners if owner not in theirs])
            given_up = select(memory_owners.c.owner).where(
                memory_owners.c.memory_id == step.old_id, memory_owners.c.owner.in_(theirs), ~is_active()
            )
            if replaced := set((await connection.execute(given_up)).scalars()):
                waiting.append((step.old_id, replaced))
    linked = select(memory_owners.c.memory_id).where(memory_owners.c.memory_id.in_(touched))
    gone = touched - set((await connection.execute(linked)).scalars())
    await connection.execute(delete(memory_updates).where(memory_updates.c.old_id.in_(gone)))
    await connection.execute(delete(memories).where(memories.c.id.in_(gone)))
    return sorted(gone)


async def _steps(connection: AsyncConnection, where: Any) -> list[Any]:
    return list((await connection.execute(select(memory_updates).where(where))).all())


async def _keep_owners(connection: AsyncConnection, step: Any, owners: list[str]) -> None:
    """Keep this step of the history for one of these owners only; delete it if there are none."""
    same = memory_updates.c.id == step.id
    kept = update(memory_updates).where(same).values(owners=owners)
    await connection.execute(kept if owners else delete(memory_updates).where(same))


def _is_place(owner: str) -> bool:
    return owner.startswith("place:")
