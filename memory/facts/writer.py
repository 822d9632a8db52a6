"""Write facts: each candidate ends in add, merge, replace or ignore.

Every caller uses this path, or `memory.facts.bulk` for many facts. It refuses facts that are not worth
storing, ignores echoes, looks for the same words, then for similar facts, and else inserts. `compare`
compares two facts, `decide` decides, `fact_rows` stores.

The index, the embedder and the judge are asked before the transaction. If rows that the decision depends on
have changed by then, it is made again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import Verdict
from memory.facts.decide import RULINGS, Case, Ruling, as_candidate, ruled_decision, ruled_step
from memory.facts.decision_log import Facts, add_decision, count_candidates, decision_run
from memory.facts.fact_rows import FactRows
from memory.facts.refusal import refusal
from memory.facts.similar import SimilarFacts, SimilarSearch
from memory.index.embedders import embed_if_possible
from memory.index.indexing import Indexing
from memory.process.spans import note, span
from memory.records import Decision, NewMemory
from memory.sql.engine import Database
from memory.sql.engine.errors import retried
from memory.sql.memories.store import MemoryStore
from memory.text import storable, tags

NO_RULINGS: Mapping[str, Ruling] = {}


@dataclass(eq=False)
class FactWriter:
    database: Database
    store: MemoryStore
    similar: SimilarFacts
    indexing: Indexing
    clock: Callable[[], datetime]
    importance_floor: float
    count: Callable[[str, Mapping[str, int]], None] = lambda *_: None
    logged: Facts = "on"
    """How the decision log shows facts."""
    rows: FactRows = field(init=False)

    def __post_init__(self) -> None:
        self.rows = FactRows(self.store, self.similar, self.importance_floor)

    async def remember(
        self, new_memories: Sequence[NewMemory], origin: Provenance, ruled: Mapping[str, Ruling] = NO_RULINGS
    ) -> list[Decision]:
        """Decide on each new memory in its own transaction. `ruled` has a model's rulings by memory id."""
        return await self.remember_each([(new_memory, origin) for new_memory in new_memories], ruled)

    async def remember_each(
        self, stated: Sequence[tuple[NewMemory, Provenance]], ruled: Mapping[str, Ruling] = NO_RULINGS
    ) -> list[Decision]:
        """Decide on new memories of several provenances. The judge is asked about all in one call."""
        if not stated:
            return []
        facts = await self.candidates(stated, {id: RULINGS[ruled[id]] for id in ruled})
        refusals = [refusal(fact, self.importance_floor) for fact in facts]
        judged = [fact for fact, refused in zip(facts, refusals, strict=True) if refused is None]
        await self.similar.ask_judge(judged)
        decisions, cases = list[Decision](), list[Case]()
        with decision_run(self.logged), span("decision"):
            count_candidates(facts)
            for fact, refused in zip(facts, refusals, strict=True):
                decision, case = (refused, Case.of(fact)) if refused else await self.decide(fact)
                decisions.append(decision)
                cases.append(case)
                self.note(fact.origin, decision)
            note(decisions=decisions, cases=cases)
        self.indexing.wake()
        return decisions

    async def rule(self, new_id: str, old_id: str, ruling: Ruling, origin: Provenance) -> Decision | None:
        """Apply a model's ruling on two stored facts. None if it changes nothing or is not allowed."""
        now = self.clock()
        async with self.database.write(lock=origin.owners) as connection:
            rows = await self.store.candidates(connection, [new_id, old_id], origin.owners, now)
            facts = {memory.id: memory for memory in rows}
            if not {new_id, old_id} <= facts.keys():
                return None
            new, old = facts[new_id], facts[old_id]
            candidate = as_candidate(new, origin, now)
            aliases = await self.store.aliases(origin.audience.keys, now, connection)
            step = ruled_step(candidate, new, old, ruling, aliases)
            if step is None:
                return None
            await self.rows.supersede_stored(connection, candidate, new, old, step)
        decision = ruled_decision(candidate, new, old, step)
        with decision_run(self.logged):
            self.note(origin, decision)
        return decision

    async def candidates(
        self,
        stated: Sequence[tuple[NewMemory, Provenance]],
        rulings: Mapping[str, Verdict],
        *,
        embed: bool = True,
    ) -> list[CandidateFact]:
        """Return new memories as normalised candidates, with their vectors unless `embed` is False."""
        now = self.clock()
        read = [(await self._read(new_memory, origin, now), origin) for new_memory, origin in stated]
        texts = [new_memory.content for new_memory, _ in read]
        vectors = await embed_if_possible(self.similar.embedder, texts) if embed else [None] * len(texts)
        made: dict[int, set[str]] = {id(origin): set() for _, origin in read}
        return [
            CandidateFact(new_memory, origin, vector, now, made=made[id(origin)], rulings=dict(rulings))
            for (new_memory, origin), vector in zip(read, vectors, strict=True)
        ]

    async def _read(self, new_memory: NewMemory, origin: Provenance, now: datetime) -> NewMemory:
        # One line, without lone surrogates and NUL, which PostgreSQL refuses.
        content = " ".join(storable(new_memory.content).split())
        new_memory = replace(new_memory, content=content, subjects=tags(new_memory.subjects))
        if new_memory.replaces is None:
            return new_memory
        async with self.database.read() as connection:
            resolved = await self.rows.replacing(connection, new_memory, origin, now)
            old = await self.store.current(connection, resolved.replaces or "", origin.audience, now)
        doubtful = old is not None and origin.live and old.id not in origin.confirmed
        if old is None or not doubtful or await self.similar.related(new_memory, old, origin.user):
            return resolved
        return replace(new_memory, replaces=None)  # the model gave a wrong id: both facts stay

    async def decide(self, candidate: CandidateFact) -> tuple[Decision, Case]:
        """Decide on a candidate and store the decision."""

        async def search_then_write() -> tuple[Decision, Case]:
            searched = await self.similar.search(candidate)
            decision, case = await self._store(candidate, searched)
            # What seemed only recalled was not stored. Its message may state it in other words.
            if decision.target_id in case.recalled and await self.similar.states(candidate):
                decision, case = await self._store(candidate, replace(searched, stated=True))
            return decision, case

        return await retried(search_then_write)

    async def _store(self, candidate: CandidateFact, searched: SimilarSearch) -> tuple[Decision, Case]:
        async with self.database.write(lock=candidate.origin.owners) as connection:
            return await self.rows.store_decision(connection, candidate, searched)

    def note(self, origin: Provenance, decision: Decision) -> None:
        """Count and log a stored decision."""
        add_decision(origin, decision)
        restated = decision.action == "merge" or (decision.action == "ignore" and decision.target_id)
        self.count(origin.user, {decision.action: 1, "decided": 1} | ({"known": 1} if restated else {}))
