"""The links between memories and their owners, which carry the state of a fact.

A fact holds for an owner while their link has no `superseded_by`. Replacing, undoing and reviving are updates
of links. A link that was superseded without a time never held, or was taken back: nothing brings it back. One
that is superseded by its own memory is hidden (`memory.sql.hidden`).
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, exists, func, insert, literal, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.hidden import link_id, link_is_hidden, show
from memory.sql.memory_rows import index_again, told_again
from memory.sql.tables import memory_aliases, memory_owners

HOLDS = {"superseded_by": None, "superseded_at": None, "reason": None}


async def link(connection: AsyncConnection, id: str, owners: Iterable[str], content_key: str) -> None:
    """Add owners to a memory, with its aliases. If it was superseded or hidden for an owner, it holds
    again."""
    owners = list(owners)
    await show(connection, "link", [link_id(id, owner) for owner in owners])
    for owner in owners:
        here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner == owner)
        back = await connection.execute(update(memory_owners).where(here).values(HOLDS))
        if back.rowcount == 0:
            row = {"memory_id": id, "owner": owner, "content_key": content_key}
            await connection.execute(insert(memory_owners).values(**row))
            columns = (
                memory_aliases.c.memory_id,
                literal(owner),
                memory_aliases.c.name,
                memory_aliases.c.other,
            )
            known = select(*columns).where(memory_aliases.c.memory_id == id).distinct()
            names = ["memory_id", "owner", "name", "other"]
            await connection.execute(insert(memory_aliases).from_select(names, known))
    await index_again(connection, [id])


async def end(
    connection: AsyncConnection,
    ids: Collection[str],
    owners: Collection[str],
    by: str,
    reason: str,
    at: datetime | None,
) -> None:
    """Let these memories give way to `by` for these owners. Without a time `at` nothing brings them back."""
    links = update(memory_owners).where(memory_owners.c.memory_id.in_(ids), memory_owners.c.owner.in_(owners))
    await connection.execute(links.values(superseded_by=by, superseded_at=at, reason=reason))
    await index_again(connection, ids)


def gave_way(ids: Collection[str]) -> ColumnElement[bool]:
    """True for the links that these memories ended, and that can be brought back."""
    other = memory_owners.c.superseded_by != memory_owners.c.memory_id
    return and_(memory_owners.c.superseded_by.in_(ids), other, memory_owners.c.superseded_at.is_not(None))


def by_what_holds() -> ColumnElement[bool]:
    """True for a link whose owner still has what it gave way to."""
    newer = memory_owners.alias("newer")
    same = (newer.c.memory_id == memory_owners.c.superseded_by, newer.c.owner == memory_owners.c.owner)
    return exists().where(*same, newer.c.superseded_by.is_(None))


async def bring_back(connection: AsyncConnection, ended: ColumnElement[bool]) -> list[Row[Any]]:
    """Let the facts of these links hold again, unless their owner has one with the same words. Returns the
    links, each with its memory_id and owner."""
    same_words = (memory_owners.c.owner, memory_owners.c.content_key)
    newest = func.row_number().over(partition_by=same_words, order_by=memory_owners.c.superseded_at.desc())
    found = select(memory_owners.c.memory_id, memory_owners.c.owner, newest.label("rank"))
    ranked = found.where(ended, ~told_again(), ~link_is_hidden()).subquery()
    back = select(ranked.c.memory_id, ranked.c.owner).where(ranked.c.rank == 1)
    key = (memory_owners.c.memory_id, memory_owners.c.owner)
    again = update(memory_owners).where(tuple_(*key).in_(back)).values(HOLDS).returning(*key)
    links = list((await connection.execute(again)).all())
    await index_again(connection, {row.memory_id for row in links})
    return links


async def with_replaced(connection: AsyncConnection, ids: Iterable[str]) -> set[str]:
    """These memories and all that gave way to them, directly or not."""
    ids = set(ids)
    chain = (
        select(memory_owners.c.memory_id).where(memory_owners.c.superseded_by.in_(ids)).cte(recursive=True)
    )
    older = select(memory_owners.c.memory_id).join(chain, memory_owners.c.superseded_by == chain.c.memory_id)
    return ids.union(await connection.scalars(select(chain.union(older).c.memory_id)))
