"""Search for stored facts that are similar to a candidate, and ask a judge about them."""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import SAME, Verdict, alike, near, only_recalled, spoken_sentences
from memory.facts.decide import RULINGS, Case, stated_before, with_verdicts
from memory.facts.refusal import states
from memory.index import Question, Rankings
from memory.index.bm25 import stems
from memory.index.embedders import Embedder, embed_if_possible
from memory.records import Memory, NewMemory
from memory.sql.changes import Moment
from memory.sql.engine import Database
from memory.sql.memories.store import MemoryStore, tellers
from memory.sql.tables import speakers
from memory.text.names import Aliases, fold, without_names

log = logging.getLogger("hachi.memory")

_WORD = re.compile(r"[^\W\d_]+")
RULED_OLDER = "said before what is known: a model judged that this takes its place"
NEAR = 8
"""A candidate is compared with this many memories by vectors, and this many by words."""

OFFERED = 6
"""A judge rules on one candidate and at most this many memories."""


@dataclass(frozen=True, slots=True)
class SimilarSearch:
    """The result of the search for similar facts, before the transaction that decides on the candidate."""

    ids: tuple[str, ...]
    """The ids of the owners' memories to compare the candidate with."""
    cosine: Mapping[str, float]
    """The cosine similarity, by id, of the memories nearest by vectors."""
    since: Moment | None
    """The state of the database that was searched; None without a search."""
    stated: bool = False
    """Whether the message states the candidate, in its own words or others."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two facts about which a model is asked: does the newer one supersede the older one?"""

    old: str
    old_stated_at: datetime
    new: str
    new_stated_at: datetime


Judge = Callable[[Sequence[Doubt]], Awaitable[Sequence[bool]]]
"""A function that returns for each doubt of a turn whether the newer fact supersedes the older. May raise."""


Search = Callable[..., Awaitable[Rankings]]
"""A function that searches the index: see `Indexing.search`."""


