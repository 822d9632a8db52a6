"""The list of a running erasure: what is to be deleted, and what the verification searches for.

It is stored before anything is deleted, so an erasure that was interrupted goes on with it, in another
process too. It is deleted when the erasure is verified.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, func, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.erasure.person.memories import memory_ids_of
from memory.erasure.person.personal_data import LONGEST_SOUGHT
from memory.erasure.person.receipt import ErasureProgress
from memory.index.schema import slices
from memory.sql import tables as t

SAMPLE = 20
"""How many texts of each kind (the longest ones) the verification searches for."""
SHORTEST_SOUGHT = 12
"""The fewest characters of a text to search for. Shorter ones such as "good morning" identify nobody."""
IDS_AT_ONCE = 500
"""Ids in one statement."""
_TABLES = {"message": t.messages, "memory": t.memories, "summary": t.active_conversations}


async def begin(
    connection: AsyncConnection, user: str, places: Collection[str], now: datetime
) -> ErasureProgress:
    """Store the list of what there is now, or add that to the list of an interrupted erasure."""
    mine = t.erasures.c.user_id == user
    row = (await connection.execute(select(t.erasures).where(mine))).first()
    if row is None:
        new = {"user_id": user, "begun_at": now, "places": [], "sought": [], "removed": {}}
        await connection.execute(insert(t.erasures).values(**new))
    progress = ErasureProgress(user, resumed=row is not None)
    progress.removed.update(row.removed if row else {})
    progress.places |= {*(row.places if row else ()), *places, *await places_of(connection, user)}
    progress.sought |= {*(row.sought if row else ()), *await _longest_texts(connection, user)}
    stored = {"places": sorted(progress.places), "sought": sorted(progress.sought)}
    await connection.execute(update(t.erasures).where(mine).values(**stored))
    for kind, query in _ids(user).items():
        await _list(connection, user, kind, query)
    await _read_texts(connection, progress)
    return progress


async def add_ids(connection: AsyncConnection, user: str, kind: str, ids: Sequence[str]) -> None:
    """Add what came in while the erasure runs."""
    for part in slices(ids, IDS_AT_ONCE):
        column = _TABLES[kind].c.id if kind in _TABLES else t.knowledge_chunks.c.id
        await _list(connection, user, kind, select(column).where(column.in_(part)))


async def store_counts(connection: AsyncConnection, progress: ErasureProgress) -> None:
    same = update(t.erasures).where(t.erasures.c.user_id == progress.user)
    await connection.execute(same.values(removed=dict(progress.removed)))


async def drop_texts(connection: AsyncConnection, user: str) -> None:
    """Delete the texts of the list, when no table holds them any more."""
    await connection.execute(update(t.erasures).where(t.erasures.c.user_id == user).values(sought=[]))


async def read_ids(connection: AsyncConnection, progress: ErasureProgress) -> None:
    """Read the listed ids whose rows are gone into `progress`. The others are of memories that somebody else
    keeps, or of a message that was imported again."""
    items = t.erasure_items
    query = select(items.c.kind, items.c.id).where(items.c.user_id == progress.user)
    for kind, table in _TABLES.items():
        still = and_(items.c.kind == kind, items.c.id.in_(select(table.c.id)))
        query = query.where(~still)
    rows = (await connection.execute(query.order_by(items.c.kind, items.c.id))).all()
    progress.index_ids = [row.id for row in rows if row.kind != "chunk"]
    progress.chunk_ids = [row.id for row in rows if row.kind == "chunk"]


async def end(connection: AsyncConnection, user: str) -> None:
    for table in (t.erasure_items, t.erasures):
        await connection.execute(delete(table).where(table.c.user_id == user))


async def unfinished(connection: AsyncConnection) -> list[tuple[str, bool]]:
    """The people who have a list, and whether each has spoken since it was stored."""
    since = select(func.count()).where(
        t.messages.c.user_id == t.erasures.c.user_id, t.messages.c.sent_at > t.erasures.c.begun_at
    )
    query = select(t.erasures.c.user_id, since.scalar_subquery().label("spoken"))
    return [(row.user_id, row.spoken > 0) for row in await connection.execute(query)]


def _ids(user: str) -> dict[str, Select[Any]]:
    owner = user_key(user)
    documents = t.knowledge_documents
    return {
        "message": select(t.messages.c.id).where(t.messages.c.user_id == user),
        "memory": memory_ids_of(user).order_by(None),
        "summary": select(t.active_conversations.c.id).where(t.active_conversations.c.owner == owner),
        "chunk": select(t.knowledge_chunks.c.id).join(documents).where(documents.c.owner == owner),
    }


async def _list(connection: AsyncConnection, user: str, kind: str, query: Select[Any]) -> None:
    items = t.erasure_items
    [id] = query.selected_columns
    known = select(items.c.id).where(items.c.user_id == user, items.c.kind == kind)
    new = query.with_only_columns(literal(user), literal(kind), id).where(id.not_in(known))
    await connection.execute(insert(items).from_select(["user_id", "kind", "id"], new))


async def places_of(connection: AsyncConnection, user: str) -> set[str]:
    """The keys of the places where the person spoke, or that know a memory of theirs."""
    spoke = select(t.messages.c.place).where(t.messages.c.user_id == user, t.messages.c.place != "")
    link = t.memory_owners
    told = select(link.c.owner).where(
        link.c.memory_id.in_(memory_ids_of(user).order_by(None)), link.c.owner.startswith("place:")
    )
    found: set[str] = set()
    for query in (spoke, told):
        found |= set((await connection.execute(query.distinct())).scalars())
    return found


def _texts(user: str) -> dict[str, tuple[ColumnElement[str], ColumnElement[bool]]]:
    documents = select(t.knowledge_documents.c.id).where(t.knowledge_documents.c.owner == user_key(user))
    return {
        "messages": (t.messages.c.text, and_(t.messages.c.user_id == user, t.messages.c.role == "user")),
        "facts": (t.memories.c.content, t.memories.c.user_id == user),
        "tasks": (t.tasks.c.description, t.tasks.c.user_id == user),
        "context": (t.context_entries.c.value, t.context_entries.c.user_id == user),
        "chunks": (t.knowledge_chunks.c.text, t.knowledge_chunks.c.document_id.in_(documents)),
    }


async def _longest_texts(connection: AsyncConnection, user: str) -> set[str]:
    """The beginnings of the person's longest texts."""
    found: set[str] = set()
    for column, condition in _texts(user).values():
        size = func.length(column)
        query = select(column).where(condition, size >= SHORTEST_SOUGHT).order_by(size.desc()).limit(SAMPLE)
        found |= {text[:LONGEST_SOUGHT] for text in (await connection.execute(query)).scalars()}
    return found


async def _read_texts(connection: AsyncConnection, progress: ErasureProgress) -> None:
    texts = _texts(progress.user)
    for kind, into in (("messages", progress.messages), ("facts", progress.facts)):
        column, condition = texts[kind]
        into.update((await connection.execute(select(column).where(condition))).scalars())
