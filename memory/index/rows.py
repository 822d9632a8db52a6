"""Reads rows of the database as the index shows them: `Draft`s, points that lack their vectors.

Facts that somebody has and that have not expired, messages that count as said, each with its window, written
summaries, and the chunks of documents.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, exists, func, select

from memory.audience import Audience
from memory.index import CHUNKS, Kind, Point
from memory.index.windows import LIMIT, Window, touched_windows, window_of
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.hidden import parts
from memory.sql.memories.memory_rows import UNEXPIRED, WITH_OWNERS, unexpired, with_owners
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.lines import lines_around, lines_of, newest_lines
from memory.sql.messages.message_rows import Line, kept
from memory.sql.messages.summaries import ActiveConversation, ConversationSummaries
from memory.sql.readable import is_active
from memory.sql.tables import active_conversations, memories, memory_owners, messages
from memory.sql.tables import knowledge_chunks as chunks
from memory.sql.tables import knowledge_documents as documents
from memory.text import prose

_TABLES: Mapping[Kind, Table] = {
    "message": messages,
    "memory": memories,
    "summary": active_conversations,
    "chunk": chunks,
}
_OLDER = (
    select(messages.c.id, messages.c.seq)
    .where(messages.c.seq < bindparam("seq"), kept())
    .order_by(messages.c.seq.desc())
    .limit(bindparam("most"))
)


_FACTS = WITH_OWNERS.where(memories.c.id.in_(bindparam("ids", expanding=True)), UNEXPIRED)


class Draft(NamedTuple):
    point: Point
    """Without vectors."""
    text: str
    """What its own vector is made of."""
    window: str | None = None
    """What the vector of its window is made of."""


Ids = Mapping[Kind, Collection[str]]


class Rows:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._store = MemoryStore(database)
        self._conversations = ConversationSummaries(database)

    async def shown(self, ids: Ids, now: datetime) -> list[Draft]:
        """Those of these rows that the index shows, and the neighbours whose windows they are part of."""
        facts = await self._facts(ids.get("memory", ()), now)
        summaries = await self._summaries(ids.get("summary", ()))
        lines = await lines_of(self.database, ids.get("message", ()))
        found = [*facts, *summaries, *await self._messages(lines, neighbours=True)]
        return found + (await self._chunks(chunks.c.id.in_(ids["chunk"])) if "chunk" in ids else [])

    async def readable(self, ids: Ids, owners: frozenset[str], now: datetime) -> list[Draft]:
        """Those of these rows that the index shows to readers with these owner keys."""
        facts = await self._store.by_ids(ids.get("memory", ()), Audience(owners), now)
        lines = await lines_of(self.database, ids.get("message", ()))
        found = [*map(_of_memory, facts.values()), *await self._summaries(ids.get("summary", ()))]
        found += await self._messages([line for line in lines if not owners.isdisjoint(line.owners)])
        found += await self._chunks(chunks.c.id.in_(ids["chunk"])) if "chunk" in ids else []
        return [draft for draft in found if not owners.isdisjoint(draft.point.owners)]

    async def newest(
        self, kinds: frozenset[Kind], owners: frozenset[str], now: datetime, limit: int
    ) -> list[Draft]:
        """The newest rows of each of these kinds that readers with these owner keys may read, at most `limit`
        of each."""
        audience = Audience(owners)
        if kinds == CHUNKS:
            newest = _CHUNKS.order_by(documents.c.added_at.desc(), chunks.c.id).limit(limit)
            return await self._chunks(documents.c.owner.in_(owners), newest)
        found = [_of_memory(memory) for memory in await self._store.newest(audience, now, limit)]
        found += [_of_summary(one) for one in await self._conversations.newest(audience, now, limit)]
        return found + await self._messages(await newest_lines(self.database, audience, limit))

    async def pages(self, size: int) -> AsyncIterator[Ids]:
        """The ids of all rows that an index may show, the newest messages first, so many at a time."""
        seq = 2**62
        while rows := await self.database.rows(_OLDER, {"seq": seq, "most": size}):
            seq = rows[-1].seq
            yield {"message": [row.id for row in rows]}
        for kind, table in _TABLES.items():
            last = ""
            while ids := await self._ids_after(table, last, size) if kind != "message" else []:
                last = ids[-1]
                yield {kind: ids}

    async def deleted(self, ids: Ids) -> set[str]:
        """Which of these rows are in no table any more."""
        gone: set[str] = set()
        for kind, some in ids.items():
            for part in parts(some):
                there = select(_TABLES[kind].c.id).where(_TABLES[kind].c.id.in_(part))
                gone |= set(part) - {row.id for row in await self.database.rows(there)}
        return gone

    async def count(self, now: datetime) -> int:
        """How many points an index of all rows has."""
        owned = exists().where(memory_owners.c.memory_id == memories.c.id, is_active())
        counts = [
            select(func.count()).select_from(table).where(*shown).scalar_subquery()
            for table, *shown in (
                (memories, and_(owned, unexpired(now))),
                (messages, kept()),
                (active_conversations, active_conversations.c.summary != ""),
                (chunks,),
            )
        ]
        [row] = await self.database.rows(select(*counts))
        return sum(row)

    async def _ids_after(self, table: Table, last: str, limit: int) -> list[str]:
        after = select(table.c.id).where(table.c.id > last).order_by(table.c.id).limit(limit)
        return [row.id for row in await self.database.rows(after)]

    async def _facts(self, ids: Collection[str], now: datetime) -> list[Draft]:
        rows = await self.database.rows(_FACTS, {"ids": list(ids), "now": now}) if ids else ()
        return [_of_memory(memory) for memory in with_owners(rows) if memory.owners]

    async def _summaries(self, ids: Collection[str]) -> list[Draft]:
        found = await self._conversations.of_ids(ids) if ids else []
        return [_of_summary(conversation) for conversation in found if conversation.summary]

    async def _messages(self, lines: Sequence[Line], *, neighbours: bool = False) -> list[Draft]:
        ids = {line.message.id for line in lines}
        drafts: dict[str, Draft] = {}
        for around in await lines_around(self.database, ids) if ids else []:
            talk = [line.message for line in around]
            for at, message in enumerate(talk):
                for near in touched_windows(talk, at) if neighbours else (at,):
                    if message.id in ids and talk[near].id not in drafts:
                        drafts[talk[near].id] = _of_message(around[near], window_of(talk, near))
        return list(drafts.values())

    async def _chunks(self, which: ColumnElement[bool], query: Select[Any] | None = None) -> list[Draft]:
        rows = await self.database.rows((_CHUNKS if query is None else query).where(which))
        return [_of_chunk(row) for row in rows]


_CHUNKS = select(
    chunks.c.id, chunks.c.heading, chunks.c.text, documents.c.title, documents.c.owner, documents.c.added_at
).join(documents, documents.c.id == chunks.c.document_id)


def _of_memory(memory: Memory) -> Draft:
    point = Point(
        id=memory.id,
        kind="memory",
        owners=memory.owners,
        text=memory.content,
        dense=None,
        created_at=memory.created_at,
        expires_at=memory.expires_at,
        subjects=memory.subjects,
    )
    return Draft(point, memory.content)


def _of_summary(conversation: ActiveConversation) -> Draft:
    owners, text = frozenset({conversation.owner}), conversation.summary
    return Draft(Point(conversation.id, "summary", owners, text, None, conversation.updated_at), text)


def _of_message(line: Line, window: Window) -> Draft:
    message = line.message
    point = Point(
        id=message.id,
        kind="message",
        owners=line.owners,
        text=message.text[:LIMIT],
        dense=None,
        created_at=message.sent_at,
        window_text=window.words,
    )
    # A vector is a mean: of a message with a page of code it would be the code's.
    return Draft(point, prose(message.text), window.meaning)


def _of_chunk(row: Any) -> Draft:
    # Separate lanes for the neighbours of a chunk and for the outline found less.
    text = f"{row.title}\n{row.heading}\n{row.text}"
    return Draft(Point(row.id, "chunk", frozenset({row.owner}), text, None, row.added_at), text)
