"""Stores many facts at once: without a model some thousand a second.

Without a model, words alone relate two facts: the same ones, with one name for each person. So what is known
of the owners is kept as words. A fact whose words nobody has told is new, and hundreds of those are stored in
one transaction. Of any other the usual decision is made, with a search.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.facts.aliases import linked
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import normalise
from memory.facts.decide import lacking_owners
from memory.facts.decision_log import decision_run, extracted
from memory.facts.fact_rows import NOT_SEARCHED
from memory.facts.refusal import refusal
from memory.facts.writer import FactWriter
from memory.process.spans import span
from memory.records import Decision, Draft, Memory
from memory.sql.engine.errors import Overtaken, retried
from memory.sql.memories.replacements import is_active
from memory.sql.memories.store import MemoryStore
from memory.sql.tables import memories, memory_owners
from memory.text.names import Aliases, fold

AT_ONCE = 500
"""How many facts are stored in one transaction …"""
JUDGED = 10
"""… and how many a model, if one rules on facts, is asked about in one call."""

Stated = Sequence[tuple[Draft, Provenance]]
Refused = Sequence[tuple[CandidateFact, Decision | None]]
"""Facts, each with the decision to refuse it, or None."""


async def remember_many(
    writer: FactWriter, stated: Stated, progress: Callable[[int], None] | None = None
) -> list[Decision]:
    """The decisions that `FactWriter` makes, on many statements that no turn has made, without what is close
    to them. Calls `progress` with how many have become durable. The index gets the new facts when it catches
    up."""
    judged = writer.similar.judge is not None
    decisions: list[Decision] = []
    known: dict[tuple[Any, Any], KnownWords] = {}
    with decision_run(writer.logged), span("decision"):
        while part := _of_one(stated[len(decisions) : len(decisions) + (JUDGED if judged else AT_ONCE)]):
            origin = part[0][1]
            words = known.setdefault((origin.owners, origin.audience), KnownWords(writer.store, origin))
            decided_on = await (writer.remember_each(part) if judged else _Part(writer, words).store(part))
            decisions += decided_on
            if progress:
                progress(len(decided_on))
    writer.indexing.wake()
    return decisions


def _of_one(stated: Stated) -> Stated:
    """The first statements, up to one for other owners."""
    first = [(origin.owners, origin.audience) for _, origin in stated[:1]]
    return [*takewhile(lambda one: [(one[1].owners, one[1].audience)] == first, stated)]


_theirs = memory_owners.c.owner.in_(bindparam("owners", expanding=True))
_IDS = select(memory_owners.c.memory_id).where(_theirs, is_active())
_TEXTS = select(memories.c.id, memories.c.content).where(memories.c.id.in_(_IDS))
_KEYS = select(memory_owners.c.content_key).where(
    _theirs, memory_owners.c.content_key.in_(bindparam("keys", expanding=True))
)


@dataclass
class KnownWords:
    """The words of each fact that the owners of a statement know."""

    store: MemoryStore
    origin: Provenance
    _texts: dict[str, str] = field(default_factory=dict)
    """By id."""
    _told: set[str] = field(default_factory=set)
    _aliases: Aliases = field(default_factory=Aliases)
    _names: frozenset[str] = frozenset()
    """The people's names that are aliases, folded."""

    async def read(self, now: datetime) -> None:
        """Read what is not known yet: facts, and other names of people."""
        async with self.store.database.read() as connection:
            aliases = await self.store.aliases(connection, self.origin.audience.keys, now)
            if aliases != self._aliases:
                self._aliases = aliases
                self._names = frozenset(fold(name) for pair in aliases.pairs for name in pair)
                self._told.update(self._words(text) for text in self._texts.values() if self._named(text))
            if await self.new_ids(connection, now):
                for id, content in await connection.execute(_TEXTS, self._owners | {"now": now}):
                    if id not in self._texts:
                        self.add(id, content)

    async def new_ids(self, connection: AsyncConnection, now: datetime) -> set[str]:
        """What others have stored since."""
        return set(await connection.scalars(_IDS, self._owners | {"now": now})) - self._texts.keys()

    async def used(self, connection: AsyncConnection, keys: Collection[str]) -> set[str]:
        """Which of these content keys a fact of the owners has, or has had."""
        return set(await connection.scalars(_KEYS, self._owners | {"keys": list(keys)}))

    @property
    def _owners(self) -> dict[str, Any]:
        return {"owners": list(self.origin.owners)}

    def add(self, id: str, content: str) -> None:
        self._texts[id] = content
        self._told.add(self._words(content))

    def is_new(self, fact: CandidateFact) -> bool:
        """Whether its words show that nothing alike is known, and that it corrects nothing by name."""
        return self._words(fact.draft.content) not in self._told and not fact.draft.replaces

    def _words(self, content: str) -> str:
        """The words of a fact, with one name for each person."""
        return normalise(self._aliases.canonical(content) if self._named(content) else content)

    def _named(self, content: str) -> bool:
        text = fold(content)
        return any(name in text for name in self._names)


