"""Apply the decision on a fact to the rows of each owner, in one transaction.

A correction in a channel supersedes the memory for the channel and its author. A private correction leaves
the channel's memory unchanged, so a channel never shows private statements.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import NotFound
from memory.facts.aliases import linked_names
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import same_words
from memory.facts.decide import Case, Resolution, Step
from memory.facts.derived import withhold
from memory.facts.refusal import states
from memory.facts.similar import SimilarFacts, SimilarSearch
from memory.index import stored_vectors
from memory.records import Decision, Memory, NewMemory
from memory.sql.memories.owner_links import link, made_private, replaced_since
from memory.sql.memories.store import MemoryStore
from memory.sql.rests_on import record
from memory.text.quoting import read_id

NOT_SEARCHED = SimilarSearch((), {}, None)


@dataclass(frozen=True, eq=False)
class FactRows:
    store: MemoryStore
    similar: SimilarFacts
    importance_floor: float

    async def store_decision(
        self, connection: AsyncConnection, candidate: CandidateFact, searched: SimilarSearch
    ) -> tuple[Decision, Case]:
        """Decide from the search results and newer statements, and store the decision."""
        origin = candidate.origin
        if candidate.proposed.replaces:  # another writer may have superseded that fact since
            new_memory = await self.replacing(connection, candidate.proposed, origin, candidate.now)
            candidate = replace(candidate, proposed=new_memory)
        case = await self._read(connection, candidate, searched)
        decision, resolution = case.decide(self.importance_floor)
        if resolution is None:
            return decision, case
        await self._write(connection, candidate, resolution)
        verbatim = candidate.still_valid(case.worded_so).values()
        restated = {m.id: m for m in (*verbatim, *(step.memory for step in resolution.covered))}
        for id, memory in restated.items():
            until = await self._refresh(connection, candidate, memory)
            decision = replace(decision, expires_at=until) if id == decision.id else decision
        if origin.message_id:
            # A trigger writes the evidence of a new memory.
            stating = set() if resolution.new else {resolution.memory.id}
            for id in sorted(stating.union(restated)):
                await record(connection, id, [origin.message_id], "stated")
        return decision, case

    async def _read(
        self, connection: AsyncConnection, candidate: CandidateFact, searched: SimilarSearch
    ) -> Case:
        """Read the inputs of the decision. If the message was erased, or the fact was withdrawn or has
        expired, that alone decides."""
        stated_in = candidate.origin.message_id if candidate.origin.live else None
        try:
            case = await self.similar.read(connection, candidate, searched, stated_in)
        except NotFound:
            erased = candidate.decision("ignore", None, "the message it came from has been erased")
            return Case.of(candidate, ended=erased)
        if await self._withdrawn(connection, candidate):
            private = candidate.decision("ignore", None, "it was made private, and not said here since")
            return replace(case, ended=private)
        return replace(case, ended=await self._has_ended(connection, candidate, case.worded_so))

    async def replacing(
        self, connection: AsyncConnection, new_memory: NewMemory, origin: Provenance, now: datetime
    ) -> NewMemory:
        """Return the new memory with the whole id of the fact that it corrects, or of that fact's
        replacement, and with its subjects if it has none. If the audience may read no such fact, `replaces`
        is None."""
        id = read_id(new_memory.replaces or "")
        corrected = await self.store.current(connection, id, origin.audience, now)
        if corrected is None:
            return replace(new_memory, replaces=None)
        return replace(new_memory, replaces=corrected.id, subjects=new_memory.subjects or corrected.subjects)

    async def supersede_stored(
        self, connection: AsyncConnection, candidate: CandidateFact, new: Memory, old: Memory, step: Step
    ) -> None:
        """Supersede one of two stored facts by the other, which takes over the importance and expiry."""
        stays = new if step.memory is old else old
        await self._supersede(connection, candidate, step, stays.id)
        if stays is old:
            await self._refresh(connection, candidate, old)
            if new.message_id:
                await record(connection, old.id, [new.message_id], "stated")

    async def _has_ended(
        self, connection: AsyncConnection, candidate: CandidateFact, verbatim: Mapping[str, Memory]
    ) -> Decision | None:
        """Return the decision to ignore a fact that was stated before it expired or was superseded."""
        origin, now = candidate.origin, candidate.now
        if origin.stated_now or origin.said_at >= now or candidate.proposed.replaces:
            return None
        for memory in verbatim.values():
            expired = memory.expires_at is not None and origin.said_at < memory.expires_at <= now
            if expired and origin.live and candidate.expires_at is None:
                return candidate.decision("ignore", None, "it had already expired")
        lacking = origin.owners.difference(verbatim)
        replaced = await replaced_since(connection, lacking, candidate.key, origin.said_at, now)
        if verbatim or not replaced or lacking.difference(replaced):
            return None
        id = next(iter(replaced.values()))
        current = await self.store.current(connection, id, origin.audience, now)
        return candidate.decision("ignore", current, "said before what replaced it", target=current)

    async def _withdrawn(self, connection: AsyncConnection, candidate: CandidateFact) -> bool:
        """Return whether the person withdrew this fact, or another fact of its message, and has not stated it
        there again."""
        if candidate.origin.place.private or not candidate.origin.live:
            return False
        private = await made_private(connection, candidate.origin.user, candidate.now)
        origin, content = candidate.origin, candidate.proposed.content
        stated = states(origin.said, content)
        return any(
            candidate.restates(memory)
            or (same_words(memory.content, content) and not (stated and origin.said_at >= since))
            for memory, since in private
        )

    async def _write(
        self, connection: AsyncConnection, candidate: CandidateFact, resolution: Resolution
    ) -> None:
        memory, outdated = resolution.memory, resolution.outdated
        for step in resolution.replaced:
            await self._supersede(connection, candidate, step, memory.id)
        if resolution.new:
            origin = candidate.origin
            aliases = await linked_names(connection, origin.place, origin.user, memory.content)
            never = {owner for step in outdated for owner in step.owners}
            await self.store.insert(connection, {candidate.key: memory}, candidate.now, aliases, never)
            candidate.made.add(memory.id)
            stated = (memory.id, "dense")
            texts, made = {stated: candidate.proposed.content}, {stated: candidate.vector}
            await stored_vectors.store(connection, self.similar.embedder.name, texts, made)
        elif resolution.fresh:
            await link(connection, memory.id, resolution.fresh, candidate.key, candidate.now)
        for step in outdated:  # stored as history of the newer memory, never shown as current
            older = replace(step, memory=memory)
            await self._supersede(connection, candidate, older, step.memory.id, in_force=False)

    async def _supersede(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        step: Step,
        by: str,
        *,
        in_force: bool = True,
    ) -> None:
        user, now, reason = candidate.origin.user, candidate.now, step.verdict.reason
        await self.store.supersede(
            connection, step.memory, step.owners, by, user=user, reason=reason, now=now, in_force=in_force
        )
        if in_force:
            await withhold(connection, now, memory_ids=[step.memory.id], owners=step.owners, telling=True)

    async def _refresh(
        self, connection: AsyncConnection, candidate: CandidateFact, memory: Memory
    ) -> datetime | None:
        """Update the importance and expiry of a memory that was stated again: the higher importance and the
        later expiry win. Returns the expiry."""
        values: dict[str, Any] = {}
        if candidate.sees(memory) and candidate.decides_for(memory):
            if candidate.proposed.importance > memory.importance:
                values["importance"] = candidate.proposed.importance
            if candidate.prolongs(memory):
                values["expires_at"] = candidate.expires_at
        if values:
            await self.store.refresh(connection, memory, **values)
        until: datetime | None = values.get("expires_at", memory.expires_at)
        return until
