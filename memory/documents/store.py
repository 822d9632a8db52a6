"""Documents and their chunks in SQL. A chunk never changes."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, true, update

from memory.audience import Audience
from memory.documents.chunking import ChunkText
from memory.records import Document
from memory.sql.engine import Database
from memory.sql.tables import knowledge_chunks as chunks
from memory.sql.tables import knowledge_documents as documents

T = TypeVar("T")

ROWS = 500
"""The most rows, or values of a condition, in one statement."""

_CHUNK_ROWS = select(
    *(chunks.c[name] for name in ("id", "document_id", "chunk_index", "heading", "text")),
    *(documents.c[name] for name in ("title", "path", "owner")),
).join(documents, documents.c.id == chunks.c.document_id)


class DocumentStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def readable(self, audience: Audience) -> list[Document]:
        """The documents that this audience may read, by path."""
        return await self._list(documents.c.owner.in_(audience.keys)) if audience.keys else []

    async def owned_by(self, owner: str, path: str | None = None) -> list[Document]:
        """The documents of exactly this owner, by path; or only the document at this path."""
        return await self._list(_owned_by(owner, path)) if owner else []

    async def digests(self, owner: str, path: str | None = None) -> dict[str, str]:
        """The digest of each of the owner's documents, or of the one at this path, by path."""
        query = select(documents.c.path, documents.c.digest).where(_owned_by(owner, path))
        return {row.path: row.digest for row in await self._database.rows(query)}

    async def empty(self) -> bool:
        query = select(documents.c.id).limit(1)
        async with self._database.read() as connection:
            return (await connection.execute(query)).first() is None

    async def put(
        self, owner: str, path: str, title: str, digest: str, texts: Sequence[ChunkText], now: datetime
    ) -> bool:
        """Add or replace a document in one transaction. True if it replaced one, which keeps its id."""
        values = {"title": title, "digest": digest, "added_at": now}
        async with self._database.write(lock=[f"knowledge {owner}"]) as connection:
            existing = await connection.execute(select(documents.c.id).where(_owned_by(owner, path)))
            id: str | None = existing.scalar()
            replaced = id is not None
            if id is None:
                id = str(uuid4())
                await connection.execute(insert(documents).values(id=id, owner=owner, path=path, **values))
            else:
                await connection.execute(delete(chunks).where(chunks.c.document_id == id))
                await connection.execute(update(documents).where(documents.c.id == id).values(**values))
            rows = [
                {"id": str(uuid4()), "document_id": id, "chunk_index": at, **asdict(chunk)}
                for at, chunk in enumerate(texts)
            ]
            for part in _slices(rows):
                await connection.execute(insert(chunks), list(part))
        return replaced

    async def remove(self, removed: Collection[Document]) -> None:
        """Remove these documents in one transaction."""
        locks = {f"knowledge {document.owner}" for document in removed}
        async with self._database.write(lock=locks) as connection:
            for part in _slices([document.id for document in removed]):
                await connection.execute(delete(documents).where(documents.c.id.in_(part)))

    async def chunks(self, ids: Collection[str], audience: Audience) -> list[Any]:
        """The rows of the chunks with these ids that this audience may read, with their documents' titles and
        paths."""
        if not ids or not audience.keys:
            return []
        # The owner is checked here: an SQL condition would make SQLite scan all rows of the owner.
        rows = await self._database.rows(_CHUNK_ROWS.where(chunks.c.id.in_(ids)))
        return [row for row in rows if audience.may_read([row.owner])]

    async def _list(self, condition: ColumnElement[bool]) -> list[Document]:
        query = (
            select(documents, func.count(chunks.c.id).label("chunks"))
            .join(chunks, chunks.c.document_id == documents.c.id, isouter=True)
            .where(condition)
            .group_by(documents.c.id)
        )
        async with self._database.read() as connection:
            found = [
                Document(row.id, row.owner, row.path, row.title, row.added_at, row.chunks)
                for row in await connection.execute(query)
            ]
        return sorted(found, key=lambda document: (document.path, document.owner))


def _owned_by(owner: str, path: str | None) -> ColumnElement[bool]:
    return and_(documents.c.owner == owner, true() if path is None else documents.c.path == path)


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[at : at + ROWS] for at in range(0, len(items), ROWS))
