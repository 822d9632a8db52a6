"""The transcript: every message said, in order. Readable by the audience of the place it was said in."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place, owners_of
from memory.database import Database
from memory.records import Message, Role
from memory.tables import conversations, messages, users

NEIGHBOURS = 2
"""How many messages before and after belong to a message's window in the index."""


@dataclass(frozen=True, slots=True)
class Line:
    """A message with whose it is: what the index needs to know beside the text."""

    message: Message
    owners: frozenset[str]
    seq: int
    """Grows with every message, over all conversations."""


class Transcript:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, connection: AsyncConnection, message: Message, *, user: str, place: Place, now: datetime
    ) -> None:
        """Write one message in the caller's transaction; its conversation and user come into being with it.
        A message that is already there, by id, is left as it is."""
        insert = insert_sqlite if self._database.sqlite else insert_postgresql
        key = "" if place.private else place.key
        await connection.execute(insert(users).values(id=user, created_at=now).on_conflict_do_nothing())
        await connection.execute(
            insert(conversations)
            .values(
                id=message.conversation_id,
                user_id=user if place.private else None,
                place=key,
                created_at=now,
            )
            .on_conflict_do_nothing()
        )
        await connection.execute(
            insert(messages)
            .values(
                id=message.id,
                conversation_id=message.conversation_id,
                user_id=user,
                place=key,
                role=message.role,
                author=message.author,
                text=message.text,
                sent_at=message.sent_at,
            )
            .on_conflict_do_nothing()
        )

    async def last(self, conversation: str, audience: Audience, limit: int) -> list[Message]:
        """The newest messages of a conversation, oldest first."""
        query = (
            select(messages)
            .where(messages.c.conversation_id == conversation, readable(audience))
            .order_by(messages.c.seq.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return [_message(row) for row in reversed(rows)]

    async def by_ids(self, ids: Collection[str], audience: Audience) -> dict[str, Line]:
        query = select(messages).where(messages.c.id.in_(ids), readable(audience))
        async with self._database.read() as connection:
            return {row.id: _line(row) for row in await connection.execute(query)}

    async def count(self, audience: Audience) -> int:
        from sqlalchemy import func

        query = select(func.count()).select_from(messages).where(readable(audience))
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar_one()

    async def unindexed(self, generation: str, limit: int) -> list[Line]:
        """Messages the index of this generation does not hold yet, oldest first."""
        due = or_(messages.c.indexed_under.is_(None), messages.c.indexed_under != generation)
        query = select(messages).where(due).order_by(messages.c.seq).limit(limit)
        async with self._database.read() as connection:
            return [_line(row) for row in await connection.execute(query)]

    async def around(self, lines: Sequence[Line]) -> dict[str, list[Line]]:
        """For each conversation the lines lie in: these and their neighbours' neighbours, in order, so that
        the windows of all that a line takes part in can be drawn."""
        reach = 2 * NEIGHBOURS
        found: dict[str, list[Line]] = {}
        async with self._database.read() as connection:
            for conversation in {line.message.conversation_id for line in lines}:
                seqs = [line.seq for line in lines if line.message.conversation_id == conversation]
                inside = messages.c.conversation_id == conversation
                before = (
                    select(messages)
                    .where(inside, messages.c.seq < min(seqs))
                    .order_by(messages.c.seq.desc())
                    .limit(reach)
                )
                within = select(messages).where(inside, messages.c.seq.between(min(seqs), max(seqs)))
                after = (
                    select(messages)
                    .where(inside, messages.c.seq > max(seqs))
                    .order_by(messages.c.seq)
                    .limit(reach)
                )
                rows = [row for query in (before, within, after) for row in await connection.execute(query)]
                found[conversation] = sorted((_line(row) for row in rows), key=lambda line: line.seq)
        return found

    async def mark_indexed(self, ids: Collection[str], generation: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(
                update(messages).where(messages.c.id.in_(ids)).values(indexed_under=generation)
            )


def readable(audience: Audience) -> ColumnElement[bool]:
    """The rows of `messages` that the audience may read: the twin of `Audience.may_read` in SQL."""
    keys = audience.keys
    people = [key.removeprefix("user:") for key in keys if key.startswith("user:")]
    places = [key for key in keys if key.startswith("place:")]
    return or_(messages.c.user_id.in_(people), and_(messages.c.place != "", messages.c.place.in_(places)))


def _message(row: Any) -> Message:
    role: Role = row.role
    return Message(row.id, row.conversation_id, role, row.author, row.text, row.sent_at)


def _line(row: Any) -> Line:
    place_owner = {row.place} if row.place else set()
    return Line(_message(row), frozenset({*owners_of(row.user_id), *place_owner}), row.seq)
