"""Search facts, messages and summaries.

A person whom the question names is searched for under their other names too. One search by words and vectors
covers all kinds; further ones add rows beyond its limits. Without a question the newest rows are listed.
Replies are no evidence: only a search for their `author` returns them.

The index proposes, SQL decides: the row of every hit is read again for this audience, at this moment, and
`memory.search.ranking` orders them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import zip_longest
from typing import Any

from memory.audience import GLOBAL, Audience, user_key
from memory.errors import StoreUnavailable
from memory.index import DENSE, KINDS, LANES, Kind, Question, Rankings
from memory.index import bm25 as words
from memory.index.embedders import Embedder, embed_if_possible
from memory.index.indexing import Indexing
from memory.process.spans import note, span
from memory.records import Hit, Memory
from memory.search.explanation import Explanation
from memory.search.ranking import DEPTH, ENTRY_OF, rank
from memory.search.search_rows import (
    SearchRequest,
    SearchRow,
    SearchRows,
    around,
    by_author,
    fact_row,
    message_row,
    summary_row,
)
from memory.search.time_ranges import time_span
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import Line
from memory.sql.messages.speakers import HACHI
from memory.sql.messages.summaries import ConversationSummaries
from memory.sql.messages.transcript import Transcript
from memory.text import tags
from memory.text.names import Aliases, called, named, spelled, tags_in, without_names

FACTS: frozenset[Kind] = frozenset({"memory"})
MESSAGES: frozenset[Kind] = frozenset({"message"})
BY_AUTHOR = 4 * DEPTH
"""Hits to request from each lane in a search for one author."""
BESIDE_REPLIES = 2 * DEPTH
"""Hits to request from each lane if replies, which are left out, are among them."""
NEWEST_SUMMARIES = 2
"""The most summaries in a list of the newest. Older summaries are found by their words."""
WINDOW_WORDS = 0.5
"""The score of an exchange with all words of the question, relative to a text with all of them."""
FITS = 0.3
"""The cosine of a text that fits, as a position between the embedder's recall and dedupe thresholds."""
COLD_START = 5
"""An audience with fewer own facts counts as new."""

