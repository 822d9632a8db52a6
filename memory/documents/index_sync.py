"""Keeps the index of documents in step with SQL."""

from collections.abc import Callable, Sequence

from memory.audience import Audience
from memory.documents.store import DocumentStore, StoredChunk
from memory.index import Index, Point
from memory.index.embedders import Embedder, know_dimension
from memory.index.searching import NEWEST, RowSearch, Searching
from memory.index.sync.catching_up import CatchingUp
from memory.index.sync.comparing import Comparison, compare
from memory.index.sync.points import Draft, with_vectors

BATCH = 256
"""Chunks that are embedded and indexed in one step."""


class ChunkIndexSync:
    def __init__(self, store: DocumentStore, index: Index, embedder: Embedder) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._generation: str | None = None
        """The index's generation at the last catch-up."""
        self._catching_up = CatchingUp("the index of documents", index, self.catch_up, self.compare)
        self.try_to_catch_up = self._catching_up.attempt
        self.check = self._catching_up.check
        self.stop = self._catching_up.stop
        newest = RowSearch(self._newest, embedder)
        self.searching = Searching(index, newest, self._catching_up)
        """Searches the index, and the newest chunks while the index is away or behind."""

    async def is_behind(self) -> bool:
        """Whether the index may be incomplete: this process has not caught up yet or failed to, or another
        process has added or removed documents since."""
        return self._generation is None or await self._store.any_unindexed(self._generation)

    async def catch_up(self, progress: Callable[[int], None] | None = None) -> int:
        """Index missing chunks and remove deleted ones; returns how many. Raises IndexUnavailable or
        EmbedderUnavailable. The next call handles the chunks that were not processed."""
        total = 0
        async with self._catching_up.lock:
            await know_dimension(self._embedder)
            total += await self._index_due(progress)
            if self._generation is None and await self._catching_up.wipe_if_unfit():
                total += await self._index_due(progress)
            self._generation = await self._index.refresh()
        return total

    async def begin(self) -> None:
        """Index what is missing, before a search. Does not wait for long; see `CatchingUp`."""
        if await self.is_behind():
            await self._catching_up.begin()

    async def compare(self) -> Comparison:
        """Compare the index with the chunks, and change nothing. Raises IndexUnavailable."""
        generation = await self._index.refresh()

        async def sample() -> list[Point]:
            return [_draft(chunk).point for chunk in await self._store.sample(generation)]

        return await compare(self._index, lambda: self._store.bounds(generation), sample)

    async def _newest(self, owners: frozenset[str]) -> list[Draft]:
        return [_draft(chunk) for chunk in await self._store.newest(Audience(owners), NEWEST)]

    async def _index_due(self, progress: Callable[[int], None] | None) -> int:
        total = 0
        while due := await self._store.unindexed(generation := await self._index.refresh(), BATCH):
            await self._sync(due, generation)
            total += len(due)
            if progress:
                progress(len(due))
        return total

    async def _sync(self, due: Sequence[StoredChunk], generation: str) -> None:
        await self._take_out([chunk.id for chunk in due if not chunk.text])  # first: it needs no embedder
        existing = [chunk for chunk in due if chunk.text]
        if not existing:
            return
        drafts = [_draft(chunk) for chunk in existing]
        await self._index.put(await with_vectors(drafts, self._embedder.embed))
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


def _draft(chunk: StoredChunk) -> Draft:
    text = indexed_text(chunk)
    return Draft(Point(chunk.id, "chunk", frozenset({chunk.owner}), text, None, chunk.added_at), text)