@dataclass(frozen=True)
class _Part:
    """Statements for the same owners."""

    writer: FactWriter
    words: KnownWords

    async def store(self, stated: Stated) -> list[Decision]:
        """Decide on those that are new or known word for word in few transactions, on each of the others as
        usual."""
        facts = await self.writer.candidates(stated, {}, embed=False)
        left = [(fact, refusal(fact, self.writer.importance_floor)) for fact in facts]
        extracted(facts)
        decisions: list[Decision] = []
        while left:
            added = await self._add_together(left)
            decisions += added or [await self._decide(left[0][0])]
            left = left[len(added) or 1 :]
        for fact, decision in zip(facts, decisions, strict=True):
            self.writer.note(fact.origin, decision)
        return decisions

    async def _decide(self, fact: CandidateFact) -> Decision:
        [vector] = await self.writer.similar.embed([fact.draft.content])
        settled = await self.writer.decide(replace(fact, vector=vector))
        if settled.memory:
            self.words.add(settled.memory.id, settled.memory.content)
        return settled.decision

    async def _add_together(self, facts: Refused) -> list[Decision]:
        """Decide on the first of these facts in one transaction: up to one that is to be searched for, or
        that gives somebody another name."""

        async def read_then_write() -> list[Decision]:
            await self.words.read(facts[0][0].now)
            async with self.writer.database.write(lock=self.words.origin.owners) as connection:
                return await self._settle_together(connection, facts)

        return await retried(read_then_write)

    async def _settle_together(self, connection: AsyncConnection, facts: Refused) -> list[Decision]:
        if await self.words.new_ids(connection, facts[0][0].now):
            where = self.writer.database.where
            raise Overtaken(f"{where}: somebody else has told something; try again")
        used = await self.words.used(connection, {fact.key for fact, _ in facts})
        decisions: list[Decision] = []
        new: dict[str, Memory] = {}
        for fact, refused in facts:
            aliases = linked(fact.draft.content)
            if aliases and decisions:
                break
            decision = refused
            if refused is None and fact.key in used | new.keys():
                await self.writer.store.insert(connection, new, facts[0][0].now)
                used, new = used | new.keys(), {}
                decision = await self._known_word_for_word(connection, fact)
            elif refused is None and not aliases and self.words.is_new(fact):
                memory = new[fact.key] = fact.memory(fact.origin.owners)
                self.words.add(memory.id, memory.content)
                fact.made.add(memory.id)
                decision = fact.decision("add", memory, "new")
            if decision is None:
                break
            decisions.append(decision)
        await self.writer.store.insert(connection, new, facts[0][0].now)
        return decisions

    async def _known_word_for_word(self, connection: AsyncConnection, fact: CandidateFact) -> Decision | None:
        """The decision on a fact whose words each owner has; None where that is not so."""
        known = await self.writer.store.known(connection, fact.origin.owners, fact.key, fact.now)
        valid = fact.still_valid(known.worded_so)
        if lacking_owners(fact, valid):
            return None
        return (await self.writer.rows.settle(connection, fact, NOT_SEARCHED)).decision
