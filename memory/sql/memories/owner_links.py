"""The links between memories and their owners, which carry the state of a fact.

A fact holds for an owner while their link has no `superseded_by`. Replacing, undoing and reviving are updates
of links. A link that was superseded without a time never held, or was taken back: nothing brings it back. One
that is superseded by its own memory is hidden (`memory.sql.hidden`).
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, and_, exists, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.records import Memory
from memory.sql.hidden import link_id, link_is_hidden, show, still_hidden
from memory.sql.memories.memory_rows import fetch
from memory.sql.tables import forgettings, hidden, memories, memory_aliases, memory_owners

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


def gave_way(ids: Collection[str]) -> ColumnElement[bool]:
    """True for the links that these memories ended, and that can be brought back."""
    other = memory_owners.c.superseded_by != memory_owners.c.memory_id
    return and_(memory_owners.c.superseded_by.in_(ids), other, memory_owners.c.superseded_at.is_not(None))


def by_what_holds() -> ColumnElement[bool]:
    """True for a link whose owner still has what it gave way to."""
    newer = memory_owners.alias("newer")
    same = (newer.c.memory_id == memory_owners.c.superseded_by, newer.c.owner == memory_owners.c.owner)
    return exists().where(*same, newer.c.superseded_by.is_(None))


async def hold_again(connection: AsyncConnection, links: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Let these links, each a memory and its owner, hold again one after the other. A hidden one does so once
    it is shown; one whose words the owner was told again gives way to that. Returns those that hold."""
    back = set[tuple[str, str]]()
    for id, owner in links:
        here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner == owner)
        key = select(memory_owners.c.content_key).where(here).scalar_subquery()
        holds = (memory_owners.c.owner == owner, memory_owners.c.superseded_by.is_(None))
        told = select(memory_owners.c.memory_id).where(memory_owners.c.content_key == key, *holds)
        hidden = await still_hidden(connection, "link", [link_id(id, owner)])
        by = id if hidden else await connection.scalar(told)
        await connection.execute(update(memory_owners).where(here).values(HOLDS | {"superseded_by": by}))
        back |= set() if by else {(id, owner)}
    return back


async def with_replaced(connection: AsyncConnection, ids: Iterable[str]) -> set[str]:
    """These memories and all that gave way to them, directly or not."""
    ids = set(ids)
    chain = (
        select(memory_owners.c.memory_id).where(memory_owners.c.superseded_by.in_(ids)).cte(recursive=True)
    )
    older = select(memory_owners.c.memory_id).join(chain, memory_owners.c.superseded_by == chain.c.memory_id)
    return ids.union(await connection.scalars(select(chain.union(older).c.memory_id)))


async def replaced_since(
    connection: AsyncConnection,
    owners: Collection[str],
    content_key: str,
    said_at: datetime,
    now: datetime,
) -> dict[str, str]:
    """The memory with these words that was replaced by a statement from after `said_at`, for each of the
    owners for whom it was."""
    query = (
        select(memory_owners.c.owner, memory_owners.c.memory_id)
        .join(memories, memories.c.id == memory_owners.c.superseded_by)
        .where(memory_owners.c.content_key == content_key, memory_owners.c.owner.in_(owners))
        .where(memories.c.id != memory_owners.c.memory_id, ~link_is_hidden())
        .where(memories.c.created_at > said_at, memories.c.created_at <= now)
    )
    return {row.owner: row.memory_id for row in await connection.execute(query)}


async def made_private(connection: AsyncConnection, user: str) -> list[tuple[Memory, datetime]]:
    """The memories that a person made private, superseded ones too, and when they last did so."""
    made = (forgettings.c.person == user, forgettings.c.why == "private", hidden.c.kind == "link")
    entries = hidden.join(forgettings, forgettings.c.id == hidden.c.forgetting_id)
    links = select(hidden.c.row_id, forgettings.c.at).select_from(entries).where(*made)
    rows = await connection.execute(links.order_by(forgettings.c.at))
    taken_back: dict[str, datetime] = {row.row_id.partition(" ")[0]: row.at for row in rows}
    found = await fetch(connection, memories.c.id.in_(taken_back)) if taken_back else []
    return [(memory, taken_back[memory.id]) for memory in found]
