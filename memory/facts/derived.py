"""Empty derived texts when a source of theirs ends, and find the sources to rewrite them from.

Derived texts are the summaries of conversations, and the summary of a person's facts, a profile entry.
`withhold` empties those that rest on rows that are no longer active, and adds the jobs that rewrite them.
"""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import Select, and_, bindparam, or_, select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place, user_key
from memory.facts.compare import tells
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.engine import Database
from memory.sql.hidden import hide, link_is_hidden, parts
from memory.sql.jobs.queue import JobQueue
from memory.sql.memories.memory_rows import BY_IDS
from memory.sql.memories.replacements import NOW, is_active, unexpired
from memory.sql.messages.message_rows import MESSAGE, is_visible
from memory.sql.messages.message_rows import heard_by as heard_by_owner
from memory.sql.messages.summaries import CONSOLIDATE, consolidation_subject, heard_by
from memory.sql.rests_on import let_go, resting_on, stated_in, statements_of
from memory.sql.tables import (
    active_conversations,
    context_entries,
    memories,
    memory_owners,
    messages,
    replacements,
    rests_on,
    speakers,
)

MEMORY_SUMMARY = "memory_summary"
"""The profile field with a model's summary of the memories in one place. No other place reads it."""


def entry_id(user: str, place: str, field: str, item: str) -> str:
    """Return the id of a profile entry. `place` is the stored key."""
    return str(uuid5(NAMESPACE_OID, "\n".join((user, place, field, item))))


def memory_summary_id(user: str, place: Place) -> str:
    """Return the id of the summary of a person's facts, by which its evidence is stored."""
    return entry_id(user, place.stored, MEMORY_SUMMARY, "")


_newer, _newer_links = memories.alias("newer"), memory_owners.alias("newer_links")
_instead = replacements.join(_newer, _newer.c.id == replacements.c.new_id).join(
    _newer_links,
    and_(
        _newer_links.c.memory_id == replacements.c.new_id,
        _newer_links.c.owner == replacements.c.owner,
        is_active(_newer_links),
        unexpired(_newer),
    ),
)
_NO_LONGER = (
    select(memories.c.id, memories.c.content, _newer.c.content.label("instead"))
    .join(memory_owners, memory_owners.c.memory_id == memories.c.id)
    .outerjoin(
        _instead,
        and_(replacements.c.old_id == memories.c.id, replacements.c.owner == memory_owners.c.owner),
    )
    .where(
        memory_owners.c.owner == bindparam("owner"),
        memories.c.id.in_(stated_in(bindparam("messages", expanding=True))),
        ~link_is_hidden(),
        or_(memories.c.expires_at <= NOW, ~is_active()),
    )
    .order_by(memories.c.created_at, memories.c.id, _newer.c.created_at)
)


async def ended_facts(database: Database, ids: Collection[str], owner: str, now: datetime) -> tuple[str, ...]:
    """Return the facts of these messages that are no longer active for this owner, oldest first, each with
    the fact that superseded it."""
    rows = await database.rows(_NO_LONGER, {"messages": list(ids), "owner": owner, "now": now})
    facts = {row.id: row.content + (f" (since then: {row.instead})" if row.instead else "") for row in rows}
    return tuple(facts.values())


async def remaining_messages(
    connection: AsyncConnection, conversation: str, owner: str, upto: int, limit: int
) -> list[Message]:
    """Return the newest visible messages of people whose `seq` is at most `upto`, in order."""
    query = (
        select(*MESSAGE)
        .where(messages.c.conversation_id == conversation, heard_by_owner(owner), messages.c.seq <= upto)
        .where(messages.c.role == "user", is_visible())
        .order_by(messages.c.seq.desc())
        .limit(limit)
    )
    return [Message(*row) for row in reversed((await connection.execute(query)).all())]


async def still_readable(
    connection: AsyncConnection, memory_ids: Collection[str], audience: Audience, now: datetime
) -> set[str]:
    """Return which of these memories the audience may still read."""
    if not memory_ids:
        return set()
    parameters = {"ids": list(memory_ids), "owners": list(audience.keys), "now": now}
    return {row.id for row in await connection.execute(BY_IDS, parameters)}


