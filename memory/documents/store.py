"""Store documents and their chunks in SQL. A chunk never changes."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, true, update

from memory.audience import Audience
from memory.documents.chunking import ChunkText
from memory.records import Document
from memory.sql.engine import Database
from memory.sql.tables import knowledge_chunks as chunks
from memory.sql.tables import knowledge_documents as documents

_CHUNK_ROWS = select(chunks, documents.c.title, documents.c.path, documents.c.owner).join(documents)
_DOCUMENTS = select(documents, func.count(chunks.c.id).label("chunks")).outerjoin(chunks)


class DocumentStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def readable(self, audience: Audience) -> list[Document]:
        """List the documents that this audience may read, by path."""
        return await self._list(documents.c.owner.in_(audience.keys))

    async def owned_by(self, owner: str, path: str | None = None) -> list[Document]:
        """List the documents of exactly this owner, by path; or only the document at this path."""
        return await self._list(_owned_by(owner, path))

    async def digests(self, owner: str, path: str | None = None) -> dict[str, str]:
        """Return the digest of each of the owner's documents, or of the one at this path, by path."""
        query = select(documents.c.path, documents.c.digest).where(_owned_by(owner, path))
        return {row.path: row.digest for row in await self._database.rows(query)}

    async def empty(self) -> bool:
        return not await self._database.rows(select(documents.c.id).limit(1))

    async def put(
        self, owner: str, path: str, title: str, digest: str, texts: Sequence[ChunkText], now: datetime
    ) -> bool:
        """Add or replace a document in one transaction. True if it replaced one, which keeps its id."""
        values = {"title": title, "digest": digest, "added_at": now}
        async with self._database.write(lock=[f"knowledge {owner}"]) as connection:
            before = await connection.scalar(select(documents.c.id).where(_owned_by(owner, path)))
            id = before or str(uuid4())
            if before is None:
                await connection.execute(insert(documents).values(id=id, owner=owner, path=path, **values))
            else:
                await connection.execute(delete(chunks).where(chunks.c.document_id == id))
                await connection.execute(update(documents).where(documents.c.id == id).values(**values))
            rows = [
                {"id": str(uuid4()), "document_id": id, "chunk_index": at, **asdict(chunk)}
                for at, chunk in enumerate(texts)
            ]
            await connection.execute(insert(chunks), rows)
        return before is not None

    async def remove(self, removed: Collection[Document]) -> None:
        """Remove these documents in one transaction."""
        ids = [document.id for document in removed]
        async with self._database.write(lock={f"knowledge {one.owner}" for one in removed}) as connection:
            await connection.execute(delete(documents).where(documents.c.id.in_(ids)))

    async def chunks(self, ids: Collection[str], audience: Audience) -> list[Any]:
        """Return the rows of these chunks that this audience may read, with title and path."""
        # The owner is checked here: an SQL condition would make SQLite scan all rows of the owner.
        rows = await self._database.rows(_CHUNK_ROWS.where(chunks.c.id.in_(ids)))
        return [row for row in rows if audience.may_read([row.owner])]

    async def _list(self, condition: ColumnElement[bool]) -> list[Document]:
        rows = await self._database.rows(_DOCUMENTS.where(condition).group_by(documents.c.id))
        found = [Document(row.id, row.owner, row.path, row.title, row.added_at, row.chunks) for row in rows]
        return sorted(found, key=lambda document: (document.path, document.owner))


def _owned_by(owner: str, path: str | None) -> ColumnElement[bool]:
    return and_(documents.c.owner == owner, true() if path is None else documents.c.path == path)
