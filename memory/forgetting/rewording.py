"""Gives a message other words, which its author changed where they had written it."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.facts.derived import read_again
from memory.forgetting.hiding import replace_messages
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages.summaries import owner_of
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record
from memory.sql.tables import messages


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
    """In the caller's transaction, hide a message with what it alone states, and store it with this text. The
    `answers` stay, and answer the new one."""
    await replace_messages(connection, {old.id}, user, now)
    new = replace(old, id=new_id(), text=text)
    await transcript.append(connection, new, user=user, place=place, now=now)
    for answer in answers:
        await record(connection, answer, [new.id], "answered")
    follow = update(messages).where(messages.c.follows == old.id, messages.c.id.in_(answers))
    await connection.execute(follow.values(follows=new.id))
    await read_again(connection, old.conversation_id, owner_of(user, place), now)
    return new
