"""Write the links between memories and their owners. Whether a link is active is computed: see
`replacements`."""

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import and_, delete, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.records import Memory
from memory.sql.hidden import link_id, link_is_hidden, show
from memory.sql.memories.memory_rows import fetch
from memory.sql.memories.replacements import replace_same
from memory.sql.tables import (
    forgettings,
    hidden,
    memories,
    memory_aliases,
    memory_owners,
    replacements,
)


async def link(
    connection: AsyncConnection, id: str, owners: Iterable[str], content_key: str, now: datetime
) -> None:
    """Add owners to a memory and its aliases. If it was superseded or hidden for an owner, it becomes
    active again. It supersedes the owners' memories in the same words."""
    owners = list(owners)
    await show(connection, "link", [link_id(id, owner) for owner in owners])
    here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner.in_(owners))
    await connection.execute(delete(memory_owners).where(here))
    created_at = select(memories.c.created_at).where(memories.c.id == id).scalar_subquery()
    for owner in owners:
        row = {"memory_id": id, "owner": owner, "content_key": content_key, "created_at": created_at}
        await connection.execute(insert(memory_owners).values(**row))
        alias = memory_aliases.c
        known = select(alias.memory_id, literal(owner), alias.name, alias.other).where(alias.memory_id == id)
        names = ["memory_id", "owner", "name", "other"]
        await connection.execute(insert(memory_aliases).from_select(names, known.distinct()))
    await replace_same(connection, {content_key: id}, owners, now)


async def replaced_since(
    connection: AsyncConnection,
    owners: Collection[str],
    content_key: str,
    said_at: datetime,
    now: datetime,
) -> dict[str, str]:
    """Return, keyed by owner, the memory in these words that a fact newer than `said_at` superseded."""
    pair = replacements.c
    by = and_(pair.old_id == memory_owners.c.memory_id, pair.owner == memory_owners.c.owner)
    query = (
        select(memory_owners.c.owner, memory_owners.c.memory_id)
        .join(replacements, by)
        .join(memories, memories.c.id == pair.new_id)
        .where(memory_owners.c.content_key == content_key, memory_owners.c.owner.in_(owners))
        .where(~link_is_hidden(), memories.c.created_at > said_at, memories.c.created_at <= now)
    )
    return {row.owner: row.memory_id for row in await connection.execute(query)}


async def made_private(
    connection: AsyncConnection, user: str, now: datetime
) -> list[tuple[Memory, datetime]]:
    """Return the memories that a person made private, including superseded ones, each with the last time."""
    made = (forgettings.c.person == user, forgettings.c.why == "private", hidden.c.kind == "link")
    entries = hidden.join(forgettings, forgettings.c.id == hidden.c.forgetting_id)
    links = select(hidden.c.row_id, forgettings.c.at).select_from(entries).where(*made)
    rows = await connection.execute(links.order_by(forgettings.c.at))
    taken_back: dict[str, datetime] = {row.row_id.partition(" ")[0]: row.at for row in rows}
    found = await fetch(connection, memories.c.id.in_(taken_back), now) if taken_back else []
    return [(memory, taken_back[memory.id]) for memory in found]
