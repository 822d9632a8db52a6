"""Delete unused memories, memories over a person's cap, and old messages, if settings ask for that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, and_, delete, func, or_, select

from memory.audience import GLOBAL, user_key
from memory.facts.derived import withhold
from memory.forgetting.cascade import with_replaced
from memory.forgetting.purge import BATCH, NOBODY, Purge
from memory.records import Memory
from memory.sql import hidden as entries
from memory.sql.engine import Database
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.replacements import Link, is_active, unexpired
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import is_visible
from memory.sql.tables import memories, memory_owners, message_origins, messages

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
