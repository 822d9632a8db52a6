"""Withdraw a memory from the places where it was stated: only its author can still read it."""

from collections.abc import Callable, Collection
from datetime import datetime

from sqlalchemy import and_, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.errors import NotFound
from memory.facts.compare import content_key
from memory.facts.derived import withhold
from memory.forgetting.cascade import of_fact
from memory.forgetting.replies import in_places
from memory.process.spans import new_id
from memory.records import Memory
from memory.sql import hidden as entries
from memory.sql.engine import Database
from memory.sql.engine.errors import retried
from memory.sql.hidden import Kind, link_id
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import fetch
from memory.sql.memories.owner_links import link
from memory.sql.memories.replacements import is_active
from memory.sql.memories.store import MADE_PRIVATE, tellers
from memory.sql.rests_on import stated_in
from memory.sql.tables import context_entries, memories, memory_owners, memory_updates, messages, rests_on


async def make_private(database: Database, clock: Callable[[], datetime], memory: Memory, user: str) -> None:
    """Withdraw a person's memory from all places. The memories that it had superseded, its messages, and
    replies that answer those or contain it are withdrawn too; such private replies to others are hidden.
    Raises NotFound if the memory is in no place, or if somebody else stated it too."""
    await retried(lambda: _make_private(database, clock, memory, user))


async def _make_private(database: Database, clock: Callable[[], datetime], memory: Memory, user: str) -> None:
    async with database.read() as connection:
        scanned = (await of_fact(connection, memory.id, user, clock())).scanned
    async with database.write(lock=memory.owners | {user_key(user)}) as connection:
        now = clock()
        cascade = await of_fact(connection, memory.id, user, now, scanned=scanned)
        places = {owner for id, owner in cascade.links if id == memory.id and owner.startswith("place:")}
        links = {one for one in cascade.links if one[1] in places}
        [memory] = await fetch(connection, memories.c.id == memory.id, now) or [memory]
        shared = any(owner.startswith("place:") for owner in memory.owners)
        if not shared or tellers(memory.owners, memory.user_id) != {user_key(user)}:
            raise NotFound(
                f"memory {memory.id!r} cannot be made private by {user}: it is in no place, or somebody else "
                "stated it too"
            )
        await _link_to(connection, memory, user, now)
        id = await entries.begin(connection, user, "private", now, None, memory.id)
        withdrawn = await _withdrawn_rows(connection, cascade.messages | cascade.replies, places)
        rows: dict[Kind, Collection[str]] = {"link": [link_id(*one) for one in links], "told": withdrawn}
        await entries.hide(connection, id, {**rows, "message": cascade.elsewhere})
        await tell_platforms(connection, {*withdrawn, *cascade.elsewhere}, now)
        facts = [fact.id for fact in cascade.facts]
        await withhold(connection, now, message_ids=withdrawn, memory_ids=facts, owners=places, forgetting=id)
        await _note(connection, memory.id, user, now)


async def _link_to(connection: AsyncConnection, memory: Memory, user: str, now: datetime) -> None:
    """Link the memory to the person, unless they already own it or an active memory in the same words."""
    own, link_of = user_key(user), memory_owners.c
    key = content_key(memory.content)
    same = or_(link_of.memory_id == memory.id, and_(link_of.content_key == key, is_active()))
    theirs = select(link_of.memory_id).where(link_of.owner == own, same)
    if await connection.scalar(theirs, {"now": now}) is None:
        await link(connection, memory.id, [own], key, now)


async def _withdrawn_rows(
    connection: AsyncConnection, ids: Collection[str], places: Collection[str]
) -> set[str]:
    """Return those of these messages that were sent in the places or inside them, and the profile entries
    that rest on these messages alone."""
    here = select(messages.c.id).where(messages.c.id.in_(ids), in_places(places))
    sent = set(await connection.scalars(here))
    others = select(rests_on.c.derived_id).where(
        rests_on.c.source_id.not_in(sent), rests_on.c.how == "stated"
    )
    entry = context_entries.c.id
    alone = select(entry).where(entry.in_(stated_in(sent)), entry.not_in(others))
    return sent.union(await connection.scalars(alone))


async def _note(connection: AsyncConnection, id: str, user: str, now: datetime) -> None:
    """Add a step to the history of the memory: it was made private."""
    step = {"id": new_id(), "user_id": user, "old_id": id, "new_id": id, "owners": [user_key(user)]}
    await connection.execute(insert(memory_updates).values(**step, reason=MADE_PRIVATE, created_at=now))
