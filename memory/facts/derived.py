"""Derived text does not outlive its source.

Derived texts are the summaries of conversations, the summary of a person's facts, and the entries of a
person's profile. `withhold` removes those that rest on a message or a memory which no longer holds, and
stores the jobs that write them again from what is left.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.sql.jobs import JobQueue
from memory.sql.summaries import LOOK_BACK, consolidation_subject
from memory.sql.tables import active_conversations, context_entries, memories, messages

MEMORY_SUMMARY = "memory_summary"
"""The field of the profile with a model's summary of the memories in one place. No other place reads it."""


async def withhold(
    connection: AsyncConnection,
    now: datetime,
    *,
    message_ids: Collection[str] = (),
    memory_ids: Collection[str] = (),
    owners: Collection[str] | None = None,
    instead: str = "",
) -> None:
    """Remove every derived text that rests on these messages or memories, in the caller's transaction, and
    add the jobs that write it again. Call it before their rows are deleted.

    `owners` are the owner keys for which the memories no longer hold; None means for everybody. `instead` is
    the statement that replaced a memory: profile values that it repeats stay.
    """
    told = select(memories.c.user_id, memories.c.message_id).where(memories.c.id.in_(memory_ids))
    rows = (await connection.execute(told)).all() if memory_ids else []
    sources = {*message_ids, *(row.message_id for row in rows if row.message_id)}
    found = await _summaries_of(connection, sources, owners)
    await _empty(connection, [row.id for row in found], now)
    for row in found:
        await _rebuild(connection, row.conversation_id, row.owner, row.user_id, now)
    people = {row.user_id for row in rows}
    stale = (context_entries.c.user_id.in_(people), context_entries.c.field == MEMORY_SUMMARY)
    await connection.execute(delete(context_entries).where(*stale))


async def _summaries_of(
    connection: AsyncConnection, sources: Collection[str], owners: Collection[str] | None
) -> Sequence[Any]:
    """The written summaries that cover one of these messages, each with the user of a covered message."""
    active = active_conversations
    heard_by = func.coalesce(func.nullif(messages.c.place, ""), "user:" + messages.c.user_id)
    query = (
        select(
            active.c.id,
            active.c.conversation_id,
            active.c.owner,
            func.min(messages.c.user_id).label("user_id"),
        )
        .join(messages, messages.c.conversation_id == active.c.conversation_id)
        .where(messages.c.id.in_(sources), active.c.owner == heard_by)
        .where(messages.c.seq <= active.c.covered, active.c.summary != "")
        .group_by(active.c.id, active.c.conversation_id, active.c.owner)
    )
    if owners is not None:
        query = query.where(active.c.owner.in_(owners))
    return (await connection.execute(query)).all()


async def _empty(connection: AsyncConnection, ids: Collection[str], now: datetime) -> None:
    emptied = {"summary": "", "updated_at": now, "indexed_under": None}
    changed = update(active_conversations).where(active_conversations.c.id.in_(ids))
    await connection.execute(changed.values(**emptied, revision=active_conversations.c.revision + 1))


async def _rebuild(
    connection: AsyncConnection, conversation: str, owner: str, user: str, now: datetime
) -> None:
    place = Place.of_key(owner) if owner.startswith("place:") else Place()
    payload = {"conversation": conversation, "place": list(place.path)}
    about = consolidation_subject(conversation, owner)
    await JobQueue.add(connection, LOOK_BACK, user, payload, now, about=about)
