"""A person leaves the transcript: what they said, and what they were answered, some messages at a time.

With the messages go the names they were shown by, and the summaries made of them. Those that stay beside them
are drawn anew in the index, since each is found there by its neighbours' words too (`memory.index.windows`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.conversations.summaries import MOST_BEHIND
from memory.index.schema import slices
from memory.index.windows import REACH
from memory.sql.tables import active_conversations, conversations, messages, speakers

ROWS = 500
"""Values of a condition in one statement."""
LOOKED_BACK_AT = MOST_BEHIND // 2
"""Messages from which a summary is made anew at most, the newest: with what is said meanwhile, no more than
are looked back at."""


@dataclass(slots=True)
class Unsaid:
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """What the person said, not what they were answered."""
    summaries: set[str] = field(default_factory=set)
    """Of places, by id: what they told of the person is gone, and they are made anew from what is left."""


async def take_messages(connection: AsyncConnection, user: str, limit: int, now: datetime) -> Unsaid:
    """The oldest `limit` messages, in the caller's transaction; nothing where none is left."""
    query = select(messages).where(messages.c.user_id == user).order_by(messages.c.seq).limit(limit)
    rows = (await connection.execute(query)).all()
    unsaid = Unsaid([row.id for row in rows])
    unsaid.texts += [row.text for row in rows if row.role == "user"]
    talks = sorted(rows, key=_talk)
    for (conversation, place), found in groupby(talks, key=_talk):
        await _draw_neighbours_anew(connection, conversation, place, [row.seq for row in found])
    for ids in slices(unsaid.ids, ROWS):
        await connection.execute(delete(messages).where(messages.c.id.in_(ids)))
    for (conversation, place), found in groupby(talks, key=_talk):
        lines = list(found)
        await _forget_names(connection, place, {line.author for line in lines})
        if place:
            first = min(line.seq for line in lines)
            unsaid.summaries |= await _empty_summary(connection, conversation, place, first, now)
    return unsaid


def _talk(row: Any) -> tuple[str, str]:
    return row.conversation_id, row.place


async def _draw_neighbours_anew(
    connection: AsyncConnection, conversation: str, place: str, seqs: Sequence[int]
) -> None:
    """Those whose window shows one of these are due in the index."""
    inside = and_(messages.c.conversation_id == conversation, messages.c.place == place)
    around = select(messages.c.id, messages.c.seq).where(inside)
    before = around.where(messages.c.seq < min(seqs)).order_by(messages.c.seq.desc()).limit(REACH)
    within = around.where(messages.c.seq.between(min(seqs), max(seqs)))
    after = around.where(messages.c.seq > max(seqs)).order_by(messages.c.seq).limit(REACH)
    found = [row for query in (before, within, after) for row in (await connection.execute(query)).all()]
    lines, gone = sorted(found, key=lambda row: row.seq), set(seqs)
    near = {
        lines[beside].id
        for at, line in enumerate(lines)
        if line.seq in gone
        for beside in range(max(0, at - REACH), min(len(lines), at + REACH + 1))
    }
    for ids in slices(sorted(near), ROWS):
        due = update(messages).where(messages.c.id.in_(ids))
        await connection.execute(due.values(indexed_under=None))


async def _forget_names(connection: AsyncConnection, place: str, authors: Collection[str]) -> None:
    """Names that no message there bears any more; in private, all go with the person."""
    borne = exists().where(messages.c.place == place, messages.c.author == speakers.c.author)
    unborne = delete(speakers).where(speakers.c.owner == place, speakers.c.author.in_(authors), ~borne)
    await connection.execute(unborne)


async def _empty_summary(
    connection: AsyncConnection, conversation: str, place: str, first: int, now: datetime
) -> set[str]:
    """A summary that may tell of the message `first` is emptied, and reaches only so far that the newest
    messages that are left are looked back at again."""
    same = and_(active_conversations.c.conversation_id == conversation, active_conversations.c.owner == place)
    active = (await connection.execute(select(active_conversations).where(same))).first()
    if active is None or active.covered < first:
        return set()
    heard = select(messages.c.seq).where(
        messages.c.conversation_id == conversation, messages.c.place == place
    )
    left = (await connection.execute(heard.order_by(messages.c.seq.desc()).limit(LOOKED_BACK_AT))).scalars()
    oldest = min(left, default=0)
    emptied = {
        "summary": "",
        # Never what it was: whoever is making the next summary of this one is refused.
        "covered": max(min(active.covered, oldest) - 1, 0),
        "updated_at": now,
        "indexed_under": None,
        "revision": active_conversations.c.revision + 1,
    }
    await connection.execute(update(active_conversations).where(same).values(**emptied))
    return {active.id}


async def take_conversations(connection: AsyncConnection, user: str) -> list[str]:
    """The person's private conversations, with their summaries; the ids of these. One that bears the same
    name as somebody else's is the other's from now on."""
    mine = active_conversations.c.owner == user_key(user)
    ids = list((await connection.execute(select(active_conversations.c.id).where(mine))).scalars())
    await connection.execute(delete(active_conversations).where(mine))
    other = (
        select(func.min(messages.c.user_id))
        .where(messages.c.conversation_id == conversations.c.id, messages.c.place == "", _not(user))
        .scalar_subquery()
    )
    theirs = conversations.c.user_id == user
    handed_on = update(conversations).where(theirs, other.is_not(None))
    await connection.execute(handed_on.values(user_id=other))
    # One of a place may bear the name of the private one: it is nobody's, and goes where nobody speaks there.
    named = and_(conversations.c.id == f"dm:{user}", ~_spoken_in(user))
    await connection.execute(delete(conversations).where(or_(theirs, named)))
    await connection.execute(delete(speakers).where(speakers.c.owner == user_key(user)))
    return ids


def _not(user: str) -> ColumnElement[bool]:
    return messages.c.user_id != user


def _spoken_in(user: str) -> ColumnElement[bool]:
    return exists().where(messages.c.conversation_id == conversations.c.id, _not(user))
