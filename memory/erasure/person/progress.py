"""The row of a running erasure: who, since when, and how much has gone, so that a killed one goes on.

It holds no list of what is to go: every step deletes what it finds and tells the index in its transaction.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.erasure.person.memories import memory_ids_of, stated_alone
from memory.sql import tables as t

SHARED, SHOWN = "memories shared", "replies shown"
LEFT = {
    SHARED: "somebody else stated them too, or they are everybody's",
    SHOWN: "they were written to others while something of this person was in view, and do not contain it",
}
"""What stays on purpose, by kind, and why."""


@dataclass(slots=True)
class ErasureProgress:
    """What the running erasure has deleted so far."""

    user: str
    counts: Counter[str] = field(default_factory=Counter)
    """The number of deleted items, by kind; and of those that stay, by a kind of `LEFT`."""
    places: set[str] = field(default_factory=set)
    """The keys of the places where they spoke."""
    ids: set[str] = field(default_factory=set)
    """The ids of the messages, memories, summaries and chunks of documents that this run deletes."""
    said: set[str] = field(default_factory=set)
    """The texts of these messages."""

    def gone(self, ids: Collection[str]) -> None:
        """Note that these rows are deleted, and that the index is to lose them."""
        self.ids.update(ids)
        self.counts["index"] += len(ids)


async def begin(
    connection: AsyncConnection, user: str, places: Collection[str], now: datetime
) -> ErasureProgress:
    """Store that this person is being erased, or go on with an interrupted erasure. `places` are further keys
    of places where they spoke."""
    row = (await connection.execute(select(t.erasures).where(t.erasures.c.user_id == user))).first()
    if row is None:
        new = {"user_id": user, "begun_at": now, "places": [], "sought": [], "removed": {}}
        await connection.execute(insert(t.erasures).values(**new))
    progress = ErasureProgress(user)
    if row is not None:
        progress.counts.update(row.removed)
        progress.places |= {*row.places}
    progress.places |= {*places, *await _places_of(connection, user)}
    await _read(connection, progress)
    await store(connection, progress)
    return progress


async def store(connection: AsyncConnection, progress: ErasureProgress) -> None:
    now = {"places": sorted(progress.places), "removed": dict(progress.counts)}
    same = t.erasures.c.user_id == progress.user
    await connection.execute(update(t.erasures).where(same).values(**now))


async def end(connection: AsyncConnection, user: str) -> None:
    await connection.execute(delete(t.erasures).where(t.erasures.c.user_id == user))


async def unfinished(connection: AsyncConnection) -> list[tuple[str, bool]]:
    """The people whose erasure has not ended, and whether each has spoken since it began."""
    since = select(func.count()).where(
        t.messages.c.user_id == t.erasures.c.user_id, t.messages.c.sent_at > t.erasures.c.begun_at
    )
    query = select(t.erasures.c.user_id, since.scalar_subquery().label("spoken"))
    return [(row.user_id, row.spoken > 0) for row in await connection.execute(query)]


async def _read(connection: AsyncConnection, progress: ErasureProgress) -> None:
    user, summaries = progress.user, t.active_conversations.c
    spoken = select(t.messages.c.id, t.messages.c.role, t.messages.c.text).where(t.messages.c.user_id == user)
    for row in await connection.execute(spoken):
        progress.ids.add(row.id)
        if row.role == "user":
            progress.said.add(row.text)
    for query in (
        select(t.memories.c.id).where(stated_alone(user)),
        select(summaries.id).where(summaries.owner == user_key(user)),
    ):
        progress.ids.update(await connection.scalars(query))


async def _places_of(connection: AsyncConnection, user: str) -> set[str]:
    """The keys of the places where the person spoke, or that know a memory of theirs."""
    link = t.memory_owners.c
    spoke = select(t.messages.c.place).where(t.messages.c.user_id == user, t.messages.c.place != "")
    told = link.memory_id.in_(memory_ids_of(user).order_by(None))
    known = select(link.owner).where(told, link.owner.startswith("place:"))
    found = [await connection.scalars(query.distinct()) for query in (spoke, known)]
    return {key for keys in found for key in keys}
