"""Clean-up that is off unless a setting asks for it: what is old, unimportant and never used, and what is
over a person's cap. Everything can be looked at before it goes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, and_, func, or_, select

from memory.audience import GLOBAL
from memory.erasure.removal import Removal
from memory.errors import NotFound
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.memories import MemoryStore
from memory.sql.memory_rows import unexpired
from memory.sql.tables import memories, memory_owners

Reason = Literal["expired", "unused", "over the cap"]


@dataclass(frozen=True, slots=True)
class Leaving:
    """A memory that goes, or would, and why."""

    memory: Memory
    reason: Reason


@dataclass(frozen=True, slots=True)
class Limits:
    unused_for: timedelta | None = None
    """What was neither said nor recalled for so long …"""
    unimportant: float = 0.5
    """… and is of less importance than this goes. None above: nothing does."""
    cap: int | None = None
    """How many memories a person may have; those of least importance, longest unused, go first."""


class CleanUp:
    def __init__(
        self,
        database: Database,
        store: MemoryStore,
        removal: Removal,
        limits: Limits,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._store = store
        self._removal = removal
        self._limits = limits
        self._clock = clock

    async def preview(self) -> list[Leaving]:
        """What `tidy` would take away now, and what has expired; nothing is changed."""
        now = self._clock()
        expired = await self._store.where(memories.c.expires_at <= now)
        return [*(Leaving(memory, "expired") for memory in expired), *(await self._leaving(now))]

    async def tidy(self) -> list[Leaving]:
        """Take away what the limits do not keep; says what went."""
        left = []
        for leaver in await self._leaving(self._clock()):
            try:
                if leaver.reason == "unused":
                    await self._removal.remove([leaver.memory])
                else:
                    await self._removal.delete(leaver.memory, leaver.memory.user_id)
            except NotFound:
                continue  # somebody took it away meanwhile, or others hold it now
            left.append(leaver)
        return left

    async def _leaving(self, now: datetime) -> list[Leaving]:
        unused = await self._unused(now)
        over = await self._over_the_cap({memory.id for memory in unused}, now)
        return [
            *(Leaving(memory, "unused") for memory in unused),
            *(Leaving(memory, "over the cap") for memory in over),
        ]

    async def _unused(self, now: datetime) -> list[Memory]:
        if self._limits.unused_for is None:
            return []
        before = now - self._limits.unused_for
        return await self._store.where(
            and_(
                _active(),
                unexpired(now),
                memories.c.importance < self._limits.unimportant,
                memories.c.created_at < before,
                or_(memories.c.last_accessed_at.is_(None), memories.c.last_accessed_at < before),
            )
        )

    async def _over_the_cap(self, leaving: set[str], now: datetime) -> list[Memory]:
        """Counted by who said them: what somebody said in a channel is theirs too."""
        if self._limits.cap is None:
            return []
        counted = (
            select(memories.c.user_id)
            .where(_active(), unexpired(now), memories.c.id.not_in(leaving))
            .group_by(memories.c.user_id)
            .having(func.count() > self._limits.cap)
        )
        over: list[Memory] = []
        async with self._database.read() as connection:
            users = (await connection.execute(counted)).scalars().all()
        for user in users:
            theirs = await self._store.where(and_(memories.c.user_id == user, _active(), unexpired(now)))
            staying = [memory for memory in theirs if memory.id not in leaving]
            staying.sort(key=lambda memory: (memory.importance, memory.last_accessed_at or memory.created_at))
            over += staying[: len(staying) - self._limits.cap]
        return over


def _active() -> ColumnElement[bool]:
    """Held by somebody; what is everybody's is not tidied away."""
    held = select(memory_owners.c.memory_id).where(memory_owners.c.superseded == 0)
    everybodys = held.where(memory_owners.c.owner == GLOBAL)
    return and_(memories.c.id.in_(held), memories.c.id.not_in(everybodys))
