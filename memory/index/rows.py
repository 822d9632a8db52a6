"""Read rows of the database as the index shows them: `IndexRow`s, points that lack their vectors.

They are active facts, visible messages with their windows, summaries, and chunks. A key names the owner whose
rows are read together: `user:U`, `place:P` or `global`. Chunks have keys of their own, with the prefix
`DOCUMENTS`, so that they do not change how rare a word is elsewhere.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, func, select, text

from memory.index import Kind, Point
from memory.index.windows import LIMIT, Window, windows_of
from memory.sql.changes import DOCUMENTS
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import ACTIVE_LINKS, LINKS, UNEXPIRED
from memory.sql.memories.replacements import NOW, is_active, unexpired
from memory.sql.messages.lines import Anchor, anchors_of, lines_around, newest_anchors
from memory.sql.messages.message_rows import REACH, Line, is_visible
from memory.sql.messages.summaries import ActiveConversation, ConversationSummaries
from memory.sql.tables import active_conversations, memories, memory_owners, messages
from memory.sql.tables import knowledge_chunks as chunks
from memory.sql.tables import knowledge_documents as documents
from memory.text import prose

Ids = Mapping[Kind, Collection[str]]


class IndexRow(NamedTuple):
    point: Point
    """Without vectors."""
    text: str
    """The text that is embedded."""
    window: str | None = None
    """The text of the window that is embedded."""


_FACTS = (
    select(*(memories.c[name] for name in ("id", "content", "subjects", "created_at", "expires_at")))
    .add_columns(LINKS.c.owner)
    .select_from(memories.join(LINKS, ACTIVE_LINKS))
    .where(memories.c.id.in_(bindparam("ids", expanding=True)), UNEXPIRED)
)
_CHUNKS = (
    select(chunks.c.id, chunks.c.heading, chunks.c.text)
    .add_columns(documents.c.title, documents.c.owner, documents.c.added_at)
    .join(documents, documents.c.id == chunks.c.document_id)
    .where(chunks.c.id.in_(bindparam("ids", expanding=True)))
)
_IDS_OF: Mapping[Kind, Any] = {
    "memory": select(memory_owners.c.memory_id.label("id")).where(
        memory_owners.c.owner == bindparam("owner"), is_active()
    ),
    "summary": select(active_conversations.c.id).where(
        active_conversations.c.owner == bindparam("owner"), active_conversations.c.summary != ""
    ),
    "chunk": select(chunks.c.id).join(documents).where(documents.c.owner == bindparam("owner")),
}
"""Selects the ids of an owner's rows, by kind."""
_REPLACED_BY_EXPIRED = text(
    """SELECT old_id FROM memories CROSS JOIN replacements
    WHERE expires_at <= :now AND new_id = memories.id AND owner IN :owners"""
).bindparams(NOW, bindparam("owners", expanding=True))
"""CROSS JOIN makes SQLite start from the few expired memories, not from all replaced ones."""


