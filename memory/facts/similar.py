"""Finds known facts that are similar to a candidate, and how the candidate relates to each."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.errors import EmbedderUnavailable
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import DIFFERENT, SAME, Verdict, alike, same_words
from memory.facts.decide import RULINGS, Near, allowed
from memory.index import Question, Rankings
from memory.index.embedders import Embedder
from memory.records import Memory
from memory.sql.changes import Position
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.memories.store import MemoryStore, tellers
from memory.text.names import Aliases

log = logging.getLogger("hachi.memory")

SAID_BEFORE = "said before what is known: a model judged that this takes its place"
CORRECTED_BEFORE = "said before what it is to correct"
NEAR = 8
"""A candidate is compared with this many memories nearest by meaning, and this many by words."""

_ORDER = ("same", "subsumed", "contradiction", "outdated", "different")

OFFERED = 6
"""A judge rules on one candidate and at most this many memories."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found near a candidate, before the transaction that decides on it."""

    owners: frozenset[str]
    ids: tuple[str, ...]
    """Of the memories of these owners that it is compared with."""
    cosine: Mapping[str, float]
    """Of those that are nearest by meaning. The others are farther."""
    followed: Position | None
    """What the search knew of the log of changes; None without a search."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two statements for which words and vectors do not show whether the new one replaces the old one."""

    old: str
    old_said_at: datetime
    new: str
    new_said_at: datetime


Judge = Callable[[Sequence[Doubt]], Awaitable[Sequence[bool]]]
"""Takes all doubts of a turn. Returns for each whether the new statement replaces the old. May raise."""


Search = Callable[..., Awaitable[Rankings]]
"""Searches the index, or without it the newest rows: see `Searching.search`."""


