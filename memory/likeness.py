"""What is remembered already that resembles a statement, and what the statement is to each of it."""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.aliases import Aliases
from memory.audience import Place
from memory.case import Case, Origin
from memory.compare import Statement, Verdict, compare
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Question
from memory.index.embedders import Embedder
from memory.judging import Doubt, Judge
from memory.records import Draft, Memory, Source
from memory.sql.engine import Database
from memory.sql.memories import CORRECTED, MemoryStore

log = logging.getLogger("hachi.memory")

NEAR = 8
"""How many of the nearest memories, by meaning and by words each, are compared with a new statement."""

Near = list[tuple[Memory, Verdict]]

_ORDER = {"same": 0, "coarser": 1, "contradiction": 2, "richer": 3, "stale": 4, "doubtful": 5, "different": 6}


class Likeness:
    def __init__(
        self, database: Database, store: MemoryStore, index: Index, embedder: Embedder, judge: Judge | None
    ) -> None:
        self._database = database
        self._store = store
        self._index = index
        self._embedder = embedder
        self.judge = judge
        """A model to ask where it is in doubt; None keeps both."""
        self.judged: frozenset[Source] = frozenset(get_args(Source))
        """From which sources statements are put to it at once."""

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Without the embedder facts are still kept; they are compared by their words alone."""
        try:
            return list(await self._embedder.embed(texts)) if texts else []
        except EmbedderUnavailable as error:
            log.warning("remembering without the embedder: %s", error)
            return [None] * len(texts)

    async def near(self, connection: AsyncConnection, case: Case, owners: Collection[str]) -> Near:
        """What these owners have that resembles the statement, what decides first; each with what the
        statement is to it."""
        cosine, ids = await self._nearest(case, owners)
        if case.draft.replaces:
            ids.append(case.draft.replaces)
        memories = await self._store.candidates(connection, ids, owners, case.now)
        unknown = [memory for memory in memories if memory.id not in cosine]
        vectors = await self.embed([memory.content for memory in unknown])
        for memory, vector in zip(unknown, vectors, strict=True):
            both = vector is not None and case.vector is not None
            cosine[memory.id] = float(vector @ case.vector) if both else 0.0
        # Only names that the people present know: what follows is told to them.
        aliases = await self._store.aliases(connection, case.origin.audience.keys, case.now)
        judged = [(memory, self._weigh(case, memory, cosine[memory.id], aliases)) for memory in memories]
        return sorted(judged, key=lambda pair: (_ORDER[pair[1].relation], -cosine[pair[0].id]))

    def echoed(self, case: Case) -> str | None:
        """The text brought back by this turn's searches that the statement only repeats, in these or other
        words or with less detail; None where the message says it itself."""
        if not case.origin.recalled or case.said:
            return None
        new = Statement(case.draft.content, case.draft.subjects, case.origin.said_at)
        for hit in case.origin.recalled:
            old = Statement(hit.content, hit.memory.subjects if hit.memory else (), hit.created_at)
            if compare(old, new, 0.0, self._embedder.thresholds).relation in ("same", "coarser"):
                return hit.content
        return None

    def tells(self, case: Case, memory: Memory, taken_back: datetime) -> bool:
        """Whether the statement tells again what was taken back at that time: in these or other words, with
        less detail, or, of what had been said before, with more. Not where the message itself says it
        since."""
        before = case.origin.said_at < taken_back
        if case.said and not before:
            return False
        old = Statement(memory.content, memory.subjects, memory.created_at)
        new = Statement(case.draft.content, case.draft.subjects, case.origin.said_at)
        relation = compare(old, new, 0.0, self._embedder.thresholds).relation
        return relation in ("same", "coarser") or (before and relation == "richer")

    async def ask_judge(self, cases: Sequence[Case]) -> None:
        """Put all doubts of these statements to the judge at once. Its rulings are written into the cases;
        without them, or where it fails, both statements are kept."""
        cases = [case for case in cases if case.origin.source in self.judged]
        if self.judge is None or not cases:
            return
        doubts = await self._doubts(cases)
        if not doubts:
            return
        asked = [Doubt(old.content, old.created_at, c.draft.content, c.origin.said_at) for c, old in doubts]
        try:
            rulings = await self.judge(asked)
        except Exception as error:
            log.warning("the judge failed, both facts are kept: %s", error)
            return
        for (case, old), replaces in zip(doubts, rulings, strict=False):
            if replaces:
                case.overruled.add(old.id)

    async def doubts_about(self, kept: Sequence[Memory], now: datetime) -> list[tuple[Memory, Memory]]:
        """(older, newer) wherever it is in doubt whether one of these memories takes an older one's place."""
        vectors = await self.embed([memory.content for memory in kept])
        cases = [_case_of(memory, vector, now) for memory, vector in zip(kept, vectors, strict=True)]
        newer = {id(case): memory for case, memory in zip(cases, kept, strict=True)}
        doubts = [(old, newer[id(case)]) for case, old in await self._doubts(cases)]
        return [(old, new) for old, new in doubts if old.id != new.id]

    async def _doubts(self, cases: Sequence[Case]) -> list[tuple[Case, Memory]]:
        """The older memories that those present may read and that a statement resembles too much to tell."""
        doubts: list[tuple[Case, Memory]] = []
        async with self._database.read() as connection:
            for case in cases:
                near = await self.near(connection, case, case.origin.owners)
                doubts += [(case, memory) for memory, verdict in near if verdict.relation == "doubtful"]
        return [
            (case, old) for case, old in doubts if case.sees(old) and case.origin.said_at >= old.created_at
        ]

    async def _nearest(self, case: Case, owners: Collection[str]) -> tuple[dict[str, float], list[str]]:
        """The cosines that the index knows, and all ids it finds."""
        question = Question(
            audience=frozenset(owners),
            now=case.now,
            dense=case.vector,
            text=case.draft.content,
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

    def _weigh(self, case: Case, old: Memory, cosine: float, aliases: Aliases) -> Verdict:
        if case.corrects(old):
            return Verdict("contradiction", CORRECTED)
        verdict = compare(
            Statement(aliases.canonical(old.content), old.subjects, old.created_at),
            Statement(aliases.canonical(case.draft.content), case.draft.subjects, case.origin.said_at),
            cosine,
            self._embedder.thresholds,
        )
        if verdict.relation == "doubtful" and old.id in case.overruled:
            verdict = Verdict("contradiction", "a model judged that it takes its place")
        if case.expires_at is not None and (
            # What holds for a week does not end what holds for good; nor does it take the place of what it
            # refines, unless it may show how long that holds and hold as long itself.
            (verdict.relation == "contradiction" and old.expires_at is None)
            or (verdict.relation == "richer" and not case.sees(old) and _outlasts(old, case.expires_at))
        ):
            return Verdict("different", "holds for a time only")
        return verdict


def _case_of(memory: Memory, vector: Any, now: datetime) -> Case:
    """A memory as the statement that it was."""
    draft = Draft(memory.content, memory.subjects, type=memory.type, importance=memory.importance)
    return Case(draft, Origin(memory.user_id, memory.created_at, Place.parse(memory.place)), vector, now)


def _outlasts(memory: Memory, moment: datetime) -> bool:
    return memory.expires_at is None or memory.expires_at > moment
