"""Applies the decision on a fact to the rows, in one transaction.

Each owner is decided on separately. A correction stated in a channel replaces the channel's memory and the
speaker's own. Stated in private, it does not change the channel's memory, so a channel's memory never shows a
private statement.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import NotFound
from memory.facts.aliases import links_of
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import same_words
from memory.facts.decide import Resolution, Step, decision_of, lacking_owners, resolve, still_valid
from memory.facts.derived import withhold
from memory.facts.refusal import repeats_found, states
from memory.facts.similar import Searched, SimilarFacts
from memory.index import vectors
from memory.records import Decision, Draft, Memory
from memory.sql.engine.errors import Overtaken
from memory.sql.memories.owner_links import link, made_private, replaced_since
from memory.sql.memories.store import MemoryStore
from memory.sql.rests_on import record
from memory.text.short_ids import read_id

NOT_SEARCHED = Searched(frozenset(), (), {}, None)


@dataclass(frozen=True, eq=False)
class FactRows:
    store: MemoryStore
    similar: SimilarFacts

    async def settle(
        self, connection: AsyncConnection, candidate: CandidateFact, searched: Searched
    ) -> Decision:
        """Decide on the candidate by what was `searched` and what has been told since, and store that. Raises
        Overtaken where what it rests on has changed."""
        origin = candidate.origin
        if candidate.draft.replaces:
            draft = await self.replacing(connection, candidate.draft, origin, candidate.now)
            if draft.replaces != candidate.draft.replaces:
                raise Overtaken(
                    f"{self.store.database.where}: what it corrects has just been replaced; try again"
                )
        worded_so, ended = await self._by_rows(connection, candidate)
        candidate.known.update(made=frozenset(candidate.made), worded_so=worded_so, ended=ended)
        if decided := ended or repeats_found(candidate, worded_so):
            return decided
        worded_so, expired = still_valid(candidate, worded_so)
        lacking = lacking_owners(candidate, worded_so)
        near = await self.similar.near(connection, candidate, lacking, searched) if lacking else []
        resolution = resolve(candidate, worded_so, near)
        await self._write(connection, candidate, resolution, expired)
        said_again = [*worded_so.values(), *(step.memory for step in resolution.covered)]
        known = {memory.id: memory for memory in said_again}
        for memory in known.values():
            await self._refresh(connection, candidate, memory)
        if origin.message_id:
            here = set() if resolution.new else {resolution.memory.id}  # a new one rests on its message
            for id in sorted(here.union(known)):
                await record(connection, id, [origin.message_id], "stated")
        decision = decision_of(candidate, resolution, near)
        now = candidate.changed.get(decision.id or "")
        return replace(decision, expires_at=now.expires_at) if now else decision

    async def _by_rows(
        self, connection: AsyncConnection, candidate: CandidateFact
    ) -> tuple[dict[str, Memory], Decision | None]:
        """The memories in the same words by owner, and the decision to ignore the candidate because its
        message is gone, it was made private, or it has ended since; None if none of that is so."""
        origin = candidate.origin
        stated_in = origin.message_id if origin.live else None
        try:
            worded_so = await self.store.holders(connection, origin.owners, candidate.key, stated_in)
        except NotFound:
            return {}, candidate.decision("ignore", None, "the message it came from has been erased")
        if await self._withdrawn(connection, candidate):
            private = candidate.decision("ignore", None, "it was made private, and not said here since")
            return worded_so, private
        return worded_so, await self._has_ended(connection, candidate, worded_so)

    async def replacing(
        self, connection: AsyncConnection, draft: Draft, origin: Provenance, now: datetime
    ) -> Draft:
        """The draft with the whole id of what it replaces or, if that was replaced already, of what holds in
        its place, and with its subjects unless it has its own. A fact that replaces nothing that the people
        present may read stands beside what is there."""
        named = read_id(draft.replaces or "")
        found = await self.store.current(connection, named, origin.audience, now)
        if found is None:
            return replace(draft, replaces=None)
        return replace(draft, replaces=found.id, subjects=draft.subjects or found.subjects)

    async def step_back(
        self, connection: AsyncConnection, candidate: CandidateFact, new: Memory, old: Memory, step: Step
    ) -> None:
        """Let one of two stored facts step back for the other, which keeps what that one adds to it."""
        stays = new if step.memory is old else old
        await self._supersede(connection, candidate, step.memory, step.owners, stays.id, step.verdict.reason)
        if stays is old:
            await self._refresh(connection, candidate, old)
            if new.message_id:
                await record(connection, old.id, [new.message_id], "stated")

    async def _has_ended(
        self, connection: AsyncConnection, candidate: CandidateFact, worded_so: Mapping[str, Memory]
    ) -> Decision | None:
        """The decision to ignore an earlier statement, in the words of a fact that has ended since: it has
        expired, or a later statement has replaced it."""
        origin, now = candidate.origin, candidate.now
        if origin.stated_now or origin.said_at >= now or candidate.draft.replaces:
            return None
        for memory in worded_so.values():
            over = memory.expires_at is not None and origin.said_at < memory.expires_at <= now
            if over and origin.live and candidate.expires_at is None:
                return candidate.decision("ignore", None, "it had already expired")
        lacking = origin.owners.difference(worded_so)
        replaced = await replaced_since(connection, lacking, candidate.key, origin.said_at, now)
        if worded_so or not replaced or lacking.difference(replaced):
            return None
        id = next(iter(replaced.values()))
        current = await self.store.current(connection, id, origin.audience, now)
        return candidate.decision("ignore", current, "said before what replaced it", target=current)

    async def _withdrawn(self, connection: AsyncConnection, candidate: CandidateFact) -> bool:
        """Whether the person has made this fact private and an old message or the prompt repeats it, or
        another fact of the same message. It stays private until they state it again."""
        if candidate.origin.place.private or not candidate.origin.live:
            return False
        private = await made_private(connection, candidate.origin.user)
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
            await self._supersede(
                connection, candidate, old, {owner}, memory.id, "had expired", in_force=False
            )
        for step in resolution.replaced:
            reason = step.verdict.reason
            await self._supersede(connection, candidate, step.memory, step.owners, memory.id, reason)
        if resolution.new:
            origin = candidate.origin
            aliases = await links_of(connection, origin.place, origin.user, memory.content)
            await self.store.insert(connection, {candidate.key: memory}, aliases)
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
                connection, candidate, memory, step.owners, step.memory.id, reason, in_force=False
            )

    async def _supersede(
        self,
        connection: AsyncConnection,
        candidate: CandidateFact,
        old: Memory,
        owners: Set[str],
        new_id: str,
        reason: str,
        *,
        in_force: bool = True,
    ) -> None:
        user, now = candidate.origin.user, candidate.now
        await self.store.supersede(
            connection, old, owners, new_id=new_id, user=user, reason=reason, now=now, in_force=in_force
        )
        known = candidate.changed.get(old.id, old)
        candidate.changed[old.id] = replace(known, owners=known.owners - owners)
        if in_force:
            await withhold(connection, now, memory_ids=[old.id], owners=owners)

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