class Rows:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._conversations = ConversationSummaries(database)

    async def shown(self, ids: Ids, now: datetime) -> list[IndexRow]:
        """Return these rows as far as they belong in the index, and messages whose windows have them."""
        found = await self._facts(ids.get("memory", ()), now) + await self._summaries(ids.get("summary", ()))
        anchors = await anchors_of(self.database, ids.get("message", ()))
        found += await self._messages(anchors, neighbours=True)
        return found + await self._chunks(ids.get("chunk", ()))

    async def of_owner(self, key: str, now: datetime, size: int) -> AsyncIterator[list[IndexRow]]:
        """Yield all rows of a key in lists of `size`: facts and summaries, then messages, newest first."""
        owner = key.removeprefix(DOCUMENTS)
        kinds: tuple[Kind, ...] = ("chunk",) if key != owner else ("memory", "summary")
        for kind in kinds:
            ids = [row.id for row in await self.database.rows(_IDS_OF[kind], {"owner": owner, "now": now})]
            for at in range(0, len(ids), size):
                part = ids[at : at + size]
                if kind == "memory":
                    yield await self._facts(part, now)
                else:
                    yield await (self._chunks if kind == "chunk" else self._summaries)(part)
        before = 2**62 if owner.startswith(("user:", "place:")) and "chunk" not in kinds else 0
        while anchors := before and await newest_anchors(self.database, owner, before, size):
            before = anchors[-1].seq
            own = [one for one in anchors if one.heard == owner]
            others = [one for one in anchors if one.heard != owner]
            yield await self._messages(own, whole=True) + await self._messages(others)

    async def standing(self, ids: Collection[str]) -> set[str]:
        """Return which of these messages are stored, hidden or not."""
        return {anchor.id for anchor in await anchors_of(self.database, ids)}

    async def replaced_by_expired(self, owners: Collection[str], now: datetime) -> set[str]:
        """Return the owners' facts that may be active again, because the facts that replaced them have
        expired. Once those are purged, the log of changes lists the older facts."""
        given = {"owners": list(owners), "now": now}
        return {row.old_id for row in await self.database.rows(_REPLACED_BY_EXPIRED, given)}

    async def with_more_messages(self, room: int) -> list[str]:
        """Return the people and places with more than `room` messages."""
        found: list[str] = []
        for prefix, whose in (("user:", messages.c.user_id), ("", messages.c.place)):
            more = select(whose.label("key")).where(whose != "").group_by(whose).having(func.count() > room)
            found += [f"{prefix}{row.key}" for row in await self.database.rows(more)]
        return found

    async def count(self, now: datetime) -> int:
        """Return how many points a complete index has."""
        owned = exists().where(memory_owners.c.memory_id == memories.c.id, is_active())
        counts = [
            select(func.count()).select_from(table).where(*shown).scalar_subquery()
            for table, *shown in (
                (memories, owned, unexpired()),
                (messages, is_visible()),
                (active_conversations, active_conversations.c.summary != ""),
                (chunks,),
            )
        ]
        [row] = await self.database.rows(select(*counts), {"now": now})
        return sum(row)

    async def _facts(self, ids: Collection[str], now: datetime) -> list[IndexRow]:
        rows = await self.database.rows(_FACTS, {"ids": list(ids), "now": now}) if ids else ()
        owners = defaultdict[str, set[str]](set)
        for row in rows:
            owners[row.id].add(row.owner)
        return [_of_memory(row, frozenset(owners[row.id])) for row in {row.id: row for row in rows}.values()]

    async def _summaries(self, ids: Collection[str]) -> list[IndexRow]:
        found = await self._conversations.of_ids(ids) if ids else []
        return [_of_summary(conversation) for conversation in found if conversation.summary]

    async def _messages(
        self, anchors: Sequence[Anchor], *, neighbours: bool = False, whole: bool = False
    ) -> list[IndexRow]:
        index_rows: dict[str, IndexRow] = {}
        reach = 2 * REACH if neighbours else REACH
        for run, around in await lines_around(self.database, anchors, reach, whole=whole):
            talk = [line.message for line in around]
            ids, seqs = {anchor.id for anchor in run}, [line.seq for line in around]
            wanted = {at for at, message in enumerate(talk) if message.id in ids}
            for anchor in run if neighbours else ():  # the message itself may be hidden
                at = bisect_left(seqs, anchor.seq)
                wanted.update(range(max(0, at - REACH), min(len(talk), at + REACH + 1)))
            windows = windows_of(talk)
            index_rows |= {talk[at].id: _of_message(around[at], windows[at]) for at in wanted}
        return list(index_rows.values())

    async def _chunks(self, ids: Collection[str]) -> list[IndexRow]:
        rows = await self.database.rows(_CHUNKS, {"ids": list(ids)}) if ids else ()
        return [_of_chunk(row) for row in rows]


def _of_memory(row: Any, owners: frozenset[str]) -> IndexRow:
    point = Point(
        id=row.id,
        kind="memory",
        owners=owners,
        text=row.content,
        dense=None,
        created_at=row.created_at,
        expires_at=row.expires_at,
        subjects=tuple(row.subjects),
    )
    return IndexRow(point, row.content)


def _of_summary(conversation: ActiveConversation) -> IndexRow:
    owners, text = frozenset({conversation.owner}), conversation.summary
    return IndexRow(Point(conversation.id, "summary", owners, text, None, conversation.updated_at), text)


def _of_message(line: Line, window: Window) -> IndexRow:
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
    # A vector is a mean, so without this a page of code would outweigh the message's prose.
    return IndexRow(point, prose(message.text), window.meaning)


def _of_chunk(row: Any) -> IndexRow:
    # Separate lanes for neighbouring chunks and for the outline lowered recall.
    text = f"{row.title}\n{row.heading}\n{row.text}"
    owners = frozenset({f"{DOCUMENTS}{row.owner}"})
    return IndexRow(Point(row.id, "chunk", owners, text, None, row.added_at), text)