@dataclass(eq=False)
class SimilarFacts:
    database: Database
    store: MemoryStore
    search_index: Search
    embedder: Embedder
    judge: Judge | None
    """A model that rules on doubts. Without one, both facts stay."""
    consolidated: bool = False
    """Whether a consolidation rules on the facts of a turn. Then the judge is not asked about them."""

    async def search(self, candidate: CandidateFact) -> SimilarSearch:
        """Search for the owners' memories to compare the candidate with, before the transaction."""
        content, origin = candidate.proposed.content, candidate.origin
        rankings = await self._search(content, candidate.vector, origin.owners, candidate.now, fresh=False)
        ids = (*(hit.id for hit in (*rankings.dense, *rankings.words)), *candidate.rulings)
        cosine = {hit.id: hit.score for hit in rankings.dense}
        stated = not (origin.live and origin.said) or states(origin.said, content)
        return SimilarSearch(ids, cosine, rankings.since, stated)

    async def states(self, candidate: CandidateFact) -> bool:
        """Return whether a sentence of the message, which is no question, has the candidate's meaning."""
        spoken = await embed_if_possible(self.embedder, spoken_sentences(candidate.origin.said))
        return any(near(_cosine(one, candidate.vector), self.embedder.thresholds) for one in spoken)

    async def read(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        searched: SimilarSearch,
        stated_in: str | None = None,
    ) -> Case:
        """Read the case: memories in the same words, search results, and memories stored since the search.
        Raises NotFound if the message `stated_in` was erased."""
        owners, now, corrected = candidate.origin.owners, candidate.now, candidate.proposed.replaces
        ids = (*searched.ids, corrected) if corrected else searched.ids
        facts = await self.store.comparable_facts(
            connection, owners, candidate.key, now, ids, searched.since, stated_in
        )
        # Only aliases that the audience may read, because it sees the reason.
        audience_keys = candidate.origin.audience.keys
        aliases = await self.store.aliases(audience_keys, now, connection) if searched.since else Aliases()
        cosine, thresholds, recalled = searched.cosine, self.embedder.thresholds, frozenset[str]()
        close = {one.id: one.content for one in facts.near if near(cosine.get(one.id, 0.0), thresholds)}
        if close and not (searched.stated or corrected):
            names = await _names(connection, candidate.origin.user)
            recalled = only_recalled(candidate.proposed.content, close, candidate.origin.said, names)
        return Case.of(
            candidate,
            worded_so=facts.worded_so,
            near=tuple(facts.near),
            cosine=cosine,
            recalled=recalled,
            aliases=aliases.pairs,
        )

    async def related(self, new_memory: NewMemory, old: Memory, user: str) -> bool:
        """Return whether two facts of a person share a tag, the meaning, or a name besides the person's."""
        async with self.database.read() as connection:
            aside = await _names(connection, user)
        texts = [without_names(text, aside) for text in (new_memory.content, old.content)]
        names = [{fold(w) for w in _WORD.findall(text) if w[0].isupper() and stems(w)} for text in texts]
        shared = [without_names(tag, aside) for tag in {*new_memory.subjects}.intersection(old.subjects)]
        if any(shared) or names[0] & names[1]:
            return True
        return _cosine(*await embed_if_possible(self.embedder, texts)) >= self.embedder.thresholds.recall

    async def ask_judge(self, candidates: Sequence[CandidateFact]) -> None:
        """Ask the judge about all doubtful candidates in one call. If it fails, both facts stay."""
        candidates = [fact for fact in candidates if not (self.consolidated and fact.origin.live)]
        if self.judge is None or not candidates:
            return
        doubts = [(fact, memory) for fact in candidates for memory in await self._doubtful(fact)]
        if not doubts:
            return
        try:
            rulings = await self.judge([_doubt(candidate, memory) for candidate, memory in doubts])
        except Exception as error:
            log.warning("the judge failed, so both facts stay: %s", error)
            return
        for (candidate, memory), replaces in zip(doubts, rulings, strict=False):
            if replaces:
                older = stated_before(candidate, memory)
                candidate.rulings[memory.id] = (
                    Verdict("outdated", RULED_OLDER) if older else RULINGS["replaces"]
                )

    async def around(
        self, texts: Sequence[tuple[str, Sequence[str]]], origin: Provenance, most: int
    ) -> list[Memory]:
        """Return the person's memories that are related to these texts by meaning, words or a tag, nearest
        first. Only memories that the audience may read are returned."""
        embedded = await embed_if_possible(self.embedder, [text for text, _ in texts])
        rankings: list[Sequence[str]] = []
        for (text, tags), vector in zip(texts, embedded, strict=True):
            for subjects in (frozenset[str](), frozenset(tags)) if tags else (frozenset[str](),):
                ranking = await self._search(text, vector, origin.owners, origin.said_at, subjects)
                rankings += [[hit.id for hit in ranking.dense], [hit.id for hit in ranking.words]]
        ids = dict.fromkeys(id for rank in zip_longest(*rankings) for id in rank if id)
        async with self.database.read() as connection:
            memories = await self.store.candidates(connection, list(ids), origin.owners, origin.said_at)
        places = {id: place for place, id in enumerate(ids)}
        personal = [m for m in memories if user_key(origin.user) in tellers(m.owners, m.user_id)]
        personal = [memory for memory in personal if origin.audience.may_read(memory.owners)]
        return sorted(personal, key=lambda memory: places.get(memory.id, len(places)))[:most]

    async def _doubtful(self, candidate: CandidateFact) -> list[Memory]:
        """Return the person's memories that the candidate may supersede; empty if they have stated the same
        to the same owners."""
        searched = await self.search(candidate)
        async with self.database.read() as connection:
            case = await self.read(connection, candidate, searched)
        weighted = with_verdicts(candidate, case.near, case.aliases, case.cosine)
        origin = candidate.origin
        if any(
            verdict is SAME and memory.user_id == origin.user and memory.owners >= origin.owners
            for memory, verdict in weighted
        ):
            return []
        text, tags = candidate.proposed.content, set(candidate.proposed.subjects)
        thresholds, cosine = self.embedder.thresholds, searched.cosine
        return [
            memory
            for memory, verdict in weighted
            if verdict.relation == "different"
            and candidate.sees(memory)
            and candidate.decides_for(memory)
            and (
                len(tags.intersection(memory.subjects)) > 1
                or alike(memory.content, text, cosine.get(memory.id, 0.0), thresholds)
            )
        ][:OFFERED]

    async def _search(
        self,
        text: str,
        vector: Any,
        owners: Collection[str],
        now: datetime,
        subjects: frozenset[str] = frozenset(),
        *,
        fresh: bool = True,
    ) -> Rankings:
        """Return the memories nearest to the text."""
        question = Question(
            audience=frozenset(owners),
            now=now,
            dense=vector,
            text=text,
            kinds=frozenset({"memory"}),
            subjects=subjects,
            limit=NEAR,
        )
        return await self.search_index(question, fresh=fresh)


async def _names(connection: AsyncConnection, user: str) -> list[str]:
    """Return the person's names. They are not cached, because another process may have stored a new one."""
    signed = select(speakers.c.author).where(speakers.c.owner == user_key(user))
    return [user, *await connection.scalars(signed)]


def _cosine(vector: Any, other: Any) -> float:
    if vector is None or other is None:
        return 0.0
    size = np.linalg.norm(vector) * np.linalg.norm(other)
    return float(np.dot(vector, other) / size) if size else 0.0


def _doubt(candidate: CandidateFact, memory: Memory) -> Doubt:
    """Return both facts in the order in which they were stated."""
    proposed = (candidate.proposed.content, candidate.origin.said_at)
    stored = (memory.content, memory.created_at)
    older = stated_before(candidate, memory)
    return Doubt(*proposed, *stored) if older else Doubt(*stored, *proposed)
