"""Replace the text of a message that its author has edited."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.facts.derived import consolidate_again
from memory.forgetting.hiding import replace_messages
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages.summaries import owner_of
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record
from memory.sql.tables import active_conversations, messages


async def reword(
    connection: AsyncConnection,
    transcript: Transcript,
    old: Message,
    text: str,
    user: str,
    place: Place,
    now: datetime,
    *,
    answers: Collection[str],
) -> Message:
    """Hide a message and the rows that only it states, and store the new text in its position, in the
    caller's transaction. The `answers` are linked to the new message, which is consolidated again."""
    await replace_messages(connection, {old.id}, user, now)
    new, owner = replace(old, id=new_id(), text=text), owner_of(user, place)
    await transcript.append(connection, new, user=user, place=place, now=now)
    at = await move_to(connection, old.id, new.id)
    for answer in answers:
        await record(connection, answer, [new.id], "answered")
    active = active_conversations.c
    this = active.conversation_id == old.conversation_id, active.owner == owner
    covered = await connection.scalar(select(active.covered).where(*this)) or 0
    message = new.id if at <= covered else None
    await consolidate_again(connection, old.conversation_id, owner, now, message=message)
    return new


async def move_to(connection: AsyncConnection, old: str, new: str) -> int:
    """Move a message to the position of an old one, in the caller's transaction. Messages that follow the old
    one now follow this one. Returns the position."""
    at = await _swap(connection, old, new)
    await connection.execute(update(messages).where(messages.c.follows == old).values(follows=new))
    return at


async def _swap(connection: AsyncConnection, old: str, new: str) -> int:
    """Swap the positions of two messages. Returns the new position of `new`."""
    both = select(messages.c.id, messages.c.seq).where(messages.c.id.in_((old, new)))
    at = {row.id: int(row.seq) for row in await connection.execute(both)}
    for id, seq in ((old, -at[new]), (new, at[old]), (old, at[new])):
        await connection.execute(update(messages).where(messages.c.id == id).values(seq=seq))
    return at[old]
