"""Keeping the index in step with the record: whatever a row shows that the index does not, is put there."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.conversations.summaries import ActiveConversation, ConversationSummaries
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Point
from memory.index.embedders import Embedder
from memory.index.windows import touched_windows, window_text, words_text
from memory.records import Memory
from memory.sql.memories import MemoryStore
from memory.sql.messages import Line, Transcript

log = logging.getLogger("hachi.index")

BATCH = 256
"""Rows that are embedded and put at a time."""

Progress = Callable[[int], None]
"""Told how many rows have been done since it was last told."""


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
        """Caught up once: what an earlier process left is found, and from then on each change is shown."""
        self._shown = 0

    async def show(self, memories: Sequence[Memory], vectors: Mapping[str, Any]) -> None:
        """Put or take out facts that have just changed, so that the next search finds them as they are. They
        stay due, and `catch_up` marks them; where the index is away, it does the rest too."""
        try:
            await self._put_facts(memories, vectors)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            log.warning("the index waits: %s", error)
            self.begun = False
        self._shown += len(memories)
        if self._shown >= BATCH // 4:
            await self.try_to_catch_up()

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Put what is missing; how many rows that were. Raises IndexUnavailable or EmbedderUnavailable; what
        was not put stays due."""
        total, more = 0, True
        async with self._lock:
            while more:
                generation = await self._index.refresh()
                done = [
                    await self._memories(generation),
                    await self._messages(generation),
                    await self._summaries(generation),
                ]
                more = BATCH in done
                total += sum(done)
                if progress:
                    progress(sum(done))
            self.begun, self._shown = True, 0
        return total

    async def try_to_catch_up(self) -> None:
        """The same in the background: an index that is away is a line in the log, and is caught up later."""
        try:
            await self.catch_up()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            log.warning("the index waits: %s", error)

    async def due(self) -> int:
        """How many rows wait."""
        generation = await self._index.refresh()
        kept = (self._store, self._transcript, self._conversations)
        return sum([await part.count_unindexed(generation) for part in kept])

    async def _memories(self, generation: str) -> int:
        due = await self._store.unindexed(generation, BATCH)
        if due:
            await self._put_facts([memory for memory, _ in due], {})
            await self._store.mark_indexed({memory.id: revision for memory, revision in due}, generation)
        return len(due)

    async def _put_facts(self, memories: Sequence[Memory], vectors: Mapping[str, Any]) -> None:
        now = self._clock()
        shown = [m for m in memories if m.owners and (m.expires_at is None or m.expires_at > now)]
        lacking = [memory for memory in shown if memory.id not in vectors]
        made = await self._embedder.embed([memory.content for memory in lacking])
        vectors = {**vectors, **{m.id: vector for m, vector in zip(lacking, made, strict=True)}}
        await self._index.put([_fact(memory, vectors[memory.id]) for memory in shown])
        hidden = {memory.id for memory in memories} - {memory.id for memory in shown}
        # Deleted while it was put: its points were taken out too early.
        hidden |= await self._store.missing([memory.id for memory in shown])
        if hidden:
            await self._index.remove(sorted(hidden))

    async def _messages(self, generation: str) -> int:
        due = await self._transcript.unindexed(generation, BATCH)
        if not due:
            return 0
        ids = {line.message.id for line in due}
        entries: dict[str, tuple[Line, str]] = {}
        drawn_from: set[str] = set()
        for lines in await self._transcript.around(due):
            drawn_from.update(line.message.id for line in lines)
            messages = [line.message for line in lines]
            for at, line in enumerate(lines):
                if line.message.id in ids:
                    # A new message is also in the windows of its neighbours, which are drawn again.
                    for near in touched_windows(messages, at):
                        entries[messages[near].id] = (lines[near], window_text(messages, near))
        await self._index.put(await self._with_vectors(list(entries.values())))
        if gone := await self._transcript.mark_indexed(ids, generation, drawn_from):
            await self._index.remove(sorted(gone))  # erased while it was put; the rest is drawn anew
            return BATCH
        return len(due)

    async def _summaries(self, generation: str) -> int:
        due = await self._conversations.unindexed(generation, BATCH)
        if not due:
            return 0
        shown = [conversation for conversation, _ in due if conversation.summary]
        vectors = await self._embedder.embed([conversation.summary for conversation in shown])
        await self._index.put([_digest(c, vector) for c, vector in zip(shown, vectors, strict=True)])
        hidden = {conversation.id for conversation, _ in due if not conversation.summary}
        hidden |= await self._conversations.missing([conversation.id for conversation in shown])
        if hidden:
            await self._index.remove(sorted(hidden))
        await self._conversations.mark_indexed({c.id: revision for c, revision in due}, generation)
        return len(due)

    async def _with_vectors(self, entries: Sequence[tuple[Line, str]]) -> list[Point]:
        texts = [line.message.text for line, _ in entries] + [window for _, window in entries]
        vectors = await self._embedder.embed(texts)
        return [
            replace(_line(line, vectors[at]), window_text=window, window_dense=vectors[len(entries) + at])
            for at, (line, window) in enumerate(entries)
        ]


def _fact(memory: Memory, vector: Any) -> Point:
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


def _digest(conversation: ActiveConversation, vector: Any) -> Point:
    return Point(
        id=conversation.id,
        kind="summary",
        owners=frozenset({conversation.owner}),
        text=conversation.summary,
        dense=vector,
        created_at=conversation.updated_at,
        group=conversation.conversation_id,
    )


def _line(line: Line, vector: Any) -> Point:
    message = line.message
    return Point(
        id=message.id,
        kind="message",
        owners=line.owners,
        text=words_text(message.author, message.text),
        dense=vector,
        created_at=message.sent_at,
        group=message.conversation_id,
    )
