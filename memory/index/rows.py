"""Read rows of the database as the index shows them: `IndexRow`s, points that lack their vectors.

They are active facts, visible messages with their windows, summaries, and chunks. A key names the owner whose
rows are read together: `user:U`, `place:P` or `global`. Chunks have keys of their own, with the prefix
`DOCUMENTS`, so that they do not change how rare a word is elsewhere.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, func, select, text

from memory.index import Kind, Point
from memory.index.windows import LIMIT, Window, windows_of
from memory.sql.changes import DOCUMENTS
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import ACTIVE_LINKS, LINKS, UNEXPIRED
from memory.sql.memories.replacements import NOW, is_active, unexpired
from memory.sql.messages.lines import Anchor, anchors_of, lines_around, newest_lines
from memory.sql.messages.message_rows import REACH, is_visible, message_owners
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


_OWNER: Any = bindparam("owner")
_THEIRS = select(memory_owners.c.memory_id).where(memory_owners.c.owner == _OWNER, is_active())
_QUERIES: Mapping[Kind, tuple[Any, Any, Any]] = {
    "memory": (
        select(*(memories.c[name] for name in ("id", "content", "subjects", "created_at", "expires_at")))
        .add_columns(LINKS.c.owner)
        .select_from(memories.join(LINKS, ACTIVE_LINKS))
        .where(UNEXPIRED)
        .order_by(memories.c.id),
        memories.c.id,
        memories.c.id.in_(_THEIRS),
    ),
    "summary": (
        select(active_conversations).where(active_conversations.c.summary != ""),
        active_conversations.c.id,
        active_conversations.c.owner == _OWNER,
    ),
    "chunk": (
        select(chunks.c.id, chunks.c.heading, chunks.c.text)
        .add_columns(documents.c.title, documents.c.owner, documents.c.added_at)
        .join(documents, documents.c.id == chunks.c.document_id),
        chunks.c.id,
        documents.c.owner == _OWNER,
    ),
}
"""The rows of each kind, the column of their ids, and the condition that they are an owner's."""
_BY_IDS = {
    kind: rows.where(id.in_(bindparam("ids", expanding=True))) for kind, (rows, id, _) in _QUERIES.items()
}
_BY_OWNER = {kind: rows.where(theirs) for kind, (rows, _, theirs) in _QUERIES.items()}
_REPLACED_BY_EXPIRED = text(
    """SELECT old_id FROM memories CROSS JOIN replacements
    WHERE expires_at <= :now AND new_id = memories.id AND owner IN :owners"""
).bindparams(NOW, bindparam("owners", expanding=True))
"""CROSS JOIN makes SQLite start from the few expired memories, not from all replaced ones."""


