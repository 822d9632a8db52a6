"""Finds known facts that are similar to a candidate, and how the candidate relates to each."""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import Statement, Verdict, compare
from memory.index import Index, Question
from memory.index.embedders import Embedder
from memory.records import Draft, Memory, Source
from memory.sql.engine import Database
from memory.sql.memories import CORRECTED, MemoryStore
from memory.text.names import Aliases

log = logging.getLogger("hachi.memory")

NEAR = 8
"""A candidate is compared with this many memories nearest by meaning, and this many by words."""

Near = list[tuple[Memory, Verdict]]

_ORDER = ("same", "subsumed", "contradiction", "subsumes", "outdated", "unclear", "different")

TAKES_ITS_PLACE = Verdict("contradiction", "a model judged that it takes its place")
SAID_BEFORE = Verdict("outdated", "said before what is known: a model judged that this takes its place")


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two statements for which words and vectors do not show whether the new one replaces the old one."""

    old: str
    old_said_at: datetime
    new: str
    new_said_at: datetime


Judge = Callable[[Sequence[Doubt]], Awaitable[Sequence[bool]]]
"""Takes all doubts of a turn. Returns for each whether the new statement replaces the old. May raise."""


class SimilarFacts:
    def __init__(
        self, database: Database, store: MemoryStore, index: Index, embedder: Embedder, judge: Judge | None
    ) -> None:
        self._database = database
        self._store = store
        self._index = index
        self._embedder = embedder
        self.judge = judge
        """A model that rules on doubts. Without one, both statements are kept."""
        self.judged: frozenset[Source] = frozenset(get_args(Source))
        """The sources of candidates that the judge rules on at once."""

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """A vector for each text; None for each if the embedder is unavailable."""
        try:
            return list(await self._embedder.embed(texts)) if texts else []
        except EmbedderUnavailable as error:
            log.warning("remembering without the embedder: %s", error)
            return [None] * len(texts)

    async def near(
        self, connection: AsyncConnection, candidate: CandidateFact, owners: Collection[str]
    ) -> Near:
        """These owners' memories similar to the candidate, with verdicts; the decisive ones first."""
        cosine, ids = await self._nearest(candidate, owners)
        if candidate.draft.replaces:
            ids.append(candidate.draft.replaces)
        memories = await self._store.candidates(connection, ids, owners, candidate.now)
        unknown = [memory for memory in memories if memory.id not in cosine]
        vectors = await self.embed([memory.content for memory in unknown])
        for memory, vector in zip(unknown, vectors, strict=True):
            both = vector is not None and candidate.vector is not None
            cosine[memory.id] = float(vector @ candidate.vector) if both else 0.0
        # Only names that the people present know, since they see the reason.
        aliases = await self._store.aliases(connection, candidate.origin.audience.keys, candidate.now)
        weighed = [(m, self._weigh(candidate, m, cosine[m.id], aliases)) for m in memories]
        return sorted(weighed, key=lambda pair: (_ORDER.index(pair[1].relation), -cosine[pair[0].id]))

    def echoed(self, candidate: CandidateFact) -> str | None:
        """The text recalled in this turn that the candidate only repeats. None if it repeats none, or the
        message itself states the fact."""
        if not candidate.origin.recalled or candidate.said:
            return None
        for hit in candidate.origin.recalled:
            subjects = hit.memory.subjects if hit.memory else ()
            if self._repeats(candidate, hit.content, subjects):
                return hit.content
        return None

    def says_again(self, candidate: CandidateFact, memory: Memory, withdrawn: datetime) -> bool:
        """Whether the candidate repeats a memory that was made private at `withdrawn`, or adds to it with a
        statement from before then. False if the message itself has stated the fact since."""
        before = candidate.origin.said_at < withdrawn
        if candidate.said and not before:
            return False
        if self._repeats(candidate, memory.content, memory.subjects):
            return True
        known = Statement(memory.content, memory.subjects, candidate.origin.said_at)
        return before and self._relation(known, _statement(candidate)) == "subsumes"

    def _repeats(self, candidate: CandidateFact, text: str, subjects: tuple[str, ...]) -> bool:
        """Whether the text contains all that the candidate says, whichever is older."""
        new = _statement(candidate)
        known = Statement(text, subjects, new.said_at)
        return self._relation(known, new) in ("same", "subsumed") or self._relation(new, known) == "subsumes"

    def _relation(self, old: Statement, new: Statement) -> str:
        return compare(old, new, 0.0, self._embedder.thresholds).relation

    async def ask_judge(self, candidates: Sequence[CandidateFact]) -> None:
        """Ask the judge about all doubtful candidates in one call, and store its rulings in them. Without a
        judge, or if the judge fails, both statements are kept."""
        candidates = [fact for fact in candidates if fact.origin.source in self.judged]
        if self.judge is None or not candidates:
            return
        async with self._database.read() as connection:
            doubts = [(fact, m) for fact in candidates for m in await self._unclear(connection, fact)]
        if not doubts:
            return
        try:
            rulings = await self.judge([_doubt(candidate, memory) for candidate, memory in doubts])
        except Exception as error:
            log.warning("the judge failed, both facts are kept: %s", error)
            return
        for (candidate, memory), replaces in zip(doubts, rulings, strict=False):
            if replaces:
                candidate.rulings[memory.id] = TAKES_ITS_PLACE if _newer(candidate, memory) else SAID_BEFORE

    async def doubts_about(self, kept: Sequence[Memory], now: datetime) -> list[tuple[Memory, Memory]]:
        """Pairs (older, newer) in which the newer one, of `kept`, may replace the older one."""
        vectors = await self.embed([memory.content for memory in kept])
        doubts: list[tuple[Memory, Memory]] = []
        async with self._database.read() as connection:
            for memory, vector in zip(kept, vectors, strict=True):
                candidate = _as_candidate(memory, vector, now)
                unclear = await self._unclear(connection, candidate)
                doubts += [(old, memory) for old in unclear if old.id != memory.id and _newer(candidate, old)]
        return doubts

    async def _unclear(self, connection: AsyncConnection, candidate: CandidateFact) -> list[Memory]:
        """The memories that the people present may read and that the candidate may or may not replace."""
        near = await self.near(connection, candidate, candidate.origin.owners)
        return [memory for memory, v in near if v.relation == "unclear" and candidate.sees(memory)]

    async def _nearest(
        self, candidate: CandidateFact, owners: Collection[str]
    ) -> tuple[dict[str, float], list[str]]:
        """The cosines that the index knows, by id, and the ids of all memories found."""
        question = Question(
            audience=frozenset(owners),
            now=candidate.now,
            dense=candidate.vector,
            text=candidate.draft.content,
            kinds=frozenset({"memory"}),
            limit=NEAR,
        )
        try:
            found = await self._index.search(question)
        except IndexUnavailable as error:
            log.warning("remembering without the index: %s", error)
            return {}, []
        cosine = {hit.id: hit.score for hit in found.dense}
        return cosine, [*cosine, *(hit.id for hit in found.words)]

    def _weigh(self, candidate: CandidateFact, old: Memory, cosine: float, aliases: Aliases) -> Verdict:
        if candidate.corrects(old):
            return Verdict("contradiction", CORRECTED)
        draft, said_at = candidate.draft, candidate.origin.said_at
        verdict = compare(
            Statement(aliases.canonical(old.content), old.subjects, old.created_at),
            Statement(aliases.canonical(draft.content), draft.subjects, said_at),
            cosine,
            self._embedder.thresholds,
        )
        if verdict.relation == "unclear":
            verdict = candidate.rulings.get(old.id, verdict)
        # A temporary fact does not end a permanent one. It replaces a fact that it refines only if the people
        # present may see when that one expires, and it inherits the expiry.
        ends = verdict.relation == "contradiction" and old.expires_at is None
        refines = verdict.relation == "subsumes" and not candidate.sees(old)
        until = candidate.expires_at
        if until is not None and (ends or (refines and (old.expires_at is None or old.expires_at > until))):
            return Verdict("different", "holds for a time only")
        return verdict


def _statement(candidate: CandidateFact) -> Statement:
    return Statement(candidate.draft.content, candidate.draft.subjects, candidate.origin.said_at)


def _newer(candidate: CandidateFact, memory: Memory) -> bool:
    return candidate.origin.said_at >= memory.created_at


def _doubt(candidate: CandidateFact, memory: Memory) -> Doubt:
    """Both statements, in the order in which people stated them."""
    proposed = (candidate.draft.content, candidate.origin.said_at)
    known = (memory.content, memory.created_at)
    return Doubt(*known, *proposed) if _newer(candidate, memory) else Doubt(*proposed, *known)


def _as_candidate(memory: Memory, vector: Any, now: datetime) -> CandidateFact:
    draft = Draft(memory.content, memory.subjects, type=memory.type, importance=memory.importance)
    origin = Provenance(memory.user_id, memory.created_at, Place.parse(memory.place))
    return CandidateFact(draft, origin, vector, now)