async def withhold(
    connection: AsyncConnection,
    now: datetime,
    *,
    message_ids: Collection[str] = (),
    memory_ids: Collection[str] = (),
    owners: Collection[str] | None = None,
    forgetting: str | None = None,
    written_before: datetime | None = None,
    telling: bool = False,
) -> int:
    """Empty every summary that rests on these messages or memories, in the caller's transaction, and add jobs
    that rewrite them. Returns how many. Call it before rows are deleted.

    `owners` are those for whom the rows are no longer active; None means everybody. With a `forgetting`,
    emptied summaries get new ids and the forgetting hides the old ones, so that replies written from them
    belong to its cascade. `written_before` selects earlier summaries, `telling` those whose text repeats a
    memory.
    """
    ids = {*message_ids, *memory_ids}
    heard, summaries = {*message_ids}, dict[str, Any]()
    for part in parts(memory_ids):
        heard.update(await connection.scalars(statements_of(part)))
    query = select(active_conversations).where(active_conversations.c.summary != "")
    if written_before is not None:
        query = query.where(active_conversations.c.updated_at < written_before)
    for part in parts(ids | heard):
        resting = union(_covering(heard.intersection(part)), resting_on(ids.intersection(part), "covered"))
        rests = await connection.execute(query.where(active_conversations.c.id.in_(resting)))
        summaries |= {row.id: row for row in rests}
    rows = [row for row in summaries.values() if _reads(row.owner, owners)]
    repeats = await _repetition_test(connection, memory_ids) if telling else None
    rows = [row for row in rows if repeats is None or repeats(row.summary)]
    emptied = [row.id for row in rows]
    fact_summaries = await _memory_summaries(connection, ids.union(emptied), owners, repeats)
    if emptied:
        values: dict[str, Any] = {"summary": "", "withheld": 1, "updated_at": now}
        emptying = update(active_conversations).where(active_conversations.c.id.in_(emptied))
        await connection.execute(emptying.values(**values, revision=active_conversations.c.revision + 1))
        await let_go(connection, emptied)
    if emptied and forgetting:
        await hide(connection, forgetting, {"summary": emptied})
        for id in emptied:
            renamed = update(active_conversations).where(active_conversations.c.id == id)
            await connection.execute(renamed.values(id=new_id()))
    for conversation, owner in {(row.conversation_id, row.owner) for row in rows}:
        await consolidate_again(connection, conversation, owner, now)
    return len(emptied) + fact_summaries


async def _repetition_test(connection: AsyncConnection, memory_ids: Collection[str]) -> Callable[[str], bool]:
    """Return a test whether a text repeats one of these memories, ignoring their authors' names."""
    facts = (await connection.execute(select(memories).where(memories.c.id.in_(memory_ids)))).all()
    owners = {user_key(fact.user_id) for fact in facts}
    names = [*await connection.scalars(select(speakers.c.author).where(speakers.c.owner.in_(owners)))]
    names += [fact.user_id for fact in facts]
    return lambda text: any(tells(text, fact.content, names) for fact in facts)


def _covering(heard: Collection[str]) -> Select[str]:
    """Select the summaries that cover one of these messages. The query starts from the messages, because it
    would otherwise read every conversation."""
    active = active_conversations.alias("covering").c
    same = and_(active.conversation_id == messages.c.conversation_id, active.owner == heard_by())
    return select(active.id).where(same, active.covered >= messages.c.seq, messages.c.id.in_(heard))


async def _memory_summaries(
    connection: AsyncConnection,
    ids: Collection[str],
    owners: Collection[str] | None,
    repeats: Callable[[str], bool] | None,
) -> int:
    """Empty the summaries of people's facts that rest on one of these ids, or have no evidence, and that pass
    the test `repeats`. Returns how many. Each is rewritten once there are enough new facts."""
    entry, source = context_entries.c, rests_on.c
    direct = select(source.derived_id).where(source.source_id.in_(ids))
    recorded = select(source.derived_id).where(source.derived_id == entry.id).exists()
    query = select(context_entries).where(entry.field == MEMORY_SUMMARY, entry.value != "")
    rows = await connection.execute(query.where(or_(entry.id.in_(direct), ~recorded))) if ids else ()
    emptied = [
        row.id
        for row in rows
        if _reads(row.place or user_key(row.user_id), owners) and (repeats is None or repeats(row.value))
    ]
    if emptied:
        await connection.execute(update(context_entries).where(entry.id.in_(emptied)).values(value=""))
        await let_go(connection, emptied)
    return len(emptied)


def _place(owner: str) -> Place:
    return Place.of_key(owner) if owner.startswith("place:") else Place()


def _reads(owner: str, owners: Collection[str] | None) -> bool:
    """Return whether this owner reads rows of one of these owners; None means everybody."""
    reader = owner.removeprefix("user:")
    return owners is None or not Audience.of(reader, _place(owner)).keys.isdisjoint(owners)


async def consolidate_again(
    connection: AsyncConnection, conversation: str, owner: str, now: datetime, *, message: str | None = None
) -> None:
    """Add the job that consolidates a conversation again. With a `message`, the job reads that message even
    though the summary covers it."""
    payload = {"conversation": conversation, "place": list(_place(owner).path)}
    about = consolidation_subject(conversation, owner)
    if message is not None:
        payload, about = payload | {"again": [message]}, f"{about} {message}"
    await JobQueue.expect(connection, CONSOLIDATE, owner.removeprefix("user:"), payload, now, about=about)