class Rows:
    def __init__(self, database: Database) -> None:
        self.database = database

    async def shown(
        self, ids: Ids, now: datetime, anchors: Collection[Anchor] | None = None
    ) -> list[IndexRow]:
        """Return these rows as far as they belong in the index, and messages whose windows have them."""
        if anchors is None:
            anchors = await anchors_of(self.database, ids.get("message", ()))
        found = await self._messages(anchors, neighbours=True)
        for kind, query in _BY_IDS.items():
            if ids.get(kind):
                rows = await self.database.rows(query, {"ids": list(ids[kind]), "now": now})
                found += _index_rows(kind, rows)
        return found

    async def of_owner(self, key: str, now: datetime, size: int) -> AsyncIterator[list[IndexRow]]:
        """Yield a key's rows in lists of some `size`: facts and summaries, then messages, newest first."""
        owner, talks = key.removeprefix(DOCUMENTS), key.startswith(("user:", "place:"))
        kinds: tuple[Kind, ...] = ("memory", "summary") if talks else ("memory" if key == owner else "chunk",)
        for kind in kinds:
            rows = await self.database.rows(_BY_OWNER[kind], {"owner": owner, "now": now})
            index_rows = _index_rows(kind, rows)
            while part := [*islice(index_rows, size)]:
                yield part
        if talks:
            async for found in self._messages_of(owner, size):
                yield found

    async def _messages_of(self, owner: str, size: int) -> AsyncIterator[list[IndexRow]]:
        """Yield an owner's messages with their windows, newest first. What a person wrote in a place is read
        with the messages around it, which others wrote."""
        before, oldest = 2**62, defaultdict[str, list[Any]](list)  # of each conversation, for the next part
        while lines := await newest_lines(self.database, owner, before, size):
            before = lines[-1].seq
            talks, elsewhere = defaultdict[str, list[Any]](list), []
            for line in reversed(lines):
                if line.place in ("", owner) or line.withdrawn:
                    talks[line.conversation_id].append(line)
                else:
                    elsewhere.append(Anchor(line.id, line.conversation_id, line.place, line.seq))
            found = await self._messages(elsewhere)
            for conversation, talk in talks.items():
                after = oldest[conversation]
                shown = len(talk) + len(after) - (REACH if len(after) == 2 * REACH else 0)
                talk += after
                found += map(_of_message, talk[:shown], windows_of(talk))
                oldest[conversation] = talk[: 2 * REACH]
            yield found
            if len(lines) < size:
                return

    async def replaced_by_expired(self, owners: Collection[str], now: datetime) -> set[str]:
        """Return the owners' facts that may be active again, because the facts that replaced them have
        expired. Once those are purged, the log of changes lists the older facts."""
        rows = await self.database.rows(_REPLACED_BY_EXPIRED, {"owners": list(owners), "now": now})
        return {row.old_id for row in rows}

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
        return sum((await self.database.rows(select(*counts), {"now": now}))[0])

    async def _messages(self, anchors: Collection[Anchor], *, neighbours: bool = False) -> list[IndexRow]:
        index_rows: dict[str, IndexRow] = {}
        reach = 2 * REACH if neighbours else REACH
        for run, talk in await lines_around(self.database, anchors, reach):
            ids, seqs = {anchor.id for anchor in run}, [line.seq for line in talk]
            wanted = {at for at, line in enumerate(talk) if line.id in ids}
            for anchor in run if neighbours else ():  # the message itself may be hidden
                at = bisect_left(seqs, anchor.seq)
                wanted.update(range(max(0, at - REACH), min(len(talk), at + REACH + 1)))
            windows = windows_of(talk)
            index_rows |= {talk[at].id: _of_message(talk[at], windows[at]) for at in wanted}
        return list(index_rows.values())


def _index_rows(kind: Kind, rows: Iterable[Any]) -> Iterator[IndexRow]:
    """Return the rows one by one, since for thousands of facts this takes longer than others may wait."""
    if kind == "memory":
        return (_of_memory(links) for _, links in groupby(rows, key=attrgetter("id")))
    return map(_of_summary if kind == "summary" else _of_chunk, rows)


def _of_memory(links: Iterable[Any]) -> IndexRow:
    row, *others = links
    point = Point(
        id=row.id,
        kind="memory",
        owners=frozenset((row.owner, *(other.owner for other in others))),
        text=row.content,
        dense=None,
        created_at=row.created_at,
        expires_at=row.expires_at,
        subjects=tuple(row.subjects),
    )
    return IndexRow(point, row.content)


def _of_summary(row: Any) -> IndexRow:
    owners, text = frozenset({row.owner}), row.summary
    return IndexRow(Point(row.id, "summary", owners, text, None, row.updated_at), text)


def _of_message(row: Any, window: Window) -> IndexRow:
    point = Point(
        id=row.id,
        kind="message",
        owners=message_owners(row),
        text=row.text[:LIMIT],
        dense=None,
        created_at=row.sent_at,
        window_text=window.words,
    )
    # A vector is a mean, so without this a page of code would outweigh the message's prose.
    return IndexRow(point, prose(row.text), window.meaning)


def _of_chunk(row: Any) -> IndexRow:
    # Separate lanes for neighbouring chunks and for the outline lowered recall.
    text = f"{row.title}\n{row.heading}\n{row.text}"
    owners = frozenset({f"{DOCUMENTS}{row.owner}"})
    return IndexRow(Point(row.id, "chunk", owners, text, None, row.added_at), text)