NO_ALIASES = Aliases()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search."""

    hits: Sequence[Hit]
    """All hits, best first; in a list of the newest, at most the limit."""
    best: float = 0.0
    """The best score, including excluded rows."""
    excluded_matches: frozenset[str] = frozenset()
    """The excluded ids that match too."""
    partial: bool = False
    """Whether older rows, or rows that only match by meaning, may be missing."""
    aliases: Aliases = NO_ALIASES
    """The other names that were searched for too."""


@dataclass(eq=False)
class Recall:
    store: MemoryStore
    transcript: Transcript
    embedder: Embedder
    indexing: Indexing
    clock: Callable[[], datetime]
    conversations: ConversationSummaries
    half_life: timedelta | None = None
    count: Callable[[str, Mapping[str, int]], None] = lambda *_: None
    _recalled: set[str] = field(default_factory=set, init=False)
    """The ids of memories that were recalled since the last `note_uses`."""

    async def search(
        self, question: str, audience: Audience, *, limit: int = 10, **narrowed: Any
    ) -> list[Hit]:
        """Return the first `limit` hits of `look`, which describes the parameters."""
        return [*(await self.look(question, audience, limit=limit, **narrowed)).hits[:limit]]

    async def look(
        self,
        question: str,
        audience: Audience,
        *,
        limit: int = 10,
        subjects: Collection[str] = (),
        exclude: Collection[str] = (),
        kinds: frozenset[Kind] = KINDS,
        since: datetime | None = None,
        until: datetime | None = None,
        author: str = "",
        by_itself: bool = False,
        asking: str | None = None,
        zone: tzinfo = UTC,
    ) -> SearchResult:
        """Find facts, messages and summaries that match the question, best first; without one the newest.

        `subjects` selects facts with one of these tags, `author` what a person of this name, or the
        companion, said, `since` and `until` when; `exclude` lists ids to leave out of what was ranked,
        `asking` is the message that asks; with `by_itself` a message is not found by the exchange around it;
        `zone` is that of a named day. The first `limit` hits count as recalled.
        """
        if not audience.keys or limit < 1:
            return SearchResult(())
        with span("search", query=question, audience=audience.keys, limit=limit, subjects=list(subjects)):
            now = self.clock().astimezone(zone)
            narrowed = (frozenset(exclude), kinds, since, until, author, by_itself, asking)
            wanted = SearchRequest(question, audience, now, limit, *narrowed)
            if not question.strip():
                aliases = await self.aliases(audience)
                found = SearchResult(await self._newest(wanted, aliases.of(tags(subjects))))
            else:
                found = await self._matching(wanted, subjects)
                if not (found.hits or author or subjects):
                    authors = called(question, await self.transcript.speakers.authors(audience))
                    found = replace(found, hits=await self._newest_of(authors - {HACHI}, wanted))
            hits = found.hits[:limit]
            note(found=[(hit.id, round(hit.score, 4)) for hit in hits], best=round(found.best, 4))
            self._recalled.update(hit.id for hit in hits if hit.kind == "memory")
            self.count("", {"retrieved": len(hits)})
            return found

    async def aliases(self, audience: Audience) -> Aliases:
        """Return the groups of names of one person that this audience may know."""
        return await self.store.aliases(audience.keys, self.clock())

    async def recent(self, audience: Audience, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        """Return the newest facts from SQL alone, without those of `exclude`. Global facts are added if the
        audience has fewer than `COLD_START` own ones."""
        with span("search", "newest", audience=audience.keys, limit=limit):
            now = self.clock()
            most = limit + len(exclude)
            memories = await self.store.newest(Audience(audience.keys - {GLOBAL}), now, most)
            if len(memories) < COLD_START and GLOBAL in audience.keys:
                own = {memory.id for memory in memories}
                common = await self.store.newest(Audience(frozenset({GLOBAL})), now, most)
                memories = [*memories, *(memory for memory in common if memory.id not in own)]
            memories = [memory for memory in memories if memory.id not in exclude][:limit]
            self._recalled.update(memory.id for memory in memories)
            self.count("", {"retrieved": len(memories)})
            note(found=[(memory.id, 1.0) for memory in memories])
            return [fact_row(memory).hit(1.0, audience) for memory in memories]

    async def around(self, hits: Sequence[Hit], audience: Audience) -> dict[str, list[Line]]:
        """Return each found message with the messages around it that this audience may read."""
        found = {hit.id for hit in hits if hit.kind == "message"}
        around = await self.transcript.neighbours(found, audience)
        return {
            id: [line for line in lines if line.message.role == "user" or line.message.id in found]
            for id, lines in around.items()
        }

    async def tellers(self, hits: Sequence[Hit], audience: Audience) -> dict[str, str]:
        """Return who stated these facts, by fact id, without the reader's own facts."""
        users = {hit.id: hit.memory.user_id for hit in hits if hit.memory}
        users = {id: user for id, user in users.items() if user_key(user) not in audience.keys}
        names = await self.transcript.speakers.names(set(users.values()), audience)
        return {id: names[user] for id, user in users.items()}

    async def memory(self, id: str, audience: Audience) -> Memory:
        """Return the memory with this id or prefix of an id. Raises NotFound."""
        return await self.store.get(id, audience, self.clock())

    async def note_uses(self) -> None:
        """Store which memories were recalled since the last call. A search itself writes nothing."""
        recalled, self._recalled = self._recalled, set()
        if recalled:
            try:
                await self.store.touch(sorted(recalled), self.clock())
            except StoreUnavailable:
                self._recalled |= recalled
                raise

    async def _matching(self, wanted: SearchRequest, subjects: Collection[str]) -> SearchResult:
        aliases = await self.aliases(wanted.audience)
        text = aliases.widened(wanted.question)
        authors = await self.transcript.speakers.authors(wanted.audience)
        topic = _topic(text, authors)
        [vector] = await embed_if_possible(self.embedder, [topic])
        depth = BESIDE_REPLIES if HACHI in authors else DEPTH
        asked = Question(
            audience=wanted.audience.keys,
            now=wanted.now,
            dense=vector,
            text=topic,
            kinds=wanted.kinds,
            subjects=aliases.of(tags(subjects)),
            since=wanted.since,
            until=wanted.until,
            limit=BY_AUTHOR if wanted.author else depth,
        )
        named = tags_in(text)
        further = _further(wanted.question, asked, named, among_messages=bool(authors))
        rankings = await self.indexing.search(asked, *further)
        rows, replies = await self._rows(rankings, wanted)
        unranked = {*replies, *around(rows, wanted.asking, wanted.exclude)}
        lanes = {
            name: [(id, score) for id, score, _ in getattr(rankings, name) if id not in unranked]
            for name in LANES
        }
        rows = {id: row for id, row in rows.items() if id not in unranked}
        if wanted.by_itself:
            lanes |= {window: lanes[entry] for window, entry in ENTRY_OF.items()}
        shape: dict[str, Any] = {
            "full": self._full(rankings.rarity),
            "half_life": self.half_life,
            "answered": frozenset(replies.values()),
        }
        candidates = {id: row.candidate for id, row in rows.items()}
        ranked = rank(text, lanes, candidates, wanted.now, tags=named, **shape)
        best = max((score for _, score in ranked), default=0.0)
        excluded = wanted.exclude.intersection(id for id, score in ranked if score > 0.0)
        ranked = [one for one in ranked if one[0] not in wanted.exclude]
        candidates = {id: one for id, one in candidates.items() if id not in wanted.exclude}
        note(candidates=Explanation(lanes, candidates, ranked, wanted.limit, wanted.exclude))
        hits = [rows[id].hit(score, wanted.audience) for id, score in ranked if score > 0.0]
        return SearchResult(hits, best, excluded, rankings.partial, aliases)

    def _full(self, rarity: float) -> dict[str, float]:
        """Return the score of a text that fits the question, by lane."""
        thresholds = self.embedder.thresholds
        cosine = thresholds.recall + FITS * (thresholds.dedupe - thresholds.recall)
        words = {"words": rarity, "window_words": WINDOW_WORDS * rarity}
        return words | dict.fromkeys(DENSE, cosine)

    async def _newest(self, wanted: SearchRequest, subjects: Collection[str]) -> list[Hit]:
        """Return the newest summaries, then statements; with `subjects`, the newest facts with one of these
        tags. Leaves out messages of listed facts."""
        exclude, limit = wanted.exclude, wanted.limit
        times: dict[str, Any] = {"since": wanted.since, "until": wanted.until}
        found, evidence = dict[str, SearchRow](), set[str | None]()
        if "memory" in wanted.kinds:
            most = None if wanted.author else limit + len(exclude)
            listed = await self.store.newest(wanted.audience, wanted.now, most, subjects, **times)
            found |= {one.id: fact_row(one) for one in listed if one.id not in exclude}
            evidence = {one.message_id for one in listed if one.id in found}
        if "message" in wanted.kinds and not subjects:
            most = BY_AUTHOR * limit if wanted.author else 2 * limit
            messages = await self.transcript.newest(wanted.audience, most, exclude=exclude, **times)
            for one in messages:
                if one.id not in evidence and not _is_reply(one.role, wanted):
                    talk, author, told = one.conversation_id, one.author, one.text
                    found[one.id] = message_row(one.id, 0, talk, author, told, one.sent_at)
        if "summary" in wanted.kinds and not subjects:
            summaries = await self.conversations.newest(
                wanted.audience.without_places, wanted.now, NEWEST_SUMMARIES, exclude=exclude, **times
            )
            found |= {one.id: summary_row(one) for one in summaries}
        hits = [row.hit(1.0, wanted.audience) for row in (await self._by_author(found, wanted)).values()]
        hits.sort(key=lambda hit: (hit.kind == "summary", hit.created_at), reverse=True)
        return hits[:limit]

    async def _newest_of(self, authors: Collection[str], wanted: SearchRequest) -> list[Hit]:
        """Return the newest statements of the people whom the question names, if nothing matched it."""
        listed = [await self._newest(replace(wanted, author=author), ()) for author in sorted(authors)]
        return [hit for hits in zip_longest(*listed) for hit in hits if hit][: wanted.limit]

    async def _rows(self, rankings: Rankings, wanted: SearchRequest) -> tuple[SearchRows, Mapping[str, str]]:
        """Return the rows of the index's hits, and the conversations of the replies among them by their ids.
        Replies are no evidence."""
        ids: dict[Kind, set[str]] = {kind: set() for kind in KINDS}
        for name in LANES:
            for id, _, kind in getattr(rankings, name):
                ids[kind].add(id)
        memories = await self.store.by_ids(ids["memory"], wanted.audience, wanted.now)
        messages = await self.transcript.rows(ids["message"], wanted.audience)
        summaries = await self.conversations.by_ids(
            ids["summary"], wanted.audience.without_places, wanted.now
        )
        found, replies = {id: fact_row(memory) for id, memory in memories.items()}, dict[str, str]()
        for id, seq, conversation, role, *said in messages:
            if _is_reply(role, wanted):
                replies[id] = conversation
            else:
                found[id] = message_row(id, seq, conversation, *said)
        found |= {id: summary_row(summary) for id, summary in summaries.items()}
        return await self._by_author(found, wanted), replies

    async def _by_author(self, found: SearchRows, wanted: SearchRequest) -> SearchRows:
        """Return the rows of the wanted author. An exact match of the name takes precedence."""
        if not wanted.author:
            return found
        tellers = {row.candidate.author for row in found.values() if row.candidate.kind == "memory"}
        names = await self.transcript.speakers.names(tellers, wanted.audience)
        authors = {*await self.transcript.speakers.authors(wanted.audience), *names, *names.values()}
        exact = spelled(wanted.author)
        exactly = {author for author in authors if spelled(author) == exact}
        return by_author(found, exactly or named(wanted.author, authors), names)


def _topic(question: str, authors: Collection[str]) -> str:
    """Remove authors' names from a question, because they select whose words to find, not which. A question
    with only the name is unchanged."""
    rest = without_names(question, called(question, authors))
    return rest if words.query(rest) else question


def _further(
    question: str, asked: Question, named: frozenset[str], *, among_messages: bool
) -> list[Question]:
    """Return further questions for rows that a full list may have cut off: facts and summaries, facts with a
    tag in the question, and rows of a named date."""
    beside = among_messages and asked.kinds > MESSAGES
    further = [replace(asked, kinds=asked.kinds - MESSAGES)] if beside else []
    if "memory" in asked.kinds and not asked.subjects:
        further.append(replace(asked, kinds=FACTS, subjects=named))
    if not (asked.since or asked.until) and (times := time_span(question, asked.now)):
        further.append(replace(asked, since=times[0], until=times[1]))
    return further


def _is_reply(role: str, wanted: SearchRequest) -> bool:
    """Return whether a message is a reply and the search is not for one author."""
    return role == "assistant" and not wanted.author
