"""Convert rows of `memories` to `Memory` records, and define conditions and statements that several
modules use."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.process.pace import unhurried
from memory.records import Memory
from memory.sql.memories.replacements import is_active, unexpired
from memory.sql.readable import MEMORIES_READABLE
from memory.sql.tables import memories, memory_aliases, memory_owners

WHOLE_ID = 36
"""Characters of a UUID."""


def begins(column: ColumnElement[str], id: str) -> ColumnElement[bool]:
    """Match rows with this id, or with this prefix of an id if it has eight or more characters. A shorter
    prefix would read every row."""
    return column.startswith(id, autoescape=True) if 8 <= len(id) < WHOLE_ID else column == id


LINKS = memory_owners.alias("links")
ACTIVE_LINKS = and_(LINKS.c.memory_id == memories.c.id, is_active(links=LINKS))
WITH_OWNERS = (
    select(memories, LINKS.c.owner)
    .select_from(memories.outerjoin(LINKS, ACTIVE_LINKS))
    .order_by(memories.c.created_at.desc(), memories.c.id.desc())
)

# The statements of every search and every new fact are built once: building them takes longer than running.
UNEXPIRED = unexpired()
BY_IDS = WITH_OWNERS.where(memories.c.id.in_(bindparam("ids", expanding=True)), MEMORIES_READABLE, UNEXPIRED)
ALIASES = (
    select(memory_aliases.c.name, memory_aliases.c.other, memories.c.created_at)
    .select_from(
        memory_aliases.join(
            memory_owners,
            and_(
                memory_owners.c.memory_id == memory_aliases.c.memory_id,
                memory_owners.c.owner == memory_aliases.c.owner,
            ),
        ).join(memories, memories.c.id == memory_aliases.c.memory_id)
    )
    .where(memory_aliases.c.owner.in_(bindparam("owners", expanding=True)), is_active(), UNEXPIRED)
    .order_by(memories.c.created_at, memory_aliases.c.name, memory_aliases.c.other)
    .distinct()
)


async def fetch(
    connection: AsyncConnection, where: ColumnElement[bool], now: datetime, limit: int | None = None
) -> list[Memory]:
    """Return the memories that meet the condition, newest first."""
    if limit is not None:
        newest = select(memories.c.id).where(where)
        newest = newest.order_by(memories.c.created_at.desc(), memories.c.id.desc())
        where = memories.c.id.in_(newest.limit(limit))
    rows = await connection.execute(WITH_OWNERS.where(where), {"now": now})
    return [memory async for memory in unhurried(_with_owners(rows))]


def with_owners(rows: Iterable[Any]) -> list[Memory]:
    """Return memories with their active owners. Each row has one memory and one owner."""
    return list(_with_owners(rows))


def _with_owners(rows: Iterable[Any]) -> Iterator[Memory]:
    for _, links in groupby(rows, key=attrgetter("id")):
        first, *others = links
        yield _memory(first, {row.owner for row in (first, *others) if row.owner is not None})


def _memory(row: Any, owners: Iterable[str]) -> Memory:
    id, content, subjects, *others = row[: len(memories.c)]  # in the order of the record's fields
    fields: Any = (id, content, tuple(subjects), *others, frozenset(owners))
    return Memory(*fields)
