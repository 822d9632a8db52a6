"""Finding what was said and learned, in passes.

1. Aliases: whoever the question names is looked for under their other names too.
2. Words and meaning, over facts, past messages and the summaries of conversations; over all but messages
   where these crowd the others out; over the time that the question names ("last week").
3. A question that names nothing ("what did we talk about?") is answered by what was said last, or then.

The index proposes, the record decides: whatever a pass brings back is looked up again in SQL for this
audience, at this moment, before anybody sees it. `memory.search.ranking` then puts it in order.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from memory.audience import GLOBAL, Audience
from memory.conversations.summaries import ActiveConversation, ConversationSummaries
from memory.errors import EmbedderUnavailable, StoreUnavailable
from memory.facts.aliases import Aliases
from memory.index import Index, Kind, Question, Rankings
from memory.index.embedders import Embedder
from memory.index.sync import IndexSync
from memory.records import Hit, Memory, Message
from memory.search.explanation import Explanation
from memory.search.general_questions import is_general
from memory.search.names import without_names
from memory.search.ranking import DEPTH, Candidate, rank
from memory.search.time_ranges import time_span
from memory.spans import note, span
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript

log = logging.getLogger("hachi.memory")

SEARCHED: frozenset[Kind] = frozenset({"memory", "message", "summary"})
MESSAGES: frozenset[Kind] = frozenset({"message"})
NEWEST_SUMMARIES = 2
"""So many tell what was talked about last; older ones are found by what they are about."""
COLD_START = 5
"""With fewer memories than this somebody is new here."""
LANES = ("dense", "words", "window_dense", "window_words")


class Recall:
    def __init__(
        self,
        store: MemoryStore,
        transcript: Transcript,
        index: Index,
        embedder: Embedder,
        indexing: IndexSync,
        clock: Callable[[], datetime],
        conversations: ConversationSummaries,
        half_life: timedelta | None = None,
    ) -> None:
        self._store = store
        self._transcript = transcript
        self._conversations = conversations
        self._index = index
        self._embedder = embedder
        self._indexing = indexing
        self._clock = clock
        self._half_life = half_life
        self._touched: set[str] = set()

    async def search(
        self,
        question: str,
        audience: Audience,
        *,
        limit: int = 10,
        subjects: Collection[str] = (),
        exclude: Collection[str] = (),
        kinds: frozenset[Kind] = SEARCHED,
        aliases: Aliases | None = None,
    ) -> list[Hit]:
        """Facts, past messages and summaries of conversations that bear on the question, best first.

        `subjects` keeps to facts with one of these tags; `exclude` are ids not to bring; `aliases` spare a
        caller who has them looking them up again. Without the embedder it goes by words alone. Raises
        IndexUnavailable, where the question names something to look for.
        """
        if not audience.keys or not question.strip() or limit < 1:
            return []
        with span("search", query=question, audience=audience.keys, limit=limit, subjects=list(subjects)):
            return await self._search(question, audience, limit, subjects, exclude, kinds, aliases)

    async def _search(
        self,
        question: str,
        audience: Audience,
        limit: int,
        subjects: Collection[str],
        exclude: Collection[str],
        kinds: frozenset[Kind],
        aliases: Aliases | None,
    ) -> list[Hit]:
        now = self._clock()
        aliases = aliases or await self.aliases(audience)
        if is_general(question) and not subjects and "message" in kinds:
            hits = await self._lately(question, audience, now, limit, exclude, kinds)
        else:
            await self._begin()
            asked = replace(
                await self._question(aliases.widened(question), audience, now),
                kinds=kinds,
                subjects=aliases.of(subject.strip().lower() for subject in subjects),
            )
            passes = await self._passes(question, asked)
            found = await self._look_up(passes, audience, now, exclude)
            lanes = _pairs(passes)
            ranked = rank(asked.text or question, lanes, found.candidates, now, half_life=self._half_life)
            hits = [found.hit(id, score) for id, score in ranked[:limit] if score > 0.0]
            note(candidates=Explanation(lanes, found.candidates, ranked, limit, frozenset(exclude)))
        note(found=[(hit.id, round(hit.score, 4)) for hit in hits])
        self._touched.update(hit.id for hit in hits if hit.kind == "memory")
        return hits

    async def aliases(self, audience: Audience) -> Aliases:
        """The names that this audience knows to be one person's."""
        return await self._store.known_aliases(audience, self._clock())

    async def recent(self, audience: Audience, limit: int) -> list[Hit]:
        """The newest facts, newest first; straight from the record, so it works without an index. Who has
        fewer than `COLD_START` of their own also gets what everybody may know."""
        with span("search", "newest", audience=audience.keys, limit=limit):
            hits = await self._newest(audience, limit)
            note(found=[(hit.id, 1.0) for hit in hits])
            return hits

    async def _newest(self, audience: Audience, limit: int) -> list[Hit]:
        now = self._clock()
        memories = await self._store.newest(Audience(audience.keys - {GLOBAL}), now, limit)
        if len(memories) < COLD_START and GLOBAL in audience.keys:
            own = {memory.id for memory in memories}
            common = await self._store.newest(Audience(frozenset({GLOBAL})), now, limit)
            memories = [*memories, *(memory for memory in common if memory.id not in own)][:limit]
        self._touched.update(memory.id for memory in memories)
        found = _Found({memory.id: memory for memory in memories}, {}, {})
        return [found.hit(memory.id, 1.0) for memory in memories]

    async def memory(self, id: str, audience: Audience) -> Memory:
        """One memory, by its id or the beginning of it. Raises NotFound."""
        return await self._store.get(id, audience, self._clock())

    async def note_uses(self) -> None:
        """Write down which memories were recalled since last time: kept back from the search, which is to
        be fast."""
        touched, self._touched = self._touched, set()
        if touched:
            try:
                await self._store.touch(sorted(touched), self._clock())
            except StoreUnavailable:
                self._touched |= touched
                raise

    async def _begin(self) -> None:
        """What an earlier process left to be indexed is found too."""
        if not self._indexing.begun:
            try:
                await self._indexing.catch_up()
            except EmbedderUnavailable as error:
                log.warning("searching what has been indexed so far: %s", error)

    async def _question(self, text: str, audience: Audience, now: datetime) -> Question:
        authors = await self._transcript.authors(audience)
        try:
            [vector] = await self._embedder.embed([without_names(text, authors)])
        except EmbedderUnavailable as error:
            log.warning("searching by words alone: %s", error)
            vector = None
        return Question(audience=audience.keys, now=now, dense=vector, text=text, limit=DEPTH)

    async def _passes(self, question: str, asked: Question) -> list[Rankings]:
        """The first pass, whose scores count; then what it could not hold."""
        first = await self._index.search(asked)
        passes = [first]
        crowded = len(first.words) == DEPTH or len(first.dense) == DEPTH
        kinds = {hit.kind for name in LANES for hit in getattr(first, name)}
        if crowded and kinds > MESSAGES:
            passes.append(await self._index.search(replace(asked, kinds=asked.kinds - MESSAGES)))
        if crowded and (span := time_span(question, asked.now)):
            passes.append(await self._index.search(replace(asked, since=span[0], until=span[1])))
        return passes

    async def _lately(
        self,
        question: str,
        audience: Audience,
        now: datetime,
        limit: int,
        exclude: Collection[str],
        kinds: frozenset[Kind],
    ) -> list[Hit]:
        """What was said last, or in the time the question names, newest first: summaries before all else, as
        they say it in short; facts rather than the messages they came from; no questions like this one."""
        since, until = time_span(question, now) or (None, None)
        memories = await self._store.newest(audience, now, limit + len(exclude), since=since, until=until)
        memories = [memory for memory in memories if memory.id not in exclude]
        known = {memory.message_id for memory in memories}
        messages = [
            message
            for message in await self._transcript.newest(
                audience, 3 * limit, since=since, until=until, exclude=exclude
            )
            if message.id not in known and not is_general(message.text)
        ][:limit]
        summaries = []
        if "summary" in kinds:
            summaries = await self._conversations.newest(
                audience, NEWEST_SUMMARIES, since=since, until=until, exclude=exclude
            )
        found = _Found({m.id: m for m in memories}, {m.id: m for m in messages}, {s.id: s for s in summaries})
        order = sorted(
            found.candidates.items(), key=lambda i: (i[1].kind == "summary", i[1].created_at), reverse=True
        )
        return [found.hit(id, 1.0 - place / len(order)) for place, (id, _) in enumerate(order)][:limit]

    async def _look_up(
        self, lanes: Sequence[Rankings], audience: Audience, now: datetime, exclude: Collection[str]
    ) -> "_Found":
        hits = {hit.id: hit.kind for name in LANES for found in lanes for hit in getattr(found, name)}
        ids: dict[Kind, list[str]] = {kind: [] for kind in SEARCHED}
        for id, kind in hits.items():
            if id not in exclude:
                ids[kind].append(id)
        return _Found(
            await self._store.by_ids(ids["memory"], audience, now),
            await self._transcript.by_ids(ids["message"], audience),
            await self._conversations.by_ids(ids["summary"], audience),
        )


