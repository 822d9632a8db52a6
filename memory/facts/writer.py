"""Writes facts. Each candidate ends in add, merge, replace or ignore.

The `remember` tool, the answer's memories[] and every other caller use this path. The order: refuse what is
not worth keeping; ignore an echo of recalled facts; look for the same words; look for similar facts; else
insert. `memory.facts.compare` relates two statements, `memory.facts.decide` decides.

Each owner is decided on separately. A refinement stated in a channel replaces the channel's memory and the
speaker's own. Stated in private, it does not change the channel's memory, so a channel's memory never shows a
private statement.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.facts import evidence
from memory.facts.aliases import linked
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.decide import Resolution, decision_of, figures_of, resolve
from memory.facts.derived import withhold
from memory.facts.similar import SimilarFacts
from memory.index.sync import IndexSync
from memory.records import Decision, Draft, Memory
from memory.spans import note, span
from memory.sql.engine import Database
from memory.sql.errors import Overtaken
from memory.sql.memories import MemoryStore, link
from memory.sql.messages import missing
from memory.text import storable
from memory.text.names import fold

log = logging.getLogger("hachi.memory")

MAX_CONTENT = 2_000
"""The most characters of one memory. A fact is a sentence; anything longer is a document."""
TRIES = 3
"""How often a decision is tried while other writers change the same memories."""


class FactWriter:
    def __init__(
        self,
        database: Database,
        store: MemoryStore,
        similar: SimilarFacts,
        indexing: IndexSync,
        clock: Callable[[], datetime],
        importance_floor: float,
        count: Callable[[str, Mapping[str, int]], None] = lambda *_: None,
    ) -> None:
        self._database = database
        self._store = store
        self._similar = similar
        self._indexing = indexing
        self._clock = clock
        self._floor = importance_floor
        self._count = count

    async def remember(self, drafts: Sequence[Draft], origin: Provenance) -> list[Decision]:
        """Decide on each draft in order, each in its own transaction; the decisions are durable on return."""
        if not drafts:
            return []
        if not self._indexing.begun:  # the comparison needs a complete index
            await self._indexing.try_to_catch_up()
        drafts = [replace(draft, content=_one_line(draft.content)) for draft in drafts]
        vectors = await self._similar.embed([draft.content for draft in drafts])
        now = self._clock()
        facts = [
            CandidateFact(draft, origin, vector, now) for draft, vector in zip(drafts, vectors, strict=True)
        ]
        refusals = [await self._refuse(fact) for fact in facts]
        judged = [fact for fact, refused in zip(facts, refusals, strict=True) if refused is None]
        await self._similar.ask_judge(judged)
        with span("decision"):
            decisions = [
                refused or await self._decide(fact) for fact, refused in zip(facts, refusals, strict=True)
            ]
            note(decisions=decisions)
        self._count(origin.user, figures_of(decisions))
        _log(origin, decisions)
        return decisions

    async def note_names(self, origin: Provenance, speaker: str) -> list[Decision]:
        """Store the names that the message links ("call me Mick") and that are not linked yet, so that a
        search for either name finds the person."""
        known = await self._store.known_aliases(origin.audience, self._clock())
        drafts = [
            Draft(f"{name} is also called {other}", (fold(name), fold(other)), importance=0.8)
            for name, other in linked(origin.said, speaker)
            if fold(other) not in map(fold, known.others(name))
        ]
        return await self.remember(drafts, origin)

    async def _refuse(self, candidate: CandidateFact) -> Decision | None:
        content, importance = candidate.draft.content, candidate.draft.importance
        if not content:
            return Decision(content, "ignore", None, "there is nothing in it")
        if len(content) > MAX_CONTENT:
            reason = f"longer than {MAX_CONTENT} characters; say it as single facts"
            return Decision(content[:200] + " …", "ignore", None, reason)
        if importance < self._floor:
            return Decision(content, "ignore", None, f"importance {importance:g} is under {self._floor:g}")
        until = candidate.expires_at
        if until is not None and until <= candidate.now:
            return Decision(content, "ignore", None, "it had already expired", expires_at=until)
        if refusal := evidence.refusal(content, candidate.origin):
            return Decision(content, "ignore", None, refusal)
        if await self._is_own_knowledge(candidate):
            return Decision(content, "ignore", None, evidence.FROM_QUESTION)
        return None

    async def _is_own_knowledge(self, candidate: CandidateFact) -> bool:
        content, origin = candidate.draft.content, candidate.origin
        if not evidence.is_own_knowledge(content, origin):
            return False
        known = await self._store.known_aliases(origin.audience, candidate.now)
        return evidence.is_own_knowledge(content, origin, known.others(origin.user))

    async def _decide(self, candidate: CandidateFact) -> Decision:
        for tries_left in reversed(range(TRIES)):
            candidate.changed.clear()
            try:
                async with self._database.write(lock=candidate.origin.owners) as connection:
                    decision = await self._settle(connection, candidate)
            except Overtaken:
                if not tries_left:
                    raise
            else:
                break
        await self._indexing.show(list(candidate.changed.values()), candidate.vectors)
        return decision

    async def _settle(self, connection: AsyncConnection, candidate: CandidateFact) -> Decision:
        if await _erased(connection, candidate.origin):
            return candidate.decision("ignore", None, "the message it came from has been erased")
        if await self._withdrawn(connection, candidate):
            return candidate.decision("ignore", None, "it was made private, and not said here since")
        held = await self._held(connection, candidate)
        if echoed := self._similar.echoed(candidate):
            here = next((memory for memory in held.values() if candidate.sees(memory)), None)
            reason = f"only repeats what was recalled: {echoed!r}"
            return candidate.decision("ignore", here, reason, target=here)
        owners = candidate.origin.owners
        lacking = owners if candidate.draft.replaces else owners.difference(held)
        near = await self._similar.near(connection, candidate, lacking) if lacking else []
        resolution = resolve(candidate, held, near)
        await self._write(connection, candidate, resolution)
        said_again = [*held.values(), *(step.memory for step in resolution.covered)]
        known = {memory.id: memory for memory in said_again}
        for memory in known.values():
            await self._refresh(connection, candidate, memory)
        if candidate.origin.message_id:
            stated = {resolution.memory.id, *known}
            await self._store.add_source(connection, stated, candidate.origin.message_id)
        decision = decision_of(candidate, resolution, near)
        now = candidate.changed.get(decision.id or "")
        return replace(decision, expires_at=now.expires_at) if now else decision

    async def _withdrawn(self, connection: AsyncConnection, candidate: CandidateFact) -> bool:
        """Whether the person has made this fact private and an old message or the prompt repeats it. It stays
        private until they state it again."""
        if candidate.origin.place.private or not candidate.origin.live:
            return False
        private = await self._store.made_private(connection, candidate.origin.user)
        return any(self._similar.says_again(candidate, memory, since) for memory, since in private)

    async def _held(self, connection: AsyncConnection, candidate: CandidateFact) -> dict[str, Memory]:
        """The memory with the same words, by owner. Supersedes one that has expired but is not purged yet,
        and omits one that the candidate corrects in something other than its words."""
        held = await self._store.holders(connection, candidate.origin.owners, candidate.key)
        for owner, memory in list(held.items()):
            if memory.expires_at is not None and memory.expires_at <= candidate.now:
                await self._supersede(connection, candidate, memory, {owner}, None, "had expired")
                del held[owner]
            elif candidate.corrects(memory):
                del held[owner]
        return held

    async def _write(
        self, connection: AsyncConnection, candidate: CandidateFact, resolution: Resolution
    ) -> None:
        memory, fresh = resolution.memory, resolution.fresh
        for step in resolution.replaced:
            reason = step.verdict.reason
            await self._supersede(connection, candidate, step.memory, step.owners, memory.id, reason)
        if resolution.new:
            await self._store.insert(connection, memory, candidate.key, linked(memory.content))
            candidate.changed[memory.id] = memory
            if candidate.vector is not None:
                candidate.vectors[memory.id] = candidate.vector
        elif fresh:
            await link(connection, memory.id, fresh, candidate.key)
            candidate.changed[memory.id] = replace(memory, owners=memory.owners | fresh)
        for step in resolution.outdated:  # stored as history of the newer memory, never shown as current
            reason = step.verdict.reason
            await self._supersede(connection, candidate, memory, step.owners, step.memory.id, reason)
        for step in resolution.replaced:
            if step.verdict.relation == "contradiction":  # a refinement leaves what it refines true
                gone, now = [step.memory.id], candidate.now
                await withhold(connection, now, memory_ids=gone, owners=step.owners, instead=memory.content)

    async def _supersede(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        old: Memory,
        owners: Set[str],
        new_id: str | None,
        reason: str,
    ) -> None:
        user, now = candidate.origin.user, candidate.now
        await self._store.supersede(connection, old, owners, new_id=new_id, user=user, reason=reason, now=now)
        known = candidate.changed.get(old.id, old)
        candidate.changed[old.id] = replace(known, owners=known.owners - owners)

    async def _refresh(self, connection: AsyncConnection, candidate: CandidateFact, memory: Memory) -> None:
        """Refresh a memory that was stated again: the higher importance and the later expiry win."""
        values: dict[str, Any] = {}
        importance, until = candidate.draft.importance, candidate.expires_at
        if importance > memory.importance:
            values["importance"] = importance
        if memory.expires_at is not None and (until is None or until > memory.expires_at):
            values["expires_at"] = until
        if values and candidate.sees(memory):
            await self._store.refresh(connection, memory, **values)
            candidate.changed[memory.id] = replace(candidate.changed.get(memory.id, memory), **values)


async def _erased(connection: AsyncConnection, origin: Provenance) -> bool:
    """Whether the message was erased or forgotten since."""
    if not origin.live or origin.message_id is None:
        return False
    return bool(await missing(connection, [origin.message_id]))


def _one_line(content: str) -> str:
    """The content on one line, without NUL, which PostgreSQL refuses, and without lone surrogates."""
    return " ".join(storable(content).split())


def _log(origin: Provenance, decisions: Sequence[Decision]) -> None:
    """One line of JSON for each call; `hachi stats` and an operator's tools read it."""
    line = {
        "event": "memory_decision",
        "user_id": origin.user,
        "input_message_length": len(origin.said),
        "extracted_count": len(decisions),
        "decisions": [
            {"fact": d.content, "action": d.action}
            | ({"target_id": d.target_id} if d.target_id else {})
            | {"reason": d.reason}
            for d in decisions
        ],
    }
    log.info(json.dumps(line, ensure_ascii=False))
