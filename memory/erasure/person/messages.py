"""Erases a person from the transcript: their messages and the replies to them, one batch at a time.

Their display names and the summaries of their messages are deleted too. Neighbouring messages are indexed
again, because the index also finds a message by its neighbours' words (`memory.index.windows`).
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import and_, delete, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.facts.derived.sources import MEMORY_SUMMARY, memory_summary_id
from memory.index.schema import slices
from memory.sql.changes import changed
from memory.sql.jobs import JobQueue
from memory.sql.message_rows import index_neighbours_again, talk_of
from memory.sql.rests_on import let_go, resting_on
from memory.sql.summaries import LOOK_BACK, MOST_BEHIND, consolidation_subject
from memory.sql.tables import (
    active_conversations,
    context_entries,
    conversations,
    messages,
    rests_on,
    speakers,
)

IDS_AT_ONCE = 500
"""Ids in one statement."""
SUMMARISED_AGAIN = MOST_BEHIND // 2
"""A summary is rebuilt from so many of the newest messages: later ones still fit within `MOST_BEHIND`."""


@dataclass(slots=True)
class ErasedMessages:
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The texts of the person's messages, without the replies."""
    summaries: set[str] = field(default_factory=set)
    """The ids of the places' summaries that were emptied and must be rebuilt from the remaining messages."""


async def erase_messages(connection: AsyncConnection, user: str, limit: int, now: datetime) -> ErasedMessages:
    """Delete the person's oldest `limit` messages, in the caller's transaction."""
    query = select(messages).where(messages.c.user_id == user).order_by(messages.c.seq).limit(limit)
    rows = (await connection.execute(query)).all()
    erased = ErasedMessages([row.id for row in rows], [row.text for row in rows if row.role == "user"])
    by_talk = {talk: list(lines) for talk, lines in groupby(sorted(rows, key=talk_of), key=talk_of)}
    for (conversation, place), lines in by_talk.items():
        await index_neighbours_again(connection, conversation, place, [line.seq for line in lines])
    erased.summaries |= await forget_derived(connection, erased.ids, user, now)
    for ids in slices(erased.ids, IDS_AT_ONCE):
        await connection.execute(delete(messages).where(messages.c.id.in_(ids)))
        await changed(connection, "message", ids, gone=True)
    for (conversation, place), lines in by_talk.items():
        if place:
            first = min(line.seq for line in lines)
            erased.summaries |= await _empty_summary(connection, conversation, place, first, now)
    await _delete_unused_names(connection, user)
    return erased


async def _delete_unused_names(connection: AsyncConnection, user: str) -> None:
    """Delete the person's display names from the places where no message bears them any more, also from those
    that their messages have left."""
    own = select(speakers.c.author).where(speakers.c.owner == user_key(user))
    names = list((await connection.execute(own)).scalars())
    used = exists().where(messages.c.place == speakers.c.owner, messages.c.author == speakers.c.author)
    there = speakers.c.owner.startswith("place:")
    await connection.execute(delete(speakers).where(there, speakers.c.author.in_(names), ~used))


async def _empty_summary(
    connection: AsyncConnection, conversation: str, place: str, first: int, now: datetime
) -> set[str]:
    """Empty a summary that covers the message `first`, and lower its `covered` position, so that
    consolidation reads the newest remaining messages again."""
    same = and_(active_conversations.c.conversation_id == conversation, active_conversations.c.owner == place)
    active = (await connection.execute(select(active_conversations).where(same))).first()
    if active is None or active.covered < first:
        return set()
    await _empty_active(connection, active, now)
    return {active.id}


async def forget_derived(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> set[str]:
    """Empty the summaries of others that rest on these messages and memories of the person, and delete those
    of others' facts. Returns their ids. Call it before the rows of the messages and memories are deleted."""
    rests = rests_on.c
    texts = set[str]()
    for part in slices(sorted(ids), IDS_AT_ONCE):
        texts |= {*await connection.scalars(resting_on(part, "covered"))}
        gone = or_(rests.source_id.in_(part), rests.derived_id.in_(part))
        await connection.execute(delete(rests_on).where(gone))
    if not texts:
        return set()
    active, entry = active_conversations.c, context_entries.c
    query = select(active_conversations).where(active.id.in_(texts), active.owner != user_key(user))
    rows = (await connection.execute(query.where(active.summary != ""))).all()
    for row in rows:
        await _empty_active(connection, row, now)
    in_short = select(entry.user_id, entry.place).where(entry.field == MEMORY_SUMMARY, entry.place != "")
    for row in (await connection.execute(in_short)).all():
        if (id := memory_summary_id(row.user_id, Place.of_key(row.place))) in texts:
            same = and_(entry.user_id == row.user_id, entry.place == row.place)
            await connection.execute(delete(context_entries).where(same, entry.field == MEMORY_SUMMARY))
            await let_go(connection, [id])
    return {row.id for row in rows}


async def _empty_active(connection: AsyncConnection, active: Any, now: datetime) -> None:
    """Empty a summary, and add the job that writes it again from the newest messages that are left."""
    owner = active.owner
    place, user = (owner, None) if owner.startswith("place:") else ("", owner.removeprefix("user:"))
    heard = select(messages.c.seq, messages.c.user_id).where(
        messages.c.conversation_id == active.conversation_id, messages.c.place == place
    )
    heard = heard.where(messages.c.user_id == user) if user is not None else heard
    newest = heard.order_by(messages.c.seq.desc()).limit(SUMMARISED_AGAIN)
    left = (await connection.execute(newest)).all()
    oldest = min((line.seq for line in left), default=0)
    emptied = {
        "summary": "",
        # Always lower than before, so that a concurrent update of this summary is refused.
        "covered": max(min(active.covered, oldest) - 1, 0),
        "updated_at": now,
        "forgotten_at": now,
        "revision": active_conversations.c.revision + 1,
    }
    same = active_conversations.c.id == active.id
    await connection.execute(update(active_conversations).where(same).values(**emptied))
    await changed(connection, "summary", [active.id], gone=True)
    if left:
        payload = {"conversation": active.conversation_id, "place": list(Place.of_key(place).path)}
        about = consolidation_subject(active.conversation_id, owner)
        await JobQueue.expect(connection, LOOK_BACK, owner.removeprefix("user:"), payload, now, about=about)


async def erase_conversations(connection: AsyncConnection, user: str) -> list[str]:
    """Delete the person's private conversations. Returns the ids of the deleted summaries. If another person
    uses the same conversation id, the conversation passes to them."""
    mine = active_conversations.c.owner == user_key(user)
    ids = list((await connection.execute(select(active_conversations.c.id).where(mine))).scalars())
    await connection.execute(delete(active_conversations).where(mine))
    await changed(connection, "summary", ids, gone=True)
    in_it, by_other = messages.c.conversation_id == conversations.c.id, messages.c.user_id != user
    heir = select(func.min(messages.c.user_id)).where(in_it, messages.c.place == "", by_other)
    owned = conversations.c.user_id == user
    inherited = update(conversations).where(owned, heir.scalar_subquery().is_not(None))
    await connection.execute(inherited.values(user_id=heir.scalar_subquery()))
    # A conversation of a place may have the id of the private one. It is deleted if nobody else speaks there.
    named = and_(conversations.c.id == f"dm:{user}", ~exists().where(in_it, by_other))
    await connection.execute(delete(conversations).where(or_(owned, named)))
    await connection.execute(delete(speakers).where(speakers.c.owner == user_key(user)))
    return ids