@dataclass(frozen=True)
class _Found:
    """What the record says of what the index found."""

    memories: Mapping[str, Memory]
    messages: Mapping[str, Message]
    summaries: Mapping[str, ActiveConversation]

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        return {
            **{id: _fact(memory) for id, memory in self.memories.items()},
            **{id: _said(message) for id, message in self.messages.items()},
            **{id: _digest(conversation) for id, conversation in self.summaries.items()},
        }

    def hit(self, id: str, score: float) -> Hit:
        if memory := self.memories.get(id):
            return Hit(
                id, "memory", memory.content, score, memory.created_at, memory.message_id, None, memory
            )
        if digest := self.summaries.get(id):
            return Hit(id, "summary", digest.summary, score, digest.updated_at)
        message = self.messages[id]
        return Hit(id, "message", message.text, score, message.sent_at, message.id, message.author)


def _pairs(passes: Sequence[Rankings]) -> dict[str, list[tuple[str, float]]]:
    """Each lane over all passes: one question's raw scores compare, so what a later pass adds goes below."""
    lanes: dict[str, list[tuple[str, float]]] = {}
    for name in LANES:
        scores = {hit.id: hit.score for found in reversed(passes) for hit in getattr(found, name)}
        lanes[name] = sorted(scores.items(), key=lambda pair: -pair[1])
    return lanes


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


def _said(message: Message) -> Candidate:
    ours = message.role == "assistant"
    return Candidate("message", message.text, message.author, message.sent_at, ours=ours)


def _digest(conversation: ActiveConversation) -> Candidate:
    return Candidate("summary", conversation.summary, "", conversation.updated_at, ours=True)
