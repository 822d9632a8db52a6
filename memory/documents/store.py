"""Documents and their chunks in SQL.

A chunk is never changed. One that is taken away loses its text and its owner at once and stays as an empty
row until it has left the index too: so no crash, and no index that is away, leaves anything behind in there.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import ColumnElement, Select, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience
from memory.documents.chunking import ChunkText
from memory.errors import NotFound
from memory.index.schema import slices
from memory.records import Document
from memory.sql.engine import Database
from memory.sql.tables import knowledge_chunks as chunks
from memory.sql.tables import knowledge_documents as documents
from memory.sql.tables import waits

NOBODY = ""
"""The owner of what was taken away: no audience has this key."""
ROWS = 500
"""Rows, or values of a condition, in one statement."""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with what is known of its document."""

    id: str
    document_id: str
    chunk_index: int
    heading: str
    text: str
    """Empty: it was taken away."""
    title: str
    path: str
    owner: str
    added_at: datetime


class DocumentStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def readable(self, audience: Audience) -> list[Document]:
        """What this audience may read, by path."""
        return await self._list(documents.c.owner.in_(audience.keys)) if audience.keys else []

    async def of(self, owner: str) -> list[Document]:
        """What belongs to this owner alone, by path."""
        return await self._list(documents.c.owner == owner) if owner else []

    async def digests(self, owner: str) -> dict[str, str]:
        """The digest of each of the owner's documents, by path."""
        query = select(documents.c.path, documents.c.digest).where(documents.c.owner == owner)
        async with self._database.read() as connection:
            return {row.path: row.digest for row in await connection.execute(query)}

    async def digest(self, owner: str, path: str) -> str | None:
        """Of one of the owner's documents, where it is there."""
        query = select(documents.c.digest).where(documents.c.owner == owner, documents.c.path == path)
        async with self._database.read() as connection:
            found: str | None = (await connection.execute(query)).scalar()
        return found

    async def named(self, owner: str, path: str) -> Document:
        """One of the owner's documents. Raises NotFound."""
        found = await self._list(and_(documents.c.owner == owner, documents.c.path == path))
        if not found:
            raise NotFound(f"the document {path} has just been taken away; add it again")
        return found[0]

    async def empty(self) -> bool:
        query = select(documents.c.id).where(documents.c.owner != NOBODY).limit(1)
        async with self._database.read() as connection:
            return (await connection.execute(query)).first() is None

    async def put(
        self, owner: str, path: str, title: str, digest: str, pieces: Sequence[ChunkText], now: datetime
    ) -> bool:
        """Add a document or replace the one there, in one transaction; True where there was one."""
        about = {"title": title, "digest": digest, "added_at": now}
        async with self._database.write(lock=[f"knowledge {owner}"]) as connection:
            same = select(documents.c.id).where(documents.c.owner == owner, documents.c.path == path)
            old: str | None = (await connection.execute(same)).scalar()
            if old is None:
                id = str(uuid4())
                await connection.execute(insert(documents).values(id=id, owner=owner, path=path, **about))
            else:
                id = old
                await self._bury(connection, [id], now)
                await connection.execute(update(documents).where(documents.c.id == id).values(**about))
            rows = [
                {
                    "id": str(uuid4()),
                    "document_id": id,
                    "chunk_index": at,
                    "heading": piece.heading,
                    "text": piece.text,
                }
                for at, piece in enumerate(pieces)
            ]
            for part in slices(rows, ROWS):
                await connection.execute(insert(chunks), list(part))
        return old is not None

    async def take_away(self, gone: Collection[Document], now: datetime) -> None:
        """In one transaction."""
        ids = [document.id for document in gone]
        owners = {f"knowledge {document.owner}" for document in gone}
        async with self._database.write(lock=owners) as connection:
            for part in slices(ids, ROWS):
                await self._bury(connection, part, now)
                await connection.execute(delete(documents).where(documents.c.id.in_(part)))

    async def by_ids(self, ids: Collection[str], audience: Audience) -> dict[str, StoredChunk]:
        """Those of these chunks that this audience may read."""
        if not ids or not audience.keys:
            return {}
        # The owner is looked at here: as a condition it makes SQLite go through all that the owner has.
        query = _rows().where(chunks.c.id.in_(ids))
        async with self._database.read() as connection:
            found = [StoredChunk(**row._mapping) for row in await connection.execute(query)]
        return {row.id: row for row in found if audience.may_read([row.owner])}

    async def waiting(self, generation: str) -> bool:
        """Whether there is anything that `unindexed` would tell. One look at the record."""
        query = select(chunks.c.id).where(waits(chunks.c.indexed_under, generation)).limit(1)
        async with self._database.read() as connection:
            return (await connection.execute(query)).first() is not None

    async def unindexed(self, generation: str, limit: int) -> list[StoredChunk]:
        """Chunks that the index of this generation does not show, or still shows though they are gone."""
        query = _rows().where(waits(chunks.c.indexed_under, generation)).limit(limit)
        async with self._database.read() as connection:
            return [StoredChunk(**row._mapping) for row in await connection.execute(query)]

    async def mark_indexed(self, ids: Sequence[str], generation: str) -> set[str]:
        """Those of these that are still there; they are not due any more."""
        mark = update(chunks).where(chunks.c.id.in_(ids), chunks.c.text != "")
        async with self._database.write() as connection:
            done = await connection.execute(mark.values(indexed_under=generation).returning(chunks.c.id))
            return {row.id for row in done}

    async def forget(self, ids: Sequence[str]) -> None:
        """The empty rows of chunks that have left the index."""
        async with self._database.write() as connection:
            await connection.execute(delete(chunks).where(chunks.c.id.in_(ids), chunks.c.text == ""))
            left = select(chunks.c.id).where(chunks.c.document_id == documents.c.id).exists()
            await connection.execute(delete(documents).where(documents.c.owner == NOBODY, ~left))

    async def _bury(self, connection: AsyncConnection, ids: Sequence[str], now: datetime) -> None:
        """Empty these documents' chunks, and put them under others that nobody reads."""
        for id in ids:
            grave = str(uuid4())
            nothing = {"owner": NOBODY, "path": grave, "title": "", "digest": "", "added_at": now}
            await connection.execute(insert(documents).values(id=grave, **nothing))
            blank = {"document_id": grave, "heading": "", "text": "", "indexed_under": None}
            await connection.execute(update(chunks).where(chunks.c.document_id == id).values(**blank))

    async def _list(self, wanted: ColumnElement[bool]) -> list[Document]:
        query = (
            select(documents, func.count(chunks.c.id).label("chunks"))
            .join(chunks, chunks.c.document_id == documents.c.id, isouter=True)
            .where(wanted)
            .group_by(documents.c.id)
        )
        async with self._database.read() as connection:
            found = [
                Document(row.id, row.owner, row.path, row.title, row.added_at, row.chunks)
                for row in await connection.execute(query)
            ]
        return sorted(found, key=lambda document: (document.path, document.owner))


def _rows() -> Select[tuple[object, ...]]:
    columns = [chunks.c[name] for name in ("id", "document_id", "chunk_index", "heading", "text")]
    about = [documents.c[name] for name in ("title", "path", "owner", "added_at")]
    return select(*columns, *about).join(documents, documents.c.id == chunks.c.document_id)
