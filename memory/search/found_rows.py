"""The rows behind the hits of a search: as candidates to rank, and as hits to show."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from memory.audience import Audience
from memory.index import Kind
from memory.records import Hit, Memory, Message
from memory.search.ranking import Candidate
from memory.sql.messages.message_rows import REACH
from memory.sql.messages.summaries import ActiveConversation


@dataclass(frozen=True, slots=True)
class Wanted:
    question: str
    audience: Audience
    now: datetime
    limit: int
    exclude: frozenset[str]
    kinds: frozenset[Kind]
    since: datetime | None
    until: datetime | None
    author: str
    """Whose statements alone are wanted; empty for everybody's."""
    by_itself: bool
    """Whether the exchange around a message does not count."""
    asking: str | None
    """The id of the message that asks."""


@dataclass(frozen=True)
class FoundRows:
    """The rows of the index's hits, by id."""

    memories: Mapping[str, Memory]
    messages: Mapping[str, Message]
    summaries: Mapping[str, ActiveConversation]
    seqs: Mapping[str, int] = field(default_factory=dict)
    """The positions of the messages."""

    @property
    def ids(self) -> frozenset[str]:
        return frozenset((*self.memories, *self.messages, *self.summaries))

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        return {
            **{id: _fact(memory) for id, memory in self.memories.items()},
            **{id: _message(message, self.seqs.get(id, 0)) for id, message in self.messages.items()},
            **{id: _summary(conversation) for id, conversation in self.summaries.items()},
        }

    def around(self, id: str | None, among: Collection[str]) -> set[str]:
        """The message, and those of these ids whose windows it is in."""
        asking = self.messages.get(id or "")
        if asking is None:
            return set()
        near = range(self.seqs[asking.id] - REACH, self.seqs[asking.id] + REACH + 1)
        talk = asking.conversation_id
        return {
            one.id
            for one in self.messages.values()
            if one.conversation_id == talk
            and self.seqs[one.id] in near
            and (one.id in among or one is asking)
        }

    def without(self, ids: Collection[str]) -> "FoundRows":
        return replace(
            self,
            memories={id: m for id, m in self.memories.items() if id not in ids},
            messages={id: m for id, m in self.messages.items() if id not in ids},
            summaries={id: s for id, s in self.summaries.items() if id not in ids},
        )

    def by(self, authors: Collection[str], names: Mapping[str, str]) -> "FoundRows":
        """What these people said; `names` are the tellers' names. Summaries have no author."""
        return replace(
            self,
            memories={id: m for id, m in self.memories.items() if {m.user_id, names[m.user_id]} & {*authors}},
            messages={id: m for id, m in self.messages.items() if m.author in authors},
            summaries={},
        )

    def hit(self, id: str, score: float) -> Hit:
        if memory := self.memories.get(id):
            return memory_hit(memory, score)
        if conversation := self.summaries.get(id):
            return Hit(id, "summary", conversation.summary, score, conversation.updated_at)
        message = self.messages[id]
        return Hit(id, "message", message.text, score, message.sent_at, message.id, message.author)


def memory_hit(memory: Memory, score: float) -> Hit:
    return Hit(
        memory.id,
        "memory",
        memory.content,
        score,
        memory.created_at,
        message_id=memory.message_id,
        memory=memory,
    )


def _fact(memory: Memory) -> Candidate:
    return Candidate(
        kind="memory",
        text=memory.content,
        author=memory.user_id,
        created_at=memory.created_at,
        subjects=memory.subjects,
        importance=memory.importance,
        uses=memory.uses,
        last_accessed_at=memory.last_accessed_at,
    )


def _message(message: Message, seq: int) -> Candidate:
    return Candidate(
        kind="message",
        text=message.text,
        author=message.author,
        created_at=message.sent_at,
        conversation=message.conversation_id,
        seq=seq,
    )


def _summary(conversation: ActiveConversation) -> Candidate:
    return Candidate("summary", conversation.summary, "", conversation.updated_at)
