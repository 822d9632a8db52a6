"""Reads rows of the database as the index shows them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, exists, false

from memory.audience import Audience
from memory.index.sync.comparing import Bounds
from memory.index.sync.points import Draft, of_memory, of_message, of_summary
from memory.index.windows import window_of
from memory.sql import indexing
from memory.sql.memories import MemoryStore
from memory.sql.memory_rows import is_active, unexpired
from memory.sql.message_rows import Line, kept
from memory.sql.messages import Transcript
from memory.sql.summaries import ConversationSummaries
from memory.sql.tables import active_conversations, memories, memory_owners, messages


@dataclass(frozen=True)
class Rows:
    store: MemoryStore
    transcript: Transcript
    conversations: ConversationSummaries

    async def newest(
        self, owners: frozenset[str], now: datetime, limit: int, *, waiting: bool = False
    ) -> list[Draft]:
        """The newest memories, messages and summaries that readers with these owner keys may read, at most
        `limit` of each; with `waiting` those that no index has yet."""
        audience = Audience(owners)
        memories = await self.store.newest(audience, now, limit, waiting=waiting)
        summaries = await self.conversations.newest(audience, now, limit, waiting=waiting)
        found = [*map(of_memory, memories), *map(of_summary, summaries)]
        lines = await self.transcript.newest_lines(audience, limit, waiting=waiting)
        return found + await self._with_windows(lines)

    async def _with_windows(self, lines: Collection[Line]) -> list[Draft]:
        ids = {line.message.id for line in lines}
        drafts = []
        for around in await self.transcript.around(lines):
            conversation = [line.message for line in around]
            for at, line in enumerate(around):
                if line.message.id in ids:
                    drafts.append(of_message(line, window_of(conversation, at)))
        return drafts

    async def bounds(self, generation: str, now: datetime) -> Bounds:
        """How many points an index of this generation has."""
        expired = ~unexpired(now)
        rows = [(memories, _OWNED, expired), (messages, kept(), false()), (_SUMMARIES, _SUMMARISED, false())]
        return Bounds(*await indexing.bounds(self.store.database, generation, rows))

    async def sample(self, generation: str, now: datetime) -> list[Draft]:
        """Some rows that an index of this generation shows, without their windows."""
        sample, database = indexing.sample, self.store.database
        valid = and_(_OWNED, unexpired(now))
        ids = await sample(database, memories, memories.c.created_at, valid, generation)
        drafts = [of_memory(memory) for memory in await self.store.where(memories.c.id.in_(ids))]
        ids = await sample(database, messages, messages.c.seq, kept(), generation)
        drafts += [of_message(line) for line in await self.transcript.lines(ids)]
        ids = await sample(database, _SUMMARIES, _SUMMARIES.c.updated_at, _SUMMARISED, generation)
        return drafts + [of_summary(one) for one in await self.conversations.of_ids(ids)]


_SUMMARIES = active_conversations
_SUMMARISED = _SUMMARIES.c.summary != ""
_OWNED = exists().where(memory_owners.c.memory_id == memories.c.id, is_active())
