"""The rows behind the hits of a search: each as a candidate to rank, and as a hit to show."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from memory.audience import Audience
from memory.index import Kind
from memory.records import Hit, Memory, Message
from memory.search.ranking import Candidate
from memory.sql.messages.message_rows import REACH
from memory.sql.messages.summaries import ActiveConversation


@dataclass(frozen=True, slots=True)
class SearchRequest:
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


@dataclass(frozen=True, slots=True)
class SearchRow:
    hit: Hit
    """As it is shown, without its score."""
    candidate: Candidate


SearchRows = Mapping[str, SearchRow]
"""By id."""


def fact_row(memory: Memory) -> SearchRow:
    hit = Hit(memory.id, "memory", memory.content, 0.0, memory.created_at, memory.message_id, memory=memory)
    candidate = Candidate(
        "memory",
        memory.content,
        memory.user_id,
        memory.created_at,
        subjects=memory.subjects,
        importance=memory.importance,
        uses=memory.uses,
        last_accessed_at=memory.last_accessed_at,
    )
    return SearchRow(hit, candidate)


def message_row(message: Message, seq: int = 0) -> SearchRow:
    text, author, at = message.text, message.author, message.sent_at
    candidate = Candidate("message", text, author, at, conversation=message.conversation_id, seq=seq)
    return SearchRow(Hit(message.id, "message", text, 0.0, at, message.id, author), candidate)


def summary_row(conversation: ActiveConversation) -> SearchRow:
    text, at = conversation.summary, conversation.updated_at
    return SearchRow(Hit(conversation.id, "summary", text, 0.0, at), Candidate("summary", text, "", at))


def without(found: SearchRows, ids: Collection[str]) -> SearchRows:
    return {id: row for id, row in found.items() if id not in ids}


def around(found: SearchRows, id: str | None, among: Collection[str]) -> Iterable[str]:
    """List a message, and those of these ids whose windows it is in."""
    if asking := found.get(id or ""):
        for other, row in found.items():
            beside = row.candidate.conversation == asking.candidate.conversation != ""
            near = beside and abs(row.candidate.seq - asking.candidate.seq) <= REACH
            if other == id or (near and other in among):
                yield other


def said_by(found: SearchRows, authors: Collection[str], names: Mapping[str, str]) -> SearchRows:
    """Keep what these people said; `names` are the tellers' names. Summaries have no author."""
    theirs = {}
    for id, row in found.items():
        user = row.candidate.author
        by = {user, names[user]} if row.hit.memory else {row.hit.author}
        if not by.isdisjoint(authors):
            theirs[id] = row
    return theirs
