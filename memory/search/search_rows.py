"""The rows behind the hits of a search: each as a candidate to rank, and as a hit to show."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from memory.audience import Audience
from memory.index import Kind
from memory.records import Hit, Memory
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
    """The only author whose rows are wanted; empty for all."""
    by_itself: bool
    """Whether the windows of messages are ignored."""
    asking: str | None
    """The id of the message that asks."""


class SearchRow(NamedTuple):
    candidate: Candidate
    source: Any
    """The memory or the conversation; of a message its id."""

    def hit(self, score: float, audience: Audience) -> Hit:
        (kind, text, author, at, *_), source = self
        if kind == "message":
            return Hit(source, kind, text, score, at, source, author)
        if kind == "summary":
            return Hit(source.id, kind, text, score, at, origin=audience.origin([source.owner]))
        origin = audience.origin(source.owners)
        return Hit(source.id, kind, text, score, at, source.message_id, memory=source, origin=origin)


SearchRows = Mapping[str, SearchRow]
"""By id."""


def fact_row(memory: Memory) -> SearchRow:
    said = (memory.content, memory.user_id, memory.created_at, memory.subjects)
    recalled = (memory.importance, memory.uses, memory.last_accessed_at)
    return SearchRow(Candidate("memory", *said, *recalled), memory)


def message_row(id: str, seq: int, conversation: str, author: str, text: str, sent_at: datetime) -> SearchRow:
    return SearchRow(Candidate("message", text, author, sent_at, conversation=conversation, seq=seq), id)


def summary_row(conversation: ActiveConversation) -> SearchRow:
    return SearchRow(Candidate("summary", conversation.summary, "", conversation.updated_at), conversation)


def around(rows: SearchRows, id: str | None, among: Collection[str]) -> Iterable[str]:
    """Yield a message and, of the ids `among`, those in whose windows it is."""
    if asking := rows.get(id or ""):
        for other, row in rows.items():
            beside = row.candidate.conversation == asking.candidate.conversation != ""
            near = beside and abs(row.candidate.seq - asking.candidate.seq) <= REACH
            if other == id or (near and other in among):
                yield other


def by_author(rows: SearchRows, authors: Collection[str], names: Mapping[str, str]) -> SearchRows:
    """Return the rows of these authors. `names` are those of the facts' users. Summaries have no author."""
    theirs = {}
    for id, row in rows.items():
        author = row.candidate.author
        by = {author, names[author]} if row.candidate.kind == "memory" else {author}
        if not by.isdisjoint(authors):
            theirs[id] = row
    return theirs
