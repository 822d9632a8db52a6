"""Keeps the index in step with the database: every new or changed row is indexed."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Point
from memory.index.embedders import Embedder, know_dimension
from memory.index.windows import touched_windows, window_text, words_text
from memory.records import Memory
from memory.sql import indexing
from memory.sql.memories import MemoryStore
from memory.sql.message_rows import Line
from memory.sql.messages import Transcript
from memory.sql.summaries import ActiveConversation, ConversationSummaries
from memory.sql.tables import active_conversations, memories, messages

log = logging.getLogger("hachi.index")

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
        self._lock = asyncio.Lock()
        self.begun = False
        """True once the first catch-up has indexed the rows of earlier processes."""
        self._unchecked: set[str] = set()
        """Facts that `show` indexed and that may have been deleted just before; `catch_up` checks them."""

    async def show(self, facts: Sequence[Memory], vectors: Mapping[str, Any]) -> None:
        """Index facts that have just changed, so that the next search finds them. They stay due: `catch_up`
        marks them later, and indexes those that an unavailable index or embedder left out."""
        try:
            await self._index_facts(facts, vectors)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            log.warning("the index waits: %s", error)
            self.begun = False
        self._unchecked.update(fact.id for fact in facts)
        if len(self._unchecked) >= BATCH // 4:
            await self.try_to_catch_up()

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Index every row that is due, and return the number of rows. Raises IndexUnavailable or
        EmbedderUnavailable; rows that were not indexed stay due."""
        parts = {
            memories.name: self._memories,
            messages.name: self._messages,
            active_conversations.name: self._summaries,
        }
        total = 0
        async with self._lock:
            await know_dimension(self._embedder)
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
            self.begun = True
        return total

    async def try_to_catch_up(self) -> None:
        """Like `catch_up`, for the background: logs an error, and the rows stay due."""
        try:
            await self.catch_up()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            log.warning("the index waits: %s", error)

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
        missing = [memory for memory in active if memory.id not in vectors]
        made = await self._embedder.embed([memory.content for memory in missing])
        vectors = {**vectors, **{m.id: vector for m, vector in zip(missing, made, strict=True)}}
        await self._index.put([_memory_point(memory, vectors[memory.id]) for memory in active])
        await self._index.remove(sorted({m.id for m in facts} - {m.id for m in active}))

    async def _remove_deleted(self) -> None:
        checked = set(self._unchecked)
        await self._index.remove(sorted(await self._store.missing(checked)))
        self._unchecked -= checked

    async def _messages(self, generation: str) -> int:
        due = await self._transcript.unindexed(generation, BATCH)
        removed = {line.message.id for line in due if line.message.forgotten_at}
        ids = {line.message.id for line in due} - removed
        entries: dict[str, tuple[Line, str]] = {}
        drawn_from: set[str] = set()
        for lines in await self._transcript.around(due):
            drawn_from.update(line.message.id for line in lines if not line.message.forgotten_at)
            conversation = [line.message for line in lines]
            for at, line in enumerate(lines):
                if line.message.id in ids | removed:
                    # It is part of its neighbours' windows too, which are indexed again.
                    for near in touched_windows(conversation, at):
                        entries[conversation[near].id] = (lines[near], window_text(conversation, near))
        shown = [entry for entry in entries.values() if not entry[0].message.forgotten_at]
        await self._index.put(await self._message_points(shown))
        await self._index.remove(sorted(removed))
        if deleted := await self._transcript.mark_indexed(ids, generation, drawn_from, removed):
            await self._index.remove(sorted(deleted))
            return BATCH  # none was marked: the next round indexes the rest without the deleted ones
        return len(due)

    async def _message_points(self, entries: Sequence[tuple[Line, str]]) -> list[Point]:
        texts = [line.message.text for line, _ in entries] + [window for _, window in entries]
        vectors = await self._embedder.embed(texts)
        return [
            _message_point(line, window, vectors[at], vectors[len(entries) + at])
            for at, (line, window) in enumerate(entries)
        ]

    async def _summaries(self, generation: str) -> int:
        due = await self._conversations.unindexed(generation, BATCH)
        shown = [conversation for conversation, _ in due if conversation.summary]
        vectors = await self._embedder.embed([conversation.summary for conversation in shown])
        await self._index.put([_summary_point(c, vector) for c, vector in zip(shown, vectors, strict=True)])
        await self._index.remove([conversation.id for conversation, _ in due if not conversation.summary])
        deleted = await self._conversations.mark_indexed({c.id: revision for c, revision in due}, generation)
        await self._index.remove(sorted(deleted))  # deleted while they were indexed
        return len(due)


def _memory_point(memory: Memory, vector: Any) -> Point:
    return Point(
        id=memory.id,
        kind="memory",
        owners=memory.owners,
        text=memory.content,
        dense=vector,
        created_at=memory.created_at,
        expires_at=memory.expires_at,
        subjects=memory.subjects,
    )


def _summary_point(conversation: ActiveConversation, vector: Any) -> Point:
    return Point(
        id=conversation.id,
        kind="summary",
        owners=frozenset({conversation.owner}),
        text=conversation.summary,
        dense=vector,
        created_at=conversation.updated_at,
    )


def _message_point(line: Line, window: str, vector: Any, window_vector: Any) -> Point:
    message = line.message
    return Point(
        id=message.id,
        kind="message",
        owners=line.owners,
        text=words_text(message.author, message.text),
        dense=vector,
        created_at=message.sent_at,
        window_text=window,
        window_dense=window_vector,
    )
