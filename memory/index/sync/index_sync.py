"""Indexes every new or changed row, and removes the points of those that are gone."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Point
from memory.index.embedders import Embedder, know_dimension
from memory.index.searching import NEWEST, QUICK, RowSearch, Searching
from memory.index.sync.catching_up import PATIENCE, CatchingUp
from memory.index.sync.comparing import Comparison, compare
from memory.index.sync.points import of_memory, of_message, of_summary, with_vectors
from memory.index.sync.rows import Rows
from memory.index.windows import Window, touched_windows, window_of
from memory.records import Memory
from memory.sql import indexing
from memory.sql.memories import MemoryStore
from memory.sql.message_rows import Line
from memory.sql.messages import Transcript
from memory.sql.summaries import ConversationSummaries
from memory.sql.tables import active_conversations, memories, messages

BATCH = 256
"""Rows that are embedded and indexed at a time."""

Progress = Callable[[int], None]
"""Called with the number of rows that were indexed since the last call."""


class IndexSync:
    def __init__(
        self,
        store: MemoryStore,
        transcript: Transcript,
        index: Index,
        embedder: Embedder,
        clock: Callable[[], datetime],
        conversations: ConversationSummaries,
    ) -> None:
        self._store = store
        self._transcript = transcript
        self._conversations = conversations
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._rows = Rows(store, transcript, conversations)
        self._catching_up = CatchingUp("the index", index, self.catch_up, self.compare)
        self.try_to_catch_up = self._catching_up.attempt
        self.check = self._catching_up.check
        self.stop = self._catching_up.stop
        self.begun = False
        """True once a catch-up has indexed the rows of earlier processes and found that the index fits."""
        self._unchecked: set[str] = set()
        """Facts that `show` indexed and that may have been deleted just before; `catch_up` checks them."""
        newest = RowSearch(lambda owners: self._rows.newest(owners, clock(), NEWEST), embedder)
        waiting = RowSearch(lambda owners: self._rows.newest(owners, clock(), BATCH, waiting=True), embedder)
        self.searching = Searching(index, newest, self._catching_up, waiting)
        """Searches the index and the rows that wait for it; while it is away or behind, the newest rows."""

    async def show(self, facts: Sequence[Memory], vectors: Mapping[str, Any]) -> None:
        """Index facts that have just changed, so that the next search finds them. They stay due: `catch_up`
        marks them later, and indexes those that an unavailable index or embedder left out. Nobody waits for
        that for long."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._index_facts(facts, vectors)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self._catching_up.wait(error)
        except TimeoutError:
            self._catching_up.wait(IndexUnavailable("the index takes long to store what is new"))
        self._unchecked.update(fact.id for fact in facts)
        if len(self._unchecked) >= BATCH // 4:
            await self._catching_up.begin()

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Index every row that is due, and return the number of rows. The first time, an index that does not
        fit the rows is rebuilt. Raises IndexUnavailable or EmbedderUnavailable; rows that were not indexed
        stay due."""
        async with self._catching_up.lock:
            await know_dimension(self._embedder)
            total = await self._index_due(progress)
            if not self.begun and await self._catching_up.wipe_if_unfit():
                total += await self._index_due(progress)
            self.begun = True
        return total

    async def begin(self) -> None:
        """Index what earlier processes left, before a search. Does not wait for long; see `CatchingUp`."""
        if not self.begun or self._catching_up.behind:
            await self._catching_up.begin()

    async def compare(self) -> Comparison:
        """Compare the index with the rows, and change nothing. Raises IndexUnavailable."""
        generation = await self._index.refresh()

        async def sample() -> list[Point]:
            drafts = await self._rows.sample(generation, self._clock())
            # Embedding may cost something, and another server's vectors are never quite the same.
            embed = self._embedder.embed if self._embedder.name in QUICK else without_vectors
            return await with_vectors(drafts, embed)

        return await compare(self._index, lambda: self._rows.bounds(generation, self._clock()), sample)

    async def _index_due(self, progress: Progress | None) -> int:
        parts = {
            memories.name: self._memories,
            messages.name: self._messages,
            active_conversations.name: self._summaries,
        }
        total = 0
        while True:
            generation = await self._index.refresh()
            due = await indexing.due_tables(self._store.database, generation)
            done = [await index_batch(generation) for name, index_batch in parts.items() if name in due]
            total += sum(done)
            if progress:
                progress(sum(done))
            if BATCH not in done:
                break
        await self._remove_deleted()
        return total

    async def due(self, generation: str | None = None) -> int:
        """The number of rows that are due; with the generation "", which no index has, all rows."""
        if generation is None:
            generation = await self._index.refresh()
        return await indexing.count_due(self._store.database, generation)

    async def _memories(self, generation: str) -> int:
        due = await self._store.unindexed(generation, BATCH)
        await self._index_facts([memory for memory, _ in due], {})
        revisions = {memory.id: revision for memory, revision in due}
        deleted = await self._store.mark_indexed(revisions, generation)
        self._unchecked -= revisions.keys()
        await self._index.remove(sorted(deleted))  # deleted while they were indexed
        return len(due)

    async def _index_facts(self, facts: Sequence[Memory], vectors: Mapping[str, Any]) -> None:
        """Active facts are put in the index, all others are removed from it."""
        now = self._clock()
        active = [m for m in facts if m.owners and (m.expires_at is None or m.expires_at > now)]
        missing = [of_memory(memory) for memory in active if memory.id not in vectors]
        ready = [replace(of_memory(m).point, dense=vectors[m.id]) for m in active if m.id in vectors]
        await self._index.put(ready + await with_vectors(missing, self._embedder.embed))
        await self._index.remove(sorted({m.id for m in facts} - {m.id for m in active}))

    async def _remove_deleted(self) -> None:
        checked = set(self._unchecked)
        await self._index.remove(sorted(await self._store.missing(checked)))
        self._unchecked -= checked

    async def _messages(self, generation: str) -> int:
        due = await self._transcript.unindexed(generation, BATCH)
        removed = {line.message.id for line in due if line.message.gone}
        ids = {line.message.id for line in due} - removed
        entries: dict[str, tuple[Line, Window]] = {}
        drawn_from: set[str] = set()
        for lines in await self._transcript.around(due):
            drawn_from.update(line.message.id for line in lines if not line.message.gone)
            conversation = [line.message for line in lines]
            for at, line in enumerate(lines):
                if line.message.id in ids | removed:
                    # It is part of its neighbours' windows too, which are indexed again.
                    for near in touched_windows(conversation, at):
                        entries[conversation[near].id] = (lines[near], window_of(conversation, near))
        shown = [entry for entry in entries.values() if not entry[0].message.gone]
        drafts = [of_message(line, window) for line, window in shown]
        await self._index.put(await with_vectors(drafts, self._embedder.embed))
        await self._index.remove(sorted(removed))
        if deleted := await self._transcript.mark_indexed(ids, generation, drawn_from, removed):
            await self._index.remove(sorted(deleted))
            return BATCH  # none was marked: the next round indexes the rest without the deleted ones
        return len(due)

    async def _summaries(self, generation: str) -> int:
        due = await self._conversations.unindexed(generation, BATCH)
        shown = [conversation for conversation, _ in due if conversation.summary]
        points = await with_vectors([of_summary(one) for one in shown], self._embedder.embed)
        await self._index.put(points)
        await self._index.remove([conversation.id for conversation, _ in due if not conversation.summary])
        deleted = await self._conversations.mark_indexed({c.id: revision for c, revision in due}, generation)
        await self._index.remove(sorted(deleted))  # deleted while they were indexed
        return len(due)


async def without_vectors(texts: Sequence[str]) -> list[None]:
    return [None] * len(texts)
