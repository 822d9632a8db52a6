"""Delete expired memories; if settings ask for that, also unused ones, those over a person's cap, and old
messages."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, user_key
from memory.facts.derived import withhold
from memory.forgetting.cascade import with_replaced
from memory.forgetting.purge import BATCH, NOBODY, Purge, delete_links, drop_calls
from memory.records import Memory
from memory.sql import hidden as entries
from memory.sql.engine import Database
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import fetch
from memory.sql.memories.replacements import WHILE_IT_HOLDS, Link, is_active, still_replaces, unexpired
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.summaries import heard_by
from memory.sql.tables import (
    active_conversations,
    memories,
    memory_owners,
    message_origins,
    messages,
    replacements,
    rests_on,
)

AWAITED_FOR = timedelta(days=1)
"""How long an expired memory is kept until a summary is rewritten without it."""
CALLS_WAIT = timedelta(days=1)
"""How long a call of a client's tool waits for its result by `previous_response_id`, from its message on."""


async def expire(database: Database, clock: Callable[[], datetime]) -> list[Memory]:
    """Delete the expired memories of all owners, and return them. A summary that contains one is rewritten
    first. A memory that an expired one had corrected on purpose stays superseded while a message states it.
    Clients' calls older than `CALLS_WAIT` are deleted too; messages and replies stay."""
    async with database.write() as connection:
        await drop_calls(connection, messages.c.sent_at < clock() - CALLS_WAIT)
    purged: list[Memory] = []
    while await _expire_batch(database, clock(), purged):
        continue
    return purged


async def _expire_batch(database: Database, now: datetime, purged: list[Memory]) -> bool:
    """Delete a batch and append it to `purged`. Returns False if nothing had expired."""
    async with database.read() as connection:
        due = await _expired(connection, now)
    # a reply is stored before the deletion, or misses its source
    async with database.write(lock={owner for memory in due for owner in memory.owners}) as connection:
        batch = await _expired(connection, now)
        ids = [memory.id for memory in batch]
        ended = max((memory.expires_at or now for memory in batch), default=now)
        await withhold(connection, now, memory_ids=ids, written_before=ended)
        free = set(
            await connection.scalars(select(memories.c.id).where(memories.c.id.in_(ids), ~_awaited(now)))
        )
        await delete_links(connection, await _ended(connection, free, now))
    purged += [memory for memory in batch if memory.id in free]
    return bool(batch)


async def _expired(connection: AsyncConnection, now: datetime) -> list[Memory]:
    """Return and lock up to `BATCH` expired memories, without those that another transaction has locked."""
    due = select(memories.c.id).where(memories.c.expires_at <= now, ~_awaited(now))
    due = due.order_by(memories.c.expires_at)
    ids = list(await connection.scalars(due.limit(BATCH).with_for_update(skip_locked=True)))
    return await fetch(connection, memories.c.id.in_(ids), now) if ids else []


def _awaited(now: datetime) -> ColumnElement[bool]:
    """Match memories that are still needed to rewrite a summary, for at most `AWAITED_FOR`."""
    active, source = active_conversations.c, rests_on.c
    return exists().where(
        source.derived_id == memories.c.id,
        source.how == "stated",
        messages.c.id == source.source_id,
        active.conversation_id == messages.c.conversation_id,
        active.owner == heard_by(),
        active.covered >= messages.c.seq,
        active.withheld == 1,
        active.updated_at > now - AWAITED_FOR,
    )


async def _ended(connection: AsyncConnection, ids: Collection[str], now: datetime) -> set[Link]:
    """Return all links of these memories, and those of memories that stay superseded past their expiry,
    unless a message states them."""
    link, pair, source = memory_owners.c, replacements.c, rests_on.c
    stated = exists().where(source.derived_id == pair.old_id, source.how == "stated")
    past = (pair.new_id.in_(ids), pair.lasts != WHILE_IT_HOLDS, still_replaces(), ~stated)
    theirs = select(link.memory_id, link.owner).where(link.memory_id.in_(ids))
    both = union(theirs, select(pair.old_id, pair.owner).where(*past))
    rows = await connection.execute(both, {"now": now})
    return {(row.memory_id, row.owner) for row in rows}


Reason = Literal["expired", "unused", "over the cap"]


@dataclass(frozen=True, slots=True)
class CleanupItem:
    """A memory that clean-up deleted or would delete, and why."""

    memory: Memory
    reason: Reason


@dataclass(frozen=True, slots=True)
class Limits:
    unused_for: timedelta | None = None
    """Delete a memory that was not stated or recalled for this long …"""
    unimportant: float = 0.5
    """… and whose importance is below this. With `unused_for` None no memory is deleted as unused."""
    cap: int | None = None
    """The most memories a person may have. The least important, longest unused ones are deleted first."""
    messages_for: timedelta | None = None
    """Delete messages and replies older than this. Facts, tasks and profile entries from them stay."""


