"""Deciding what a new statement does: add, merge, replace or ignore.

One path for the `remember` tool, the answer's memories[] and every caller. In this order: refuse what is not
worth keeping; an echo of what was just recalled; the same words; what resembles it; else insert. Whether two
statements say the same is for `memory.compare`, and what follows from it for `memory.outcome`.

It is decided an owner at a time. A refinement said in a channel replaces the channel's memory and the
speaker's own; the same refinement said in private leaves the channel's as it is. So nothing said in private
ever shows through what happened to a memory of a channel.
"""

import json
import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.aliases import linked
from memory.case import Case, Origin
from memory.index.sync import Indexing
from memory.likeness import Likeness
from memory.outcome import Outcome, decision_of, outcome_of
from memory.records import Decision, Draft, Memory
from memory.search.names import fold
from memory.spans import note, span
from memory.sql.engine import Database, Overtaken
from memory.sql.memories import MemoryStore
from memory.sql.messages import missing

log = logging.getLogger("hachi.memory")

MAX_CONTENT = 2_000
"""Characters of one memory. A fact is a sentence; more than this is a document."""


class Remembering:
    def __init__(
        self,
        database: Database,
        store: MemoryStore,
        likeness: Likeness,
        indexing: Indexing,
        clock: Callable[[], datetime],
        importance_floor: float,
    ) -> None:
        self._database = database
        self._store = store
        self._likeness = likeness
        self._indexing = indexing
        self._clock = clock
        self._floor = importance_floor

    async def remember(self, drafts: Sequence[Draft], origin: Origin) -> list[Decision]:
        """Decide on each draft, in order, each in a transaction of its own; durable on return."""
        if not drafts:
            return []
        if not self._indexing.begun:  # what the index lacks could not be compared with
            await self._indexing.try_to_catch_up()
        drafts = [replace(draft, content=_tidy(draft.content)) for draft in drafts]
        vectors = await self._likeness.embed([draft.content for draft in drafts])
        now = self._clock()
        cases = [Case(draft, origin, vector, now) for draft, vector in zip(drafts, vectors, strict=True)]
        await self._likeness.ask_judge([case for case in cases if self._refuse(case) is None])
        with span("decision"):
            decisions = [self._refuse(case) or await self._decide(case) for case in cases]
            note(decisions=decisions)
        _log(origin, decisions)
        return decisions

    async def note_names(self, origin: Origin, speaker: str) -> list[Decision]:
        """Keep what the message itself plainly says of people's names ("call me Mick"), where the model did
        not: from then on both names find the same person."""
        known = await self._store.known_aliases(origin.audience, self._clock())
        drafts = [
            Draft(f"{name} is also called {other}", (fold(name), fold(other)), importance=0.8)
            for name, other in linked(origin.said, speaker)
            if fold(other) not in map(fold, known.others(name))
        ]
        return await self.remember(drafts, origin)

    def _refuse(self, case: Case) -> Decision | None:
        draft = case.draft
        if not draft.content:
            return Decision(draft.content, "ignore", None, "there is nothing in it")
        if len(draft.content) > MAX_CONTENT:
            reason = f"longer than {MAX_CONTENT} characters; say it as single facts"
            return Decision(draft.content[:200] + " …", "ignore", None, reason)
        if draft.importance < self._floor:
            reason = f"importance {draft.importance:g} is under {self._floor:g}"
            return Decision(draft.content, "ignore", None, reason)
        if case.expires_at is not None and case.expires_at <= case.now:
            reason = "it had already expired"
            return Decision(draft.content, "ignore", None, reason, expires_at=case.expires_at)
        return None

    async def _decide(self, case: Case) -> Decision:
        tries = 3
        while True:
            tries -= 1
            case.changed.clear()
            try:
                async with self._database.write(lock=case.origin.owners) as connection:
                    decision = await self._settle(connection, case)
            except Overtaken:
                if not tries:
                    raise
            else:
                await self._indexing.show(list(case.changed.values()), case.vectors)
                return decision

    async def _settle(self, connection: AsyncConnection, case: Case) -> Decision:
        if await _erased(connection, case.origin):
            return case.decision("ignore", None, "the message it came from has been erased")
        if await self._taken_back(connection, case):
            return case.decision("ignore", None, "it was made private, and not said here since")
        held = await self._held(connection, case)
        if echoed := self._likeness.echoed(case):
            here = next((memory for memory in held.values() if case.sees(memory)), None)
            return case.decision("ignore", here, f"only repeats what was recalled: {echoed!r}", target=here)
        lacking = case.origin.owners if case.draft.replaces else case.origin.owners.difference(held)
        near = await self._likeness.near(connection, case, lacking) if lacking else []
        outcome = outcome_of(case, held, near)
        await self._write(connection, case, outcome)
        said_again = [*held.values(), *(step.memory for step in outcome.covered)]
        for memory in {memory.id: memory for memory in said_again}.values():
            await self._refresh(connection, case, memory)
        decision = decision_of(case, outcome, near)
        now = case.changed.get(decision.id or "")
        return replace(decision, expires_at=now.expires_at) if now else decision

    async def _taken_back(self, connection: AsyncConnection, case: Case) -> bool:
        """Whether it is what the person took back from places, found once more in what they had said there,
        or in what the model was shown: it stays theirs alone until they say it again."""
        if case.origin.place.private or not case.origin.live:
            return False
        private = await self._store.made_private(connection, case.origin.user)
        return any(self._likeness.tells(case, memory, since) for memory, since in private)

    async def _held(self, connection: AsyncConnection, case: Case) -> dict[str, Memory]:
        """Who of the owners has these very words. What has expired but is not purged yet gives way, and so
        does what is to be corrected in something else than its words."""
        held = await self._store.holders(connection, case.origin.owners, case.key)
        for owner, memory in list(held.items()):
            if memory.expires_at is not None and memory.expires_at <= case.now:
                await self._give_way(connection, case, memory, {owner}, None, "had expired")
                del held[owner]
            elif case.corrects(memory):
                del held[owner]
        return held

    async def _write(self, connection: AsyncConnection, case: Case, outcome: Outcome) -> None:
        memory = outcome.memory
        for step in outcome.replaced:
            reason = step.verdict.reason
            await self._give_way(connection, case, step.memory, step.owners, memory.id, reason)
        if outcome.new:
            await self._store.insert(connection, memory, case.key, linked(memory.content))
            case.changed[memory.id] = memory
            if case.vector is not None:
                case.vectors[memory.id] = case.vector
        elif outcome.fresh:
            await self._store.link(connection, memory.id, outcome.fresh, case.key)
            case.changed[memory.id] = replace(memory, owners=memory.owners | outcome.fresh)
        for step in outcome.outdated:
            # Said before what is known now: kept in the history, never shown as current.
            await self._give_way(connection, case, memory, step.owners, step.memory.id, step.verdict.reason)

    async def _give_way(
        self,
        connection: AsyncConnection,
        case: Case,
        old: Memory,
        owners: Set[str],
        new_id: str | None,
        reason: str,
    ) -> None:
        user = case.origin.user
        await self._store.supersede(
            connection, old, owners, new_id=new_id, user=user, reason=reason, now=case.now
        )
        known = case.changed.get(old.id, old)
        case.changed[old.id] = replace(known, owners=known.owners - owners)

    async def _refresh(self, connection: AsyncConnection, case: Case, memory: Memory) -> None:
        """It was said again: it counts at least as much, and holds at least as long."""
        values: dict[str, Any] = {}
        if case.draft.importance > memory.importance:
            values["importance"] = case.draft.importance
        if memory.expires_at is not None and (case.expires_at is None or case.expires_at > memory.expires_at):
            values["expires_at"] = case.expires_at
        if values and case.sees(memory):
            await self._store.refresh(connection, memory, **values)
            case.changed[memory.id] = replace(case.changed.get(memory.id, memory), **values)


async def _erased(connection: AsyncConnection, origin: Origin) -> bool:
    """Whether who said it is to be forgotten, since they were erased while it was thought about."""
    if not origin.live or origin.message_id is None:
        return False
    return bool(await missing(connection, [origin.message_id]))


def _tidy(content: str) -> str:
    """One line; no NUL (PostgreSQL takes none) and no half of a surrogate pair (nothing can encode it)."""
    clean = content.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(clean.split())


def _log(origin: Origin, decisions: Sequence[Decision]) -> None:
    """One structured line a decision-making; `hachi stats` and an operator's tools read it."""
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
