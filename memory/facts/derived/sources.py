"""What derived texts rest on, and what they may be written from."""

from collections.abc import Collection
from datetime import datetime
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place
from memory.facts.derived.ended import Ended, Part, ended_parts
from memory.facts.derived.replies import replies_from_ended
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
    messages,
)

MEMORY_SUMMARY = "memory_summary"
"""The field of the profile with a model's summary of the memories in one place. No other place reads it."""


def memory_summary_id(user: str, place: Place) -> str:
    """The id of the summary of a person's facts, under which its sources are recorded."""
    return str(uuid5(NAMESPACE_OID, f"{MEMORY_SUMMARY} {user} {place.stored}"))


def entry_id(user: str, place: str, field: str, item: str) -> str:
    """The id of an entry of a profile, under which its sources are recorded where it is not known in which of
    several messages it was said. `place` is the stored key."""
    return str(uuid5(NAMESPACE_OID, "\n".join((user, place, field, item))))


async def outdated(connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime) -> set[str]:
    """Which of these messages state a fact that no longer holds for this owner."""
    if not ids:
        return set()
    given = {"ids": list(ids), "of": owner, "now": now}
    return set((await connection.execute(_OUTDATED_OF, given)).scalars())


async def ended_in(
    connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime
) -> dict[str, Ended]:
    """What of these messages and replies no longer holds for this owner, by message id."""
    given = {"ids": list(ids), "of": owner, "now": now}
    told = (await connection.execute(_TOLD, given)).all()
    found = {id: Ended(None) for id in await replies_from_ended(connection, told, owner, now)}
    gone = {row.id for row in told if row.outdated}
    if not gone:
        return found
    states = memory_sources.alias("states")
    stated = select(states.c.message_id, memories.c.content)
    stated = stated.join(memories, memories.c.id == states.c.memory_id).order_by(memories.c.id)
    contents: dict[str, list[str]] = {}
    facts = stated.where(states.c.message_id.in_(gone), _has_ended(states, _OF, _NOW))
    for row in await connection.execute(facts, {"of": owner, "now": now}):
        contents.setdefault(row.message_id, []).append(row.content)
    for row in await connection.execute(select(messages).where(messages.c.id.in_(gone))):
        known = tuple(contents.get(row.id, ()))
        parts: tuple[Part, ...] | None = ()
        if row.outdated_at is not None:
            parts = row.ended and tuple((start, end) for start, end in row.ended)
        if known and parts is not None:
            more = ended_parts(row.text, known, f"{row.user_id} {row.author}")
            parts = more and tuple(sorted({*parts, *more}))
        found[row.id] = Ended(parts, known)
    return found


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
    states = memory_sources.alias("states")
    stated = exists().where(states.c.message_id == messages.c.id, _has_ended(states, owner, now))
    return or_(messages.c.outdated_at.is_not(None), stated.correlate(messages))


def _has_ended(
    states: FromClause, owner: BindParameter[str], now: BindParameter[datetime]
) -> ColumnElement[bool]:
    """True for a row of `memory_sources` whose fact has expired, or has been ended for this owner by another
    message."""
    link, anew, current = (table.alias() for table in (memory_owners, memory_sources, memory_owners))
    expired = exists().where(memories.c.id == states.c.memory_id, memories.c.expires_at <= now)
    by_itself = (
        exists()
        .where(link.c.memory_id == states.c.memory_id, link.c.superseded_by == anew.c.memory_id)
        .where(anew.c.message_id == states.c.message_id, current.c.memory_id == anew.c.memory_id)
        .where(current.c.owner == owner, current.c.superseded_by.is_(None))
    )
    ended = (link.c.memory_id == states.c.memory_id, link.c.owner == owner, link.c.superseded_by.is_not(None))
    return or_(
        expired.correlate(states),
        and_(exists().where(*ended).correlate(states), ~by_itself.correlate(states)),
    )


# Built once: building it takes longer than running it.
_OF: BindParameter[str] = bindparam("of")
_NOW = bindparam("now", type_=Utc())
_OUTDATED = _is_outdated(_OF, _NOW)
_TOLD = select(messages.c.id, messages.c.sent_at, messages.c.sources, _OUTDATED.label("outdated")).where(
    messages.c.id.in_(bindparam("ids", expanding=True))
)
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
