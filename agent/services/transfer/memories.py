"""Stores memories of an export again as they were: with their teller, their time and their owners."""

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.facts.aliases import links_of
from memory.facts.compare import content_key
from memory.records import Memory
from memory.sql.memories import MemoryStore
from memory.sql.owner_links import link
from memory.sql.rests_on import record
from memory.sql.tables import memory_owners


async def restore(
    connection: AsyncConnection, store: MemoryStore, memory: Memory, sources: Collection[str]
) -> bool:
    """Store a memory of a place in the caller's transaction, with the ids of the messages that stated it.
    Owners who have this memory or the same words, or had it replaced, keep what they have. Returns whether
    it is new."""
    place, key = Place.parse(memory.place), content_key(memory.content)
    held = await store.holders(connection, memory.owners, key)
    here = held[place.key].id if place.key in held else memory.id
    owners = await _keys(connection, here)
    if owners and key not in owners.values():
        return False  # another memory has this id
    lacking = memory.owners - held.keys() - owners.keys()
    if owners:
        await link(connection, here, sorted(lacking), key)
    elif lacking:
        aliases = await links_of(connection, place, memory.user_id, memory.content)
        await store.insert(connection, {key: replace(memory, owners=lacking)}, aliases)
    if owners or lacking:
        await record(connection, here, sources, "stated")
    return bool(lacking) and not owners


async def _keys(connection: AsyncConnection, id: str) -> dict[str, str]:
    """The owners of this memory, also those for whom it was replaced, with the keys of its words."""
    links = select(memory_owners.c.owner, memory_owners.c.content_key).where(memory_owners.c.memory_id == id)
    return {row.owner: row.content_key for row in await connection.execute(links)}
