"""The transcript: every message said, in order. Readable by the audience of the place it was said in."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Insert, Table, and_, bindparam, false, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place, owners_of
from memory.index.windows import REACH
from memory.records import Message
from memory.sql.engine import Database
from memory.sql.tables import conversations, messages, speakers, users, waits


@dataclass(frozen=True, slots=True)
class Line:
    """A message with whose it is: what the index needs to know beside the text."""

    message: Message
    owners: frozenset[str]
    seq: int
    """Grows with every message, over all conversations."""

    @property
    def heard_by(self) -> str:
        """The owner key of the place it was said in, or of whom it was said to in private."""
        return min(self.owners)  # a place's comes before a person's

    @property
    def user(self) -> str:
        """Who spoke, or was answered."""
        return max(self.owners).removeprefix("user:")


class Transcript:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: set[tuple[str, ...]] = set()
        """What is in the record beside messages and need not be written again with each of them."""
        self._authors: dict[frozenset[str], frozenset[str]] = {}

    async def append(
        self, connection: AsyncConnection, message: Message, *, user: str, place: Place, now: datetime
    ) -> None:
        """Write one message in the caller's transaction; its conversation and user come into being with it.
        A message that is already there, by id, is left as it is."""
        key = "" if place.private else place.key
        conversation = {
            "id": message.conversation_id,
            "user_id": user if place.private else None,
            "place": key,
            "created_at": now,
        }
        beside: list[tuple[Table, dict[str, Any]]] = [
            (users, {"id": user, "created_at": now}),
            (conversations, conversation),
            *(
                (speakers, {"owner": owner, "author": message.author})
                for owner in sorted(
                    owners_of(user, place)
                )  # in one order, so that no two wait for each other
            ),
        ]
        new = []
        for table, values in beside:
            known = (table.name, *(str(values[column.name]) for column in table.primary_key))
            if known not in self._known:
                await connection.execute(self._insert(table, values))
                new.append(known)
        if new:
            self._database.once_durable(connection, partial(self._know, new))
        line = {
            "id": message.id,
            "conversation_id": message.conversation_id,
            "user_id": user,
            "place": key,
            "role": message.role,
            "author": message.author,
            "text": message.text,
            "sent_at": message.sent_at,
        }
        await connection.execute(self._insert(messages, line))

    def _know(self, written: Iterable[tuple[str, ...]]) -> None:
        self._known.update(written)
        self._authors.clear()

    def _insert(self, table: Table, values: dict[str, Any]) -> Insert:
        """Leaves alone what is there already."""
        insert = insert_sqlite if self._database.sqlite else insert_postgresql
        return insert(table).values(**values).on_conflict_do_nothing()

    async def authors(self, audience: Audience) -> frozenset[str]:
        """The names that the messages this audience may read bear. Kept between searches: a name that another
        process has just added is only missed in the order of what is found."""
        if audience.keys not in self._authors:
            query = select(speakers.c.author).where(speakers.c.owner.in_(audience.keys))
            async with self._database.read() as connection:
                self._authors[audience.keys] = frozenset((await connection.execute(query)).scalars())
        return self._authors[audience.keys]

    async def last(self, conversation: str, audience: Audience, limit: int) -> list[Message]:
        """The newest messages of a conversation, oldest first."""
        query = (
            select(*_MESSAGE)
            .where(messages.c.conversation_id == conversation, readable(audience))
            .order_by(messages.c.seq.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return [_message(row) for row in reversed(rows)]

    async def following(
        self, conversation: str, owner: str, seq: int, limit: int, *, most: int
    ) -> list[Line]:
        """What `owner` (``place:P``, or ``user:U`` in private) heard of a conversation after the line `seq`:
        the oldest `limit` lines, in order. Where more than `most` follow it is the newest `limit` instead."""
        query = (
            select(messages)
            .where(messages.c.conversation_id == conversation, _heard_by(owner), messages.c.seq > seq)
            .order_by(messages.c.seq.desc())
            .limit(most + 1)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        rows = rows[:limit] if len(rows) > most else rows[-limit:]
        return [_line(row) for row in reversed(rows)]

    async def places_of(self, user: str) -> set[str]:
        """The keys of the places where somebody spoke, or was answered."""
        query = select(messages.c.place).where(messages.c.user_id == user, messages.c.place != "").distinct()
        async with self._database.read() as connection:
            return set(await connection.scalars(query))

    async def newest(
        self,
        audience: Audience,
        limit: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        exclude: Collection[str] = (),
    ) -> list[Message]:
        """What people said, not what they were answered, newest first; of a time, where one is given."""
        query = select(*_MESSAGE).where(readable(audience), messages.c.role == "user")
        query = query.where(messages.c.sent_at >= since) if since else query
        query = query.where(messages.c.sent_at < until) if until else query
        query = query.where(messages.c.id.not_in(exclude)) if exclude else query
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(messages.c.seq.desc()).limit(limit))
            return [_message(row) for row in rows]

    async def by_ids(self, ids: Collection[str], audience: Audience) -> dict[str, Message]:
        if not ids:
            return {}
        people, places = _parts(audience)
        given = {"ids": list(ids), "people": people, "places": places}
        async with self._database.read() as connection:
            return {row.id: _message(row) for row in (await connection.execute(_BY_IDS, given)).all()}

    def forget_known(self) -> None:
        """Look again at what is in the record, where rows were taken away."""
        self._known.clear()
        self._authors.clear()

    async def count(self, audience: Audience) -> int:
        query = select(func.count()).select_from(messages).where(readable(audience))
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar_one()

    async def unindexed(self, generation: str, limit: int) -> list[Line]:
        """Messages the index of this generation does not hold yet; of those that wait alike, oldest first."""
        under = messages.c.indexed_under
        found: list[Line] = []
        async with self._database.read() as connection:
            for due in (under.is_(None), under < generation, under > generation):  # each in an index's order
                query = select(messages).where(due).order_by(under, messages.c.seq)
                rows = await connection.execute(query.limit(limit - len(found)))
                found += [_line(row) for row in rows]
        return found

    async def count_unindexed(self, generation: str) -> int:
        due = waits(messages.c.indexed_under, generation)
        async with self._database.read() as connection:
            query = select(func.count()).select_from(messages).where(due)
            return (await connection.execute(query)).scalar_one()

    async def around(self, lines: Sequence[Line]) -> list[list[Line]]:
        """For each conversation the lines lie in: these and their neighbours' neighbours, in order, so that
        the windows of all that a line takes part in can be drawn. What different people say in private is
        never of one conversation, even where it bears the same id."""
        reach = 2 * REACH
        found: list[list[Line]] = []
        talks: dict[tuple[str, str], list[int]] = {}
        for line in lines:
            talks.setdefault((line.message.conversation_id, line.heard_by), []).append(line.seq)
        async with self._database.read() as connection:
            for (conversation, heard_by), seqs in talks.items():
                inside = and_(messages.c.conversation_id == conversation, _heard_by(heard_by))
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
                found.append(sorted((_line(row) for row in rows), key=lambda line: line.seq))
        return found

    async def mark_indexed(
        self, ids: Collection[str], generation: str, drawn_from: Collection[str] = ()
    ) -> set[str]:
        """The index shows these, as they were drawn from these. Where some of the latter are gone meanwhile
        nothing is marked, for it shows words that were taken away; which those are."""
        free = select(messages.c.id).where(messages.c.id.in_(ids)).with_for_update(skip_locked=True)
        marked = update(messages).where(messages.c.id.in_(free)).values(indexed_under=generation)
        async with self._database.write() as connection:
            if drawn_from and (gone := await missing(connection, drawn_from)):
                return gone
            await connection.execute(marked)
        return set()


_MESSAGE = tuple(messages.c[name] for name in Message.__dataclass_fields__)


def readable(audience: Audience) -> ColumnElement[bool]:
    """The rows of `messages` that the audience may read: the twin of `Audience.may_read` in SQL."""
    people, places = _parts(audience)
    said = [messages.c.user_id.in_(people)] if people else []  # an empty one would cost the use of an index
    heard = [messages.c.place.in_(places)] if places else []
    return or_(false(), *said, *heard)


def _parts(audience: Audience) -> tuple[list[str], list[str]]:
    """The people whose messages may be read, and the places."""
    people = [key.removeprefix("user:") for key in audience.keys if key.startswith("user:")]
    return people, [key for key in audience.keys if key.startswith("place:")]


# Built once, since every search waits for it: building costs more than running it.
_BY_IDS = select(*_MESSAGE).where(
    messages.c.id.in_(bindparam("ids", expanding=True)),
    or_(
        messages.c.user_id.in_(bindparam("people", expanding=True)),
        and_(messages.c.place != "", messages.c.place.in_(bindparam("places", expanding=True))),
    ),
)


async def missing(connection: AsyncConnection, ids: Collection[str]) -> set[str]:
    """Which of these messages are gone; the others stay until the caller's transaction ends. What is done
    about a message looks here before it writes: who was erased meanwhile is not brought back."""
    there = select(messages.c.id).where(messages.c.id.in_(ids))
    rows = await connection.execute(there.with_for_update(read=True, key_share=True))
    return set(ids) - set(rows.scalars())


def _heard_by(owner: str) -> ColumnElement[bool]:
    if owner.startswith("place:"):
        return messages.c.place == owner
    return and_(messages.c.place == "", messages.c.user_id == owner.removeprefix("user:"))


def _message(row: Any) -> Message:
    return Message(row.id, row.conversation_id, row.role, row.author, row.text, row.sent_at)


def _line(row: Any) -> Line:
    place_owner = {row.place} if row.place else set()
    return Line(_message(row), frozenset({*owners_of(row.user_id), *place_owner}), row.seq)
