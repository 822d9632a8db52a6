"""Keeps the index of documents in step with SQL."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from memory.documents.store import DocumentStore, StoredChunk
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Point
from memory.index.embedders import Embedder, know_dimension

log = logging.getLogger("hachi.knowledge")

BATCH = 256
"""Chunks that are embedded and indexed in one step."""


class ChunkIndexSync:
    def __init__(self, store: DocumentStore, index: Index, embedder: Embedder) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._lock = asyncio.Lock()
        self._generation: str | None = None
        """The index's generation at the last catch-up."""

    async def is_behind(self) -> bool:
        """Whether the index may be incomplete: this process has not caught up yet or failed to, or another
        process has added or removed documents since."""
        return self._generation is None or await self._store.any_unindexed(self._generation)

    async def catch_up(self, progress: Callable[[int], None] | None = None) -> int:
        """Index missing chunks and remove deleted ones; returns how many. Raises IndexUnavailable or
        EmbedderUnavailable. The next call handles the chunks that were not processed."""
        total = 0
        async with self._lock:
            await know_dimension(self._embedder)
            while due := await self._store.unindexed(generation := await self._index.refresh(), BATCH):
                await self._sync(due, generation)
                total += len(due)
                if progress:
                    progress(len(due))
            self._generation = generation
        return total

    async def try_to_catch_up(self) -> None:
        """Like `catch_up`, but only logs that an index or embedder is unavailable."""
        try:
            await self.catch_up()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            log.warning("the index of documents is not up to date: %s", error)

    async def _sync(self, due: Sequence[StoredChunk], generation: str) -> None:
        await self._take_out([chunk.id for chunk in due if not chunk.text])  # first: it needs no embedder
        existing = [chunk for chunk in due if chunk.text]
        if not existing:
            return
        texts = [indexed_text(chunk) for chunk in existing]
        vectors = await self._embedder.embed(texts)
        await self._index.put(
            [
                Point(c.id, "chunk", frozenset({c.owner}), text, vector, c.added_at)
                for c, text, vector in zip(existing, texts, vectors, strict=True)
            ]
        )
        marked = await self._store.mark_indexed([chunk.id for chunk in existing], generation)
        # A chunk deleted meanwhile may have left the index before this put added it again.
        await self._take_out([chunk.id for chunk in existing if chunk.id not in marked])

    async def _take_out(self, ids: Sequence[str]) -> None:
        if ids:
            await self._index.remove(ids)
            await self._store.forget(ids)


def indexed_text(chunk: StoredChunk) -> str:
    """The text to index for a chunk. Separate lanes for its neighbours and the outline found less."""
    return f"{chunk.title}\n{chunk.heading}\n{chunk.text}"
