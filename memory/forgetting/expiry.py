"""Delete expired memories. Messages stay."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, exists, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.facts.derived import withhold
from memory.forgetting.purge import BATCH, delete_links, drop_calls
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import fetch
from memory.sql.memories.replacements import WHILE_IT_HOLDS, Link, still_replaces
from memory.sql.messages.summaries import heard_by
from memory.sql.tables import active_conversations, memories, memory_owners, messages, replacements, rests_on

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
    async with database.write(lock=_owners(due)) as connection:
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


def _owners(given: Iterable[Memory]) -> set[str]:
    """Return the owners to lock, so that a reply is stored before the deletion or misses its source."""
    return {owner for memory in given for owner in memory.owners}


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
