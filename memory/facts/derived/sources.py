"""What derived texts rest on, and what they may be written from."""

from collections.abc import Collection
from datetime import datetime
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import BindParameter, ColumnElement, bindparam, delete, exists, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place
from memory.records import Message
from memory.sql.memory_rows import BY_IDS
from memory.sql.message_rows import MESSAGE, kept
from memory.sql.summaries import heard_by
from memory.sql.tables import (
    Utc,
    derived_sources,
    memories,
    memory_owners,
    memory_sources,
    memory_updates,
    messages,
)

MEMORY_SUMMARY = "memory_summary"
"""The field of the profile with a model's summary of the memories in one place. No other place reads it."""


def memory_summary_id(user: str, place: Place) -> str:
    """The id of the summary of a person's facts, under which its sources are recorded."""
    return str(uuid5(NAMESPACE_OID, f"{MEMORY_SUMMARY} {user} {place.stored}"))


async def outdated(connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime) -> set[str]:
    """Which of these messages state a fact that no longer holds for this owner."""
    if not ids:
        return set()
    given = {"ids": list(ids), "of": owner, "now": now}
    return set((await connection.execute(_OUTDATED_OF, given)).scalars())


async def remaining(
    connection: AsyncConnection, conversation: str, owner: str, upto: int, limit: int, now: datetime
) -> list[Message]:
    """The newest messages of people up to the `seq` `upto`, in order, without replies and without
    outdated messages: replies may repeat what no longer holds."""
    query = (
        select(*MESSAGE)
        .where(messages.c.conversation_id == conversation, heard_by() == owner, messages.c.seq <= upto)
        .where(messages.c.role == "user", kept(), ~_OUTDATED)
        .order_by(messages.c.seq.desc())
        .limit(limit)
    )
    rows = (await connection.execute(query, {"of": owner, "now": now})).all()
    return [Message(*row) for row in reversed(rows)]


def _is_outdated(owner: BindParameter[str], now: BindParameter[datetime]) -> ColumnElement[bool]:
    """True for a message with a fact that has expired, or that another message has ended for this owner."""
    states, link = memory_sources.alias("states"), memory_owners.alias("link")
    here = states.c.message_id == messages.c.id
    expired = exists().where(here, memories.c.id == states.c.memory_id, memories.c.expires_at <= now)
    anew, current = memory_sources.alias("anew"), memory_owners.alias("current")
    by_itself = (
        exists()
        .where(memory_updates.c.old_id == states.c.memory_id, memory_updates.c.new_id == anew.c.memory_id)
        .where(anew.c.message_id == messages.c.id, current.c.memory_id == anew.c.memory_id)
        .where(current.c.owner == owner, current.c.superseded == 0)
        .correlate(states, messages)
    )
    ended = (link.c.memory_id == states.c.memory_id, link.c.owner == owner, link.c.superseded == 1)
    return or_(messages.c.outdated_at.is_not(None), expired, exists().where(here, *ended, ~by_itself))


# Built once: building it takes longer than running it.
_OUTDATED = _is_outdated(bindparam("of"), bindparam("now", type_=Utc()))
_OUTDATED_OF = select(messages.c.id).where(messages.c.id.in_(bindparam("ids", expanding=True)), _OUTDATED)


async def still_hold(
    connection: AsyncConnection, memory_ids: Collection[str], audience: Audience, now: datetime
) -> bool:
    """Whether this audience may still read all of these memories."""
    if not memory_ids:
        return True
    given = {"ids": list(memory_ids), "owners": list(audience.keys), "now": now}
    return {row.id for row in await connection.execute(BY_IDS, given)} == set(memory_ids)


async def record_sources(
    connection: AsyncConnection, text_id: str, sources: Collection[str], *, rebuilt: bool
) -> None:
    """Note what a text rests on, besides what it rested on before unless it was `rebuilt`."""
    same = derived_sources.c.text_id == text_id
    if rebuilt:
        await connection.execute(delete(derived_sources).where(same))
    elif sources:
        known = select(derived_sources.c.source_id).where(same)
        sources = set(sources).difference((await connection.execute(known)).scalars())
    rows = [{"text_id": text_id, "source_id": source} for source in sorted(sources)]
    if rows:
        await connection.execute(insert(derived_sources), rows)
