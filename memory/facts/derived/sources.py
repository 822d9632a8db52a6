"""What derived texts rest on, and what they may be written from."""

from collections.abc import Collection
from datetime import datetime
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place
from memory.records import Message
from memory.sql.memory_rows import BY_IDS
from memory.sql.message_rows import MESSAGE, kept
from memory.sql.rests_on import stated_in
from memory.sql.summaries import heard_by
from memory.sql.tables import memories, memory_owners, messages

MEMORY_SUMMARY = "memory_summary"
"""The field of the profile with a model's summary of the memories in one place. No other place reads it."""


def memory_summary_id(user: str, place: Place) -> str:
    """The id of the summary of a person's facts, under which its sources are recorded."""
    return str(uuid5(NAMESPACE_OID, f"{MEMORY_SUMMARY} {user} {place.stored}"))


def entry_id(user: str, place: str, field: str, item: str) -> str:
    """The id of an entry of a profile, under which its sources are recorded where it is not known in which of
    several messages it was said. `place` is the stored key."""
    return str(uuid5(NAMESPACE_OID, "\n".join((user, place, field, item))))


async def no_longer(
    connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime
) -> tuple[str, ...]:
    """The facts of these messages that no longer hold for this owner, oldest first, each with what has taken
    its place, if anything has."""
    newer = memories.alias("newer")
    here = and_(memory_owners.c.memory_id == memories.c.id, memory_owners.c.owner == owner)
    gone = or_(memories.c.expires_at <= now, memory_owners.c.superseded_by.is_not(None))
    after = and_(newer.c.id == memory_owners.c.superseded_by, newer.c.id != memories.c.id)
    query = select(memories.c.content, newer.c.content.label("instead")).join(memory_owners, here)
    query = query.outerjoin(newer, after).where(memories.c.id.in_(stated_in(ids)), gone)
    rows = await connection.execute(query.order_by(memories.c.created_at, memories.c.id))
    return tuple(row.content + (f" (since then: {row.instead})" if row.instead else "") for row in rows)


async def remaining(
    connection: AsyncConnection, conversation: str, owner: str, upto: int, limit: int
) -> list[Message]:
    """The newest messages of people up to the `seq` `upto`, in order, without replies."""
    query = (
        select(*MESSAGE)
        .where(messages.c.conversation_id == conversation, heard_by() == owner, messages.c.seq <= upto)
        .where(messages.c.role == "user", kept())
        .order_by(messages.c.seq.desc())
        .limit(limit)
    )
    return [Message(*row) for row in reversed((await connection.execute(query)).all())]


async def still_hold(
    connection: AsyncConnection, memory_ids: Collection[str], audience: Audience, now: datetime
) -> bool:
    """Whether this audience may still read all of these memories."""
    if not memory_ids:
        return True
    given = {"ids": list(memory_ids), "owners": list(audience.keys), "now": now}
    return {row.id for row in await connection.execute(BY_IDS, given)} == set(memory_ids)
