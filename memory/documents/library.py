"""The library of documents that the companion looks things up in: adding, finding and removing them.

SQL is the source of truth. In the index passages have owner keys of their own (`memory.index.rows`), so
they change neither the word statistics nor the speed of memory search.
"""

import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from memory.audience import GLOBAL, Audience
from memory.documents.files import display_path, is_below
from memory.documents.ingest import AddedDocument, Ingest, IngestResult, Progress
from memory.documents.parsing import DocumentParser
from memory.documents.rerankers import Reranker
from memory.documents.search import DocumentSearch
from memory.documents.store import DocumentStore
from memory.errors import NotFound
from memory.index.embedders import Embedder
from memory.index.indexing import Indexing
from memory.records import Chunk, Document
from memory.sql.engine import Database
from memory.text import is_a_line

log = logging.getLogger("hachi.knowledge")

MIN_ID = 8
"""The fewest characters of an id that identify a document."""
MAX_NAME = 200
"""The most characters of a document's name."""


class DocumentLibrary:
    def __init__(
        self,
        database: Database,
        sync: Indexing,
        embedder: Embedder,
        clock: Callable[[], datetime],
        reranker: Reranker,
    ) -> None:
        self._clock = clock
        self._store = DocumentStore(database)
        self.sync = sync
        self._search = DocumentSearch(self._store, self.sync, embedder, clock, reranker)
        self._parser = DocumentParser()

    async def add(
        self, paths: Sequence[Path], owner: str = GLOBAL, progress: Progress | None = None
    ) -> IngestResult:
        """Read these files, and all documents in these folders, for the readers of `owner`.

        Each file is stored as soon as it is read, so a crash loses none of the files read before. If the
        index is unavailable, a later call indexes them. Raises NotFound for a missing path, before it reads
        any file.
        """
        return await self._ingest(owner).add_files(paths, progress)

    async def add_document(self, name: str, data: bytes, owner: str) -> AddedDocument:
        """Store one document, given as bytes, for the readers of `owner`. The extension of `name` selects the
        parser. Replaces the owner's document of that name. Raises UnreadableDocument."""
        return await self._ingest(owner).add_one(name, data)

    async def documents(self, audience: Audience) -> list[Document]:
        """The documents that this audience may read, by path."""
        return await self._store.readable(audience)

    async def remove(self, target: str, owner: str) -> list[Document]:
        """Remove the owner's file at this path, all files below this folder, or the document with this id or
        prefix of an id (at least 8 characters). Returns the removed documents, by path. Raises NotFound if
        none or several ids match."""
        removed = _matching(target, await self._store.owned_by(owner))
        if not removed:
            raise NotFound(
                f"no such document here: {display_path(target)}; `hachi knowledge list` shows what there is"
            )
        await self._remove(removed)
        return removed

    async def remove_all(self, owner: str) -> list[Document]:
        """Remove all documents that belong to this owner, as when a person is erased."""
        removed = await self._store.owned_by(owner)
        await self._remove(removed)
        return removed

    async def empty(self) -> bool:
        """Whether the library has no documents of any owner."""
        return await self._store.empty()

    async def search(self, query: str, audience: Audience, limit: int = 5) -> list[Chunk]:
        """The chunks that answer the query, best first; empty if none does. Without the embedder it searches
        by words alone, and without the reranker it keeps the fused order."""
        if not audience.keys or not query.strip() or limit < 1 or await self.empty():
            return []
        return await self._search(query, audience, limit)

    def _ingest(self, owner: str) -> Ingest:
        return Ingest(self._store, self.sync, self._parser, owner, self._clock)

    async def _remove(self, removed: Sequence[Document]) -> None:
        if removed:
            await self._store.remove(removed)
            await self.sync.try_to_catch_up()


def document_name(text: str) -> str:
    """The text as a document's name: a file name without a folder. Raises ValueError."""
    name = text.strip()
    plain = is_a_line(name) and name.strip(".") and {"/", "\\"}.isdisjoint(name)
    if not plain or len(name) > MAX_NAME:
        raise ValueError(
            f"name: a document needs the name of a file, such as notes.md: one line of at most {MAX_NAME} "
            "characters, without a folder"
        )
    return name


def _matching(target: str, documents: Sequence[Document]) -> list[Document]:
    target = target.strip()
    path = display_path(os.path.abspath(os.path.expanduser(target)))
    prefix = target.lower()
    by_id = [d for d in documents if len(target) >= MIN_ID and d.id.startswith(prefix)]
    if not target or any(d.id == prefix for d in by_id):
        return by_id
    if by_path := [d for d in documents if is_below(d.path, path) or d.path == target]:
        return by_path
    if len(by_id) > 1:
        raise NotFound(f"{target} begins the ids of {len(by_id)} documents; give more of it")
    return by_id
