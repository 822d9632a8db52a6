"""Keeping the index of documents in step with the record."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memory.documents.store import DocumentStore, StoredChunk
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Point
from memory.index.embedders import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("hachi.knowledge")

BATCH = 256
"""Chunks that are embedded and put at a time."""


class ChunkIndexSync:
    def __init__(self, documents: DocumentStore, index: Index, embedder: Embedder) -> None:
        self._documents = documents
        self._index = index
        self._embedder = embedder
        self._lock = asyncio.Lock()
        self._generation: str | None = None
        """Of the index when it was last caught up."""

    async def lags(self) -> bool:
        """Whether the index may lack something: this process has not caught up yet, could not, or another
        one has added or removed documents since."""
        return self._generation is None or await self._documents.waiting(self._generation)

    async def catch_up(self, progress: Callable[[int], None] | None = None) -> int:
        """Put what is missing and take out what is gone; how many chunks that were. Raises IndexUnavailable
        or EmbedderUnavailable; what was not done stays due."""
        total = 0
        async with self._lock:
            while due := await self._documents.unindexed(generation := await self._index.refresh(), BATCH):
                await self._show(due, generation)
                total += len(due)
                if progress:
                    progress(len(due))
            self._generation = generation
        return total

    async def try_to_catch_up(self) -> None:
        """The same where nobody waits for it: what cannot be done is a line in the log, and done later."""
        try:
            await self.catch_up()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            log.warning("the index of documents waits: %s", error)

    async def _show(self, due: Sequence[StoredChunk], generation: str) -> None:
        await self._take_out([row.id for row in due if not row.text])  # first: this needs no embedder
        there = [row for row in due if row.text]
        if there:
            vectors = await self._embedder.embed([text_of(row) for row in there])
            await self._index.put([_point(row, vector) for row, vector in zip(there, vectors, strict=True)])
            shown = await self._documents.mark_indexed([row.id for row in there], generation)
            # Taken away while it was put: whoever did that may have cleaned the index too early.
            await self._take_out([row.id for row in there if row.id not in shown])

    async def _take_out(self, ids: Sequence[str]) -> None:
        if ids:
            await self._index.remove(ids)
            await self._documents.forget(ids)


def text_of(row: StoredChunk) -> str:
    """What a chunk is found by: itself, and what it stands under. A window of its neighbours, and the outline
    of its document, were tried as lanes of their own and found less."""
    return f"{row.title}\n{row.heading}\n{row.text}"


def _point(row: StoredChunk, vector: "NDArray[np.float32]") -> Point:
    return Point(
        id=row.id,
        kind="chunk",
        owners=frozenset({row.owner}),
        text=text_of(row),
        dense=vector,
        created_at=row.added_at,
        group=row.document_id,
    )
