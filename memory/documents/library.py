"""The documents that the companion was given to look things up in: adding, finding and taking away.

SQL is the record; the index is one of its own, so that documents change neither the word statistics nor the
speed of memory search, and is caught up from the record like the other one.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from memory.audience import GLOBAL, Audience
from memory.documents.files import below, shown
from memory.documents.index_sync import BATCH, ChunkIndexSync
from memory.documents.ingest import AddedDocument, Ingest, IngestResult, Progress, take
from memory.documents.rerank import Reranker
from memory.documents.search import Search
from memory.documents.store import DocumentStore
from memory.errors import EmbedderUnavailable, NotFound
from memory.index import Index
from memory.index.embedders import Embedder
from memory.records import Chunk, Document
from memory.sql.engine import Database

log = logging.getLogger("hachi.knowledge")

MIN_ID = 8
"""So many characters of an id are enough to name a document."""


class DocumentLibrary:
    def __init__(
        self,
        database: Database,
        index: Index,
        embedder: Embedder,
        clock: Callable[[], datetime],
        reranker: Reranker,
    ) -> None:
        """`index` holds nothing but documents."""
        self._clock = clock
        self._documents = DocumentStore(database)
        self._indexing = ChunkIndexSync(self._documents, index, embedder)
        self._taking = asyncio.Semaphore(1)
        self._search = Search(self._documents, index, embedder, clock, reranker)

    async def add(
        self, paths: Sequence[Path], owner: str = GLOBAL, progress: Progress | None = None
    ) -> IngestResult:
        """Read these files, and all documents in these folders, for whoever may read `owner`.

        What is in the record is kept file by file, so a crash loses nothing that was read; an index that is
        away is caught up later. Raises NotFound where a path is not there, before anything is read."""
        if not owner:
            raise ValueError("documents need an owner: user:U, place:P or global")
        run = Ingest(self._documents, owner, self._clock)
        waiting = 0
        async for made in run.run(paths, progress):
            waiting += made
            if waiting >= BATCH:
                waiting = 0
                await self._indexing.try_to_catch_up()
        await self._indexing.try_to_catch_up()
        return run.result

    async def add_document(self, name: str, data: bytes, owner: str) -> AddedDocument:
        """Keep one document that is handed over, for whoever may read `owner`. The ending of `name` says how
        `data` is to be read, and a document of theirs that has that name already is replaced. Raises
        `UnreadableDocument`."""
        if not owner:
            raise ValueError("documents need an owner: user:U, place:P or global")
        async with self._taking:  # a page can be made to take minutes: let it take one thread, and no more
            taken = await take(self._documents, owner, name, data, self._clock())
        await self._indexing.try_to_catch_up()
        return taken

    async def documents(self, audience: Audience) -> list[Document]:
        """What may be read there, by path."""
        return await self._documents.readable(audience)

    async def remove(self, what: str, owner: str) -> list[Document]:
        """Take away a file, all files below a folder, or the document of this id or the beginning of it (8
        characters at least); what went, by path. Only what is the owner's own; raises NotFound where none of
        it is meant, or more than one id."""
        gone = _meant(what, await self._documents.of(owner))
        if not gone:
            raise NotFound(
                f"no such document here: {shown(what)}; `hachi knowledge list` shows what there is"
            )
        await self._take_away(gone)
        return gone

    async def remove_all(self, owner: str) -> list[Document]:
        """Take away all that is the owner's own, as when a person is forgotten."""
        gone = await self._documents.of(owner)
        await self._take_away(gone)
        return gone

    async def empty(self) -> bool:
        """Whether there are no documents at all, whoever's. One look at the record."""
        return await self._documents.empty()

    async def search(self, query: str, audience: Audience, limit: int = 5) -> list[Chunk]:
        """The chunks that bear on the query, best first; none where nothing does.

        Without the embedder it goes by words alone, and in the fused order where the reranker fails. Raises
        IndexUnavailable."""
        if not audience.keys or not query.strip() or limit < 1 or await self.empty():
            return []
        if await self._indexing.lags():
            try:
                await self._indexing.catch_up()
            except EmbedderUnavailable as error:
                log.warning("searching the documents that have been indexed so far: %s", error)
        return await self._search(query, audience, limit)

    async def catch_up(self, progress: Callable[[int], None] | None = None) -> int:
        """Bring the index to what the record says; how many chunks that took. `progress` is told how many
        since it was last told. Raises IndexUnavailable or EmbedderUnavailable; what is not done stays due."""
        return await self._indexing.catch_up(progress)

    async def _take_away(self, gone: Sequence[Document]) -> None:
        if gone:
            await self._documents.take_away(gone, self._clock())
            await self._indexing.try_to_catch_up()


def _meant(what: str, documents: Sequence[Document]) -> list[Document]:
    what = what.strip()
    if not what:
        return []
    if the_one := [document for document in documents if document.id == what.lower()]:
        return the_one
    place = shown(os.path.abspath(os.path.expanduser(what)))
    if by_path := [
        document for document in documents if below(document.path, place) or document.path == what
    ]:
        return by_path
    by_id = [d for d in documents if d.id.startswith(what.lower())] if len(what) >= MIN_ID else []
    if len(by_id) > 1:
        raise NotFound(f"{what} begins the ids of {len(by_id)} documents; give more of it")
    return by_id