@dataclass(eq=False)
class SimilarFacts:
    database: Database
    store: MemoryStore
    search_index: Search
    embedder: Embedder
    judge: Judge | None
    """A model that rules on doubts. Without one, both statements are kept."""
    consolidated: bool = False
    """Whether a consolidation rules on what is said in a turn, so that the judge need not."""

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """A vector for each text; None for each if the embedder is unavailable."""
        try:
            return list(await self.embedder.embed(texts)) if texts else []
        except EmbedderUnavailable as error:
            log.warning("remembering without the embedder: %s", error)
            return [None] * len(texts)

    async def search(
        self, candidate: CandidateFact, owners: Collection[str], *, patient: bool = False
    ) -> Searched:
        """Look for these owners' memories that the candidate is compared with. Index and embedder are asked
        here, before the transaction that decides: nobody waits for them with a connection in hand. How alike
        those are that an index on a server has not followed yet is known to a `patient` search alone."""
        found = await self._search(
            candidate.draft.content, candidate.vector, owners, candidate.now, patient=patient
        )
        ids = [*(hit.id for hit in (*found.dense, *found.words)), *candidate.rulings]
        ids += [candidate.draft.replaces] if candidate.draft.replaces else []
        return Searched(
            frozenset(owners), tuple(ids), {hit.id: hit.score for hit in found.dense}, found.followed
        )

    async def near(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        owners: Collection[str],
        searched: Searched,
    ) -> Near:
        """These owners' memories that were found, and those that were told since the search, with verdicts;
        the decisive ones first. Raises Overtaken where the search was not for all of these owners."""
        if not searched.owners.issuperset(owners):
            raise Overtaken(f"{self.database.where}: what was known already has just ended; try again")
        memories = await self.store.candidates(
            connection, searched.ids, owners, candidate.now, searched.followed
        )
        # Only names that the people present know, since they see the reason.
        aliases = await self.store.aliases(connection, candidate.origin.audience.keys, candidate.now)
        candidate.known.update(near=tuple(memories), cosine=searched.cosine, aliases=aliases.pairs)
        return weighed(candidate, memories, aliases.pairs, searched.cosine)

    async def ask_judge(self, candidates: Sequence[CandidateFact]) -> None:
        """Ask the judge about all doubtful candidates in one call, and store its rulings in them. Without a
        judge, or if the judge fails, both statements are kept."""
        candidates = [fact for fact in candidates if not (self.consolidated and fact.origin.live)]
        if self.judge is None or not candidates:
            return
        doubts = [(fact, memory) for fact in candidates for memory in await self._doubtful(fact)]
        if not doubts:
            return
        try:
            rulings = await self.judge([_doubt(candidate, memory) for candidate, memory in doubts])
        except Exception as error:
            log.warning("the judge failed, both facts are kept: %s", error)
            return
        for (candidate, memory), replaces in zip(doubts, rulings, strict=False):
            if replaces:
                older = _said_before(candidate, memory)
                candidate.rulings[memory.id] = (
                    Verdict("outdated", SAID_BEFORE) if older else RULINGS["replaces"]
                )

    async def around(
        self, texts: Sequence[tuple[str, Sequence[str]]], origin: Provenance, most: int
    ) -> list[Memory]:
        """The person's memories that statements like these may concern, the nearest first: those that lie
        near in meaning or words, and those with one of the tags beside a text. Only what the people present
        may read."""
        embedded = await self.embed([text for text, _ in texts])
        rankings: list[Sequence[str]] = []
        for (text, given), vector in zip(texts, embedded, strict=True):
            for subjects in (frozenset[str](), frozenset(given)) if given else (frozenset[str](),):
                found = await self._search(text, vector, origin.owners, origin.said_at, subjects)
                rankings += [[hit.id for hit in found.dense], [hit.id for hit in found.words]]
        ids = dict.fromkeys(id for rank in zip_longest(*rankings) for id in rank if id)
        async with self.database.read() as connection:
            memories = await self.store.candidates(connection, list(ids), origin.owners, origin.said_at)
        places = {id: place for place, id in enumerate(ids)}
        own = [m for m in memories if user_key(origin.user) in tellers(m.owners, m.user_id)]
        own = [memory for memory in own if origin.audience.may_read(memory.owners)]
        return sorted(own, key=lambda memory: places.get(memory.id, len(places)))[:most]

    async def _doubtful(self, candidate: CandidateFact) -> list[Memory]:
        """The memories that the candidate may concern, as far as words and vectors tell, whatever numbers and
        names differ: of the same person, and readable by the people present. None where they have said
        the same to the same people."""
        owners = candidate.origin.owners
        searched = await self.search(candidate, owners, patient=True)
        async with self.database.read() as connection:
            near = await self.near(connection, candidate, owners, searched)
        said = candidate.origin
        if any(
            verdict is SAME and memory.user_id == said.user and memory.owners >= said.owners
            for memory, verdict in near
        ):
            return []
        text, tags = candidate.draft.content, set(candidate.draft.subjects)
        thresholds, cosine = self.embedder.thresholds, searched.cosine
        return [
            memory
            for memory, verdict in near
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
        patient: bool = True,
    ) -> Rankings:
        """The memories nearest to the text."""
        question = Question(
            audience=frozenset(owners),
            now=now,
            dense=vector,
            text=text,
            kinds=frozenset({"memory"}),
            subjects=subjects,
            limit=NEAR,
        )
        return await self.search_index(question, patient=patient)


def weighed(
    candidate: CandidateFact,
    memories: Sequence[Memory],
    aliases: Sequence[tuple[str, str]],
    cosine: Mapping[str, float],
) -> Near:
    """The memories with verdicts, the decisive ones and then the nearest first."""
    names = Aliases(tuple(aliases))
    pairs = [(memory, _verdict(candidate, memory, names)) for memory in memories]
    return sorted(pairs, key=lambda pair: (_ORDER.index(pair[1].relation), -cosine.get(pair[0].id, 0.0)))


def _verdict(candidate: CandidateFact, old: Memory, aliases: Aliases) -> Verdict:
    if candidate.corrects(old):
        return candidate.correction
    if same_words(aliases.canonical(old.content), aliases.canonical(candidate.draft.content)):
        return SAME
    if not candidate.sees(old):
        return DIFFERENT
    if old.id == candidate.draft.replaces and _said_before(candidate, old):
        return Verdict("outdated", CORRECTED_BEFORE)
    return allowed(candidate, old, candidate.rulings.get(old.id, DIFFERENT))


def _said_before(candidate: CandidateFact, memory: Memory) -> bool:
    return candidate.origin.said_at < memory.created_at and not candidate.newer_than(memory)


def _doubt(candidate: CandidateFact, memory: Memory) -> Doubt:
    """Both statements, in the order in which people stated them."""
    proposed = (candidate.draft.content, candidate.origin.said_at)
    known = (memory.content, memory.created_at)
    older = _said_before(candidate, memory)
    return Doubt(*proposed, *known) if older else Doubt(*known, *proposed)