@dataclass(frozen=True)
class CleanUp:
    database: Database
    store: MemoryStore
    purge: Purge
    limits: Limits
    clock: Callable[[], datetime]

    async def preview(self) -> list[CleanupItem]:
        """Return the memories that have expired and those that `run` would delete now. Changes nothing."""
        now = self.clock()
        expired = await self.store.where(memories.c.expires_at <= now, now)
        return [*(CleanupItem(memory, "expired") for memory in expired), *await self._over_limits(now)]

    async def run(self) -> list[CleanupItem]:
        """Delete the memories over the limits, and return them."""
        found = await self._over_limits(self.clock())
        people = dict.fromkeys(item.memory.user_id for item in found)
        deleted = [await self.delete([i for i in found if i.memory.user_id == user], user) for user in people]
        return [item for some in deleted for item in some]

    async def delete(self, items: Sequence[CleanupItem], user: str) -> list[CleanupItem]:
        """Delete these memories of the person and those they superseded. Returns the deleted items."""
        now, links, gone = self.clock(), set[Link](), list[CleanupItem]()
        owners = {owner for item in items for owner in item.memory.owners} | {user_key(user)}
        async with self.database.write(lock=owners) as connection:
            for item in items:
                theirs, _ = await with_replaced(connection, [item.memory.id], user, now)
                links |= theirs
                gone += [item] if theirs else []
            forgetting = await entries.begin(connection, user, "old", now, now)
            await entries.hide(connection, forgetting, {"link": [entries.link_id(*link) for link in links]})
            lost = [item.memory.id for item in gone]
            await withhold(connection, now, memory_ids=lost, owners={owner for _, owner in links})
        await self.purge.delete(forgetting)
        return gone

    async def hide_old_messages(self) -> int:
        """Hide messages older than the limit; the purge deletes them. Summaries are rewritten, posts on
        platforms stay. Returns how many were hidden."""
        if self.limits.messages_for is None:
            return 0
        hidden, now = 0, self.clock()
        old = select(messages.c.id).where(messages.c.sent_at < now - self.limits.messages_for, is_visible())
        while True:
            async with self.database.write() as connection:
                ids = list(await connection.scalars(old.order_by(messages.c.seq).limit(BATCH)))
                if not ids:
                    return hidden
                await connection.execute(delete(message_origins).where(message_origins.c.message_id.in_(ids)))
                forgetting = await entries.begin(connection, NOBODY, "old", now, now)
                await entries.hide(connection, forgetting, {"message": ids})
                await tell_platforms(connection, ids, now)
                await withhold(connection, now, message_ids=ids, forgetting=forgetting)
            hidden += len(ids)

    async def _over_limits(self, now: datetime) -> list[CleanupItem]:
        unused = await self._unused(now)
        over = await self._over_the_cap({memory.id for memory in unused}, now)
        return [*(CleanupItem(m, "unused") for m in unused), *(CleanupItem(m, "over the cap") for m in over)]

    async def _unused(self, now: datetime) -> list[Memory]:
        if self.limits.unused_for is None:
            return []
        before = now - self.limits.unused_for
        return await self.store.where(
            and_(
                _personal(),
                memories.c.importance < self.limits.unimportant,
                memories.c.created_at < before,
                or_(memories.c.last_accessed_at.is_(None), memories.c.last_accessed_at < before),
            ),
            now,
        )

    async def _over_the_cap(self, unused: set[str], now: datetime) -> list[Memory]:
        """Return the memories over each person's cap. They count for their author, also in channels."""
        if self.limits.cap is None:
            return []
        counted = (
            select(memories.c.user_id)
            .where(_personal(), memories.c.id.not_in(unused))
            .group_by(memories.c.user_id)
            .having(func.count() > self.limits.cap)
        )
        async with self.database.read() as connection:
            users = (await connection.scalars(counted, {"now": now})).all()
        over: list[Memory] = []
        for user in users:
            theirs = await self.store.where(and_(memories.c.user_id == user, _personal()), now)
            kept = [memory for memory in theirs if memory.id not in unused]
            kept.sort(key=lambda memory: (memory.importance, memory.last_accessed_at or memory.created_at))
            over += kept[: len(kept) - self.limits.cap]
        return over


def _personal() -> ColumnElement[bool]:
    """Match unexpired memories that a person or a place owns. Clean-up leaves global memories alone."""
    held = select(memory_owners.c.memory_id).where(is_active())
    everybodys = held.where(memory_owners.c.owner == GLOBAL)
    return and_(memories.c.id.in_(held), memories.c.id.not_in(everybodys), unexpired())
