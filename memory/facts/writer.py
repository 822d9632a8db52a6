"""Writes facts. Each candidate ends in add, merge, replace or ignore.

The `remember` tool, the answer's memories[] and every other caller use this path. The order: refuse what is
not worth keeping; ignore an echo of recalled facts; look for the same words; look for similar facts; else
insert. `memory.facts.compare` relates two statements, `memory.facts.decide` decides.

Index, embedder and judge are asked before the transaction. In it, what was found is read again, and where
others have told something since, the decision begins anew.

Each owner is decided on separately. A correction stated in a channel replaces the channel's memory and the
speaker's own. Stated in private, it does not change the channel's memory, so a channel's memory never shows a
private statement.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import NotFound
from memory.facts.aliases import linked, links_of
from memory.facts.bulk import KnownWords
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import Verdict, same_words
from memory.facts.decide import Resolution, Step, decision_of, figures_of, resolve
from memory.facts.decision_log import decided, decision_run, extracted
from memory.facts.derived import withhold
from memory.facts.evidence.echoes import echoed, states
from memory.facts.rulings import RULINGS, Ruling, as_candidate, ruled_decision, step_of
from memory.facts.similar import Searched, SimilarFacts
from memory.index import vectors
from memory.index.sync import IndexSync
from memory.process.spans import note, span
from memory.records import Decision, Draft, Memory
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.engine.writers import Turns
from memory.sql.memories import MemoryStore
from memory.sql.owner_links import link
from memory.sql.rests_on import record
from memory.text import storable
from memory.text.short_ids import read_id
from memory.text.tags import tags

MAX_CONTENT = 2_000
"""The most characters of one memory. A fact is a sentence; anything longer is a document."""
NO_RULINGS: Mapping[str, Ruling] = {}
NOT_SEARCHED = Searched(frozenset(), {}, None)
AT_ONCE = 500
"""How many facts of many are stored in one transaction …"""
JUDGED = 10
"""… and how many a model, if one rules on facts, is asked about in one call."""
TRIES = 8
"""How often a decision is tried while other processes tell the same person or place something."""


@dataclass(eq=False)
class FactWriter:
    database: Database
    store: MemoryStore
    similar: SimilarFacts
    indexing: IndexSync
    clock: Callable[[], datetime]
    importance_floor: float
    count: Callable[[str, Mapping[str, int]], None] = lambda *_: None
    _turns: Turns = field(default_factory=Turns, init=False)
    """Those who write for the same owner wait here, from the search to the commit, so that each knows what
    the last one stored."""

    async def remember(
        self, drafts: Sequence[Draft], origin: Provenance, ruled: Mapping[str, Ruling] = NO_RULINGS
    ) -> list[Decision]:
        """Decide on each draft in order, each in its own transaction; the decisions are durable on return.
        `ruled` is what a model ruled that the drafts do to memories, by their ids."""
        return await self.remember_each([(draft, origin) for draft in drafts], ruled)

    async def remember_each(
        self, stated: Sequence[tuple[Draft, Provenance]], ruled: Mapping[str, Ruling] = NO_RULINGS
    ) -> list[Decision]:
        """The same for drafts of several statements; a judge is asked about all of them at once."""
        if not stated:
            return []
        facts = await self._candidates(stated, {id: RULINGS[ruled[id]] for id in ruled})
        refusals = [self._refuse(fact) for fact in facts]
        judged = [fact for fact, refused in zip(facts, refusals, strict=True) if refused is None]
        await self.similar.ask_judge(judged)
        decisions: list[Decision] = []
        with decision_run(), span("decision"):
            extracted(facts)
            for fact, refused in zip(facts, refusals, strict=True):
                decision = refused or await self._decide(fact)
                decisions.append(decision)
                self._note(fact.origin, decision)
            note(decisions=decisions)
        self.indexing.wake()
        return decisions

    async def remember_many(
        self,
        stated: Sequence[tuple[Draft, Provenance]],
        progress: Callable[[int], None] | None = None,
    ) -> list[Decision]:
        """The same decisions on many statements that no turn has made, without what is close to them: without
        a model some thousand a second, each transaction for `AT_ONCE`. Calls `progress` with how many have
        become durable. The index gets the new facts when it catches up."""
        judged = self.similar.judge is not None
        decisions: list[Decision] = []
        known: dict[tuple[Any, Any], KnownWords] = {}
        with decision_run(), span("decision"):
            while part := _of_one(stated[len(decisions) : len(decisions) + (JUDGED if judged else AT_ONCE)]):
                origin = part[0][1]
                words = known.setdefault((origin.owners, origin.audience), KnownWords(self.store, origin))
                decided_on = await (self.remember_each(part) if judged else self._store_part(part, words))
                decisions += decided_on
                if progress:
                    progress(len(decided_on))
        self.indexing.wake()
        return decisions

    async def _store_part(
        self, stated: Sequence[tuple[Draft, Provenance]], words: KnownWords
    ) -> list[Decision]:
        """Decide on statements for the same owners: on those that are new or known word for word in one
        transaction, on each of the others as usual."""
        now, made = self.clock(), {id(origin): set[str]() for _, origin in stated}
        read = [(await self._read(draft, origin), origin) for draft, origin in stated]
        facts = [CandidateFact(draft, origin, None, now, made=made[id(origin)]) for draft, origin in read]
        refusals = [self._refuse(fact) for fact in facts]
        extracted(facts)
        decisions: list[Decision] = []
        while (at := len(decisions)) < len(facts):
            together = [*zip(facts[at:], refusals[at:], strict=True)]
            if added := await self._add_together(together, words):
                decisions += added
                continue
            await self.indexing.try_to_catch_up()  # a search reads only so many waiting rows
            [vector] = await self.similar.embed([facts[at].draft.content])
            decisions.append(await self._decide(replace(facts[at], vector=vector)))
            for memory in facts[at].changed.values():
                words.add(memory.id, memory.content)
        for fact, decision in zip(facts, decisions, strict=True):
            self._note(fact.origin, decision)
        return decisions

    async def _add_together(
        self, facts: Sequence[tuple[CandidateFact, Decision | None]], words: KnownWords
    ) -> list[Decision]:
        """Decide on the first of these facts, of which some were refused, in one transaction: up to one that
        is to be searched for, or that gives somebody another name."""
        async with self._turns.of(words.origin.owners):
            for tries_left in reversed(range(TRIES)):
                await words.read(facts[0][0].now)
                try:
                    async with self.database.write(lock=words.origin.owners) as connection:
                        decisions = await self._settle_together(connection, facts, words)
                except Overtaken:
                    if not tries_left:
                        raise
                else:
                    break
        return decisions

    async def _settle_together(
        self,
        connection: AsyncConnection,
        facts: Sequence[tuple[CandidateFact, Decision | None]],
        words: KnownWords,
    ) -> list[Decision]:
        if await words.new_ids(connection):
            raise Overtaken(f"{self.database.where}: somebody else has told something; try again")
        used = await words.used(connection, {fact.key for fact, _ in facts})
        decisions: list[Decision] = []
        new: dict[str, Memory] = {}
        for fact, refused in facts:
            aliases = linked(fact.draft.content)
            if aliases and decisions:
                break
            decision = refused
            if refused is None and fact.key in used | new.keys():
                await self._insert(connection, new)
                used, new = used | new.keys(), {}
                decision = await self._known_word_for_word(connection, fact)
            elif refused is None and not aliases and words.is_new(fact):
                memory = new[fact.key] = fact.memory(fact.origin.owners)
                words.add(memory.id, memory.content)
                fact.made.add(memory.id)
                decision = fact.decision("add", memory, "new")
            if decision is None:
                break
            decisions.append(decision)
        await self._insert(connection, new)
        return decisions

    async def _insert(self, connection: AsyncConnection, new: Mapping[str, Memory]) -> None:
        """Insert new facts, by their content keys, with the messages that state them."""
        await self.store.insert_many(connection, new)
        for memory in new.values():
            if memory.message_id:
                await record(connection, memory.id, [memory.message_id], "stated")

    async def _known_word_for_word(self, connection: AsyncConnection, fact: CandidateFact) -> Decision | None:
        """The decision on a fact whose words each owner has; None where that is not so."""
        held = await self.store.holders(connection, fact.origin.owners, fact.key)
        valid = {owner for owner, memory in held.items() if not _has_expired(memory, fact.now)}
        if self._lacking(fact, valid):
            return None
        return await self._settle(connection, fact, NOT_SEARCHED)

    async def _candidates(
        self, stated: Sequence[tuple[Draft, Provenance]], rulings: Mapping[str, Verdict]
    ) -> list[CandidateFact]:
        read = [(await self._read(draft, origin), origin) for draft, origin in stated]
        embedded = await self.similar.embed([draft.content for draft, _ in read])
        now = self.clock()
        made: dict[int, set[str]] = {id(origin): set() for _, origin in read}
        return [
            CandidateFact(draft, origin, vector, now, made=made[id(origin)], rulings=dict(rulings))
            for (draft, origin), vector in zip(read, embedded, strict=True)
        ]

    def _note(self, origin: Provenance, decision: Decision) -> None:
        """Count and log a decision that is durable."""
        decided(origin, decision)
        self.count(origin.user, figures_of([decision]))

    async def rule(self, new_id: str, old_id: str, ruling: Ruling, origin: Provenance) -> Decision | None:
        """Apply a model's ruling on two stored facts. None if it changes nothing, or may not."""
        now = self.clock()
        async with self.database.write(lock=origin.owners) as connection:
            rows = await self.store.candidates(connection, [new_id, old_id], origin.owners, now)
            found = {memory.id: memory for memory in rows}
            if not {new_id, old_id} <= found.keys():
                return None
            new, old = found[new_id], found[old_id]
            candidate = as_candidate(new, origin, now)
            step = step_of(candidate, new, old, ruling)
            if step is None:
                return None
            await self._step_back(connection, candidate, new, old, step)
        decision = ruled_decision(candidate, new, old, step)
        with decision_run():
            self._note(origin, decision)
        return decision

    async def _step_back(
        self, connection: AsyncConnection, candidate: CandidateFact, new: Memory, old: Memory, step: Step
    ) -> None:
        """Let one of two stored facts step back for the other, which keeps what that one adds to it."""
        stays = new if step.memory is old else old
        await self._supersede(connection, candidate, step.memory, step.owners, stays.id, step.verdict.reason)
        if step.memory is old:
            gone, now = [old.id], candidate.now
            await withhold(connection, now, memory_ids=gone, owners=step.owners, instead=new.content)
        if stays is old:
            await self._refresh(connection, candidate, old)
            if new.message_id:
                await record(connection, old.id, [new.message_id], "stated")

    async def _read(self, draft: Draft, origin: Provenance) -> Draft:
        """The draft in the form that is stored."""
        # On one line, without NUL, which PostgreSQL refuses, and without lone surrogates.
        content = " ".join(storable(draft.content).split())
        draft = replace(draft, content=content, subjects=tags(draft.subjects))
        if draft.replaces is None:
            return draft
        async with self.database.read() as connection:
            return await self._replacing(connection, draft, origin)

    async def _replacing(self, connection: AsyncConnection, draft: Draft, origin: Provenance) -> Draft:
        """The draft with the whole id of what it replaces or, if that was replaced already, of what holds in
        its place, and with its subjects unless it has its own. A fact that replaces nothing that the people
        present may read stands beside what is there."""
        named = read_id(draft.replaces or "")
        found = await self.store.current(connection, named, origin.audience, self.clock())
        if found is None:
            return replace(draft, replaces=None)
        return replace(draft, replaces=found.id, subjects=draft.subjects or found.subjects)

    def _refuse(self, candidate: CandidateFact) -> Decision | None:
        content, importance = candidate.draft.content, candidate.draft.importance
        if not content:
            return Decision(content, "ignore", None, "there is nothing in it")
        if len(content) > MAX_CONTENT:
            reason = f"longer than {MAX_CONTENT} characters; say it as single facts"
            return Decision(content[:200] + " …", "ignore", None, reason)
        if importance < self.importance_floor:
            return Decision(
                content, "ignore", None, f"importance {importance:g} is under {self.importance_floor:g}"
            )
        until = candidate.expires_at
        if until is not None and until <= candidate.now:
            return Decision(content, "ignore", None, "it had already expired", expires_at=until)
        return None

    async def _decide(self, candidate: CandidateFact) -> Decision:
        owners = candidate.origin.owners
        async with self._turns.of(owners):
            for tries_left in reversed(range(TRIES)):
                candidate.changed.clear()
                candidate, searched = await self._prepare(candidate)
                try:
                    async with self.database.write(lock=owners) as connection:
                        decision = await self._settle(connection, candidate, searched)
                except Overtaken:
                    if not tries_left:
                        raise
                else:
                    break
        return decision

    async def _prepare(self, candidate: CandidateFact) -> tuple[CandidateFact, Searched]:
        """Read, search and embed what the decision rests on. `_settle` checks that it still is as it was."""
        origin = candidate.origin
        async with self.database.read() as connection:
            if candidate.draft.replaces:  # another writer may have replaced it since
                draft = await self._replacing(connection, candidate.draft, origin)
                candidate = replace(candidate, draft=draft)
            known = await self.store.holders(connection, origin.owners, candidate.key)
        held = [owner for owner, memory in known.items() if not _has_expired(memory, candidate.now)]
        lacking = self._lacking(candidate, held)
        return candidate, await self.similar.search(candidate, lacking) if lacking else NOT_SEARCHED

    def _lacking(self, candidate: CandidateFact, held: Collection[str]) -> frozenset[str]:
        """The owners for whom similar memories count."""
        owners = candidate.origin.owners
        return owners if candidate.draft.replaces else owners.difference(held)

    async def _settle(
        self, connection: AsyncConnection, candidate: CandidateFact, searched: Searched
    ) -> Decision:
        owners, origin = candidate.origin.owners, candidate.origin
        if candidate.draft.replaces:
            draft = await self._replacing(connection, candidate.draft, origin)
            if draft.replaces != candidate.draft.replaces:
                raise Overtaken(f"{self.database.where}: what it corrects has just been replaced; try again")
        stated_in = origin.message_id if origin.live else None
        try:
            held = await self.store.holders(connection, owners, candidate.key, stated_in)
        except NotFound:
            return candidate.decision("ignore", None, "the message it came from has been erased")
        if await self._withdrawn(connection, candidate):
            return candidate.decision("ignore", None, "it was made private, and not said here since")
        if ended := await self._has_ended(connection, candidate, held):
            return ended
        repeated = echoed(candidate, held.values())
        held, expired = _still_valid(candidate, held)
        if repeated:
            here = next((memory for memory in held.values() if candidate.sees(memory)), None)
            reason = f"only repeats what was recalled: {repeated!r}"
            return candidate.decision("ignore", here, reason, target=here)
        lacking = self._lacking(candidate, held)
        near = await self.similar.near(connection, candidate, lacking, searched) if lacking else []
        resolution = resolve(candidate, held, near)
        await self._write(connection, candidate, resolution, expired)
        said_again = [*held.values(), *(step.memory for step in resolution.covered)]
        known = {memory.id: memory for memory in said_again}
        for memory in known.values():
            await self._refresh(connection, candidate, memory)
        if origin.message_id:
            for id in sorted({resolution.memory.id, *known}):
                await record(connection, id, [origin.message_id], "stated")
        decision = decision_of(candidate, resolution, near)
        now = candidate.changed.get(decision.id or "")
        return replace(decision, expires_at=now.expires_at) if now else decision

    async def _has_ended(
        self, connection: AsyncConnection, candidate: CandidateFact, held: Mapping[str, Memory]
    ) -> Decision | None:
        """The decision to ignore an earlier statement, in the words of a fact that has ended since: it has
        expired, or a later statement has replaced it."""
        origin, now = candidate.origin, candidate.now
        if origin.now or origin.said_at >= now or candidate.draft.replaces:
            return None
        for memory in held.values():
            over = memory.expires_at is not None and origin.said_at < memory.expires_at <= now
            if over and origin.live and candidate.expires_at is None:
                return candidate.decision("ignore", None, "it had already expired")
        lacking = origin.owners.difference(held)
        replaced = await self.store.replaced_since(connection, lacking, candidate.key, origin.said_at, now)
        if held or not replaced or lacking.difference(replaced):
            return None
        id = next(iter(replaced.values()))
        current = await self.store.current(connection, id, origin.audience, now)
        return candidate.decision("ignore", current, "said before what replaced it", target=current)

    async def _withdrawn(self, connection: AsyncConnection, candidate: CandidateFact) -> bool:
        """Whether the person has made this fact private and an old message or the prompt repeats it, or
        another fact of the same message. It stays private until they state it again."""
        if candidate.origin.place.private or not candidate.origin.live:
            return False
        private = await self.store.made_private(connection, candidate.origin.user)
        origin, content = candidate.origin, candidate.draft.content
        stated = states(origin.said, content)
        return any(
            candidate.restates(memory)
            or (same_words(memory.content, content) and not (stated and origin.said_at >= since))
            for memory, since in private
        )

    async def _write(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        resolution: Resolution,
        expired: Mapping[str, Memory],
    ) -> None:
        memory, fresh = resolution.memory, resolution.fresh
        for owner, old in expired.items():
            await self._supersede(connection, candidate, old, {owner}, memory.id, "had expired", held=False)
        for step in resolution.replaced:
            reason = step.verdict.reason
            await self._supersede(connection, candidate, step.memory, step.owners, memory.id, reason)
        if resolution.new:
            origin = candidate.origin
            aliases = await links_of(connection, origin.place, origin.user, memory.content)
            await self.store.insert(connection, memory, candidate.key, aliases)
            candidate.made.add(memory.id)
            candidate.changed[memory.id] = memory
            stated = (memory.id, "dense")
            texts, made = {stated: candidate.draft.content}, {stated: candidate.vector}
            await vectors.store(connection, self.similar.embedder.name, texts, made)
        elif fresh:
            await link(connection, memory.id, fresh, candidate.key)
            candidate.changed[memory.id] = replace(memory, owners=memory.owners | fresh)
        for step in resolution.outdated:  # stored as history of the newer memory, never shown as current
            reason = step.verdict.reason
            await self._supersede(
                connection, candidate, memory, step.owners, step.memory.id, reason, held=False
            )
        for step in resolution.replaced:
            gone, now = [step.memory.id], candidate.now
            await withhold(connection, now, memory_ids=gone, owners=step.owners, instead=memory.content)

    async def _supersede(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        old: Memory,
        owners: Set[str],
        new_id: str,
        reason: str,
        *,
        held: bool = True,
    ) -> None:
        user, now = candidate.origin.user, candidate.now
        await self.store.supersede(
            connection, old, owners, new_id=new_id, user=user, reason=reason, now=now, held=held
        )
        known = candidate.changed.get(old.id, old)
        candidate.changed[old.id] = replace(known, owners=known.owners - owners)

    async def _refresh(self, connection: AsyncConnection, candidate: CandidateFact, memory: Memory) -> None:
        """Refresh a memory that its teller stated again: the higher importance and the later end win."""
        if not (candidate.sees(memory) and candidate.decides_for(memory)):
            return
        values: dict[str, Any] = {}
        if candidate.draft.importance > memory.importance:
            values["importance"] = candidate.draft.importance
        if candidate.prolongs(memory):
            values["expires_at"] = candidate.expires_at
        if values:
            await self.store.refresh(connection, memory, **values)
            candidate.changed[memory.id] = replace(candidate.changed.get(memory.id, memory), **values)


def _of_one(stated: Sequence[tuple[Draft, Provenance]]) -> Sequence[tuple[Draft, Provenance]]:
    """The first statements, up to one for other owners."""
    first = [(origin.owners, origin.audience) for _, origin in stated[:1]]
    return [*takewhile(lambda one: [(one[1].owners, one[1].audience)] == first, stated)]


def _has_expired(memory: Memory, now: datetime) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now


def _still_valid(
    candidate: CandidateFact, held: Mapping[str, Memory]
) -> tuple[dict[str, Memory], dict[str, Memory]]:
    """The memories with the same words by owner, without those that the candidate corrects in something other
    than its words; and those that have expired, but are not purged yet."""
    expired = {owner: memory for owner, memory in held.items() if _has_expired(memory, candidate.now)}
    valid = {
        owner: memory
        for owner, memory in held.items()
        if owner not in expired
        and not (candidate.corrects(memory) and owner in candidate.decides_for(memory))
    }
    return valid, expired
