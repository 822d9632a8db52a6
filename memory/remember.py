"""Deciding what a new statement does: add, merge, replace or ignore.

One path for the `remember` tool, the answer's memories[] and every caller. In this order: refuse what is not
worth keeping; the same words; an echo of what was just recalled; what resembles it; else insert. Whether two
statements say the same is for `memory.compare`; this module does what follows from it.

It is decided an owner at a time. A refinement said in a channel replaces the channel's memory and the
speaker's own; the same refinement said in private leaves the channel's as it is. So nothing said in private
ever shows through what happened to a memory of a channel.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.aliases import linked
from memory.case import Case, Origin
from memory.compare import Verdict
from memory.database import Database
from memory.indexing import Indexing
from memory.likeness import Likeness
from memory.records import Action, Decision, Draft, Memory
from memory.store import MemoryStore

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
        drafts = [replace(draft, content=_tidy(draft.content)) for draft in drafts]
        vectors = await self._likeness.embed([draft.content for draft in drafts])
        now = self._clock()
        cases = [Case(draft, origin, vector, now) for draft, vector in zip(drafts, vectors, strict=True)]
        await self._likeness.ask_judge([case for case in cases if self._refuse(case) is None])
        decisions = [self._refuse(case) or await self._decide(case) for case in cases]
        if drafts:
            _log(origin, decisions)
        return decisions

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
        for _ in range(3):
            case.changed.clear()
            try:
                async with self._database.write(lock=case.origin.owners) as connection:
                    decision = await self._settle(connection, case)
            except IntegrityError:
                continue  # a parallel turn stored the same words first: look again, now they are there
            await self._indexing.show(case.changed, case.vectors)
            return decision
        raise AssertionError("a unique key was broken three times in a row")

    async def _settle(self, connection: AsyncConnection, case: Case) -> Decision:
        open_owners = set(case.origin.owners)
        held = await self._held(connection, case)
        if held:
            open_owners -= set(held)
            for memory in {memory.id: memory for memory in held.values()}.values():
                await self._refresh(connection, memory, case)
            visible = next((m for m in held.values() if case.sees(m)), None)
            if visible is not None:
                if not case.echo(visible):
                    await self._store.link(connection, visible.id, open_owners, case.key)
                    case.changed.append(replace(visible, owners=visible.owners | open_owners))
                return case.decision("ignore", visible, "known word for word", target=visible)
        if echoed := case.echoed():
            return case.decision("ignore", None, f"only repeats what was recalled: {echoed!r}")

        near = await self._likeness.near(connection, case, open_owners)
        replaced: list[tuple[Memory, Verdict]] = []
        for memory, verdict in near:
            if verdict.relation in ("same", "coarser"):
                open_owners -= memory.owners
                await self._refresh(connection, memory, case)
                if not open_owners:
                    action: Action = "merge" if verdict.relation == "same" else "ignore"
                    return case.decision(action, memory, verdict.reason, target=memory)
            elif verdict.relation in ("richer", "contradiction"):
                replaced.append((memory, verdict))
        return await self._insert(connection, case, open_owners, replaced, near)

    async def _held(self, connection: AsyncConnection, case: Case) -> dict[str, Memory]:
        """Who of the owners has these very words. What has expired but is not purged yet gives way."""
        held = await self._store.holders(connection, case.origin.owners, case.key)
        for owner, memory in list(held.items()):
            if memory.expires_at is not None and memory.expires_at <= case.now:
                await self._store.supersede(
                    connection,
                    memory,
                    [owner],
                    new_id=None,
                    user=case.origin.user,
                    reason="had expired",
                    now=case.now,
                )
                del held[owner]
        return held

    async def _refresh(self, connection: AsyncConnection, memory: Memory, case: Case) -> None:
        """It was said again: it counts at least as much, and holds at least as long."""
        values: dict[str, Any] = {}
        if case.draft.importance > memory.importance:
            values["importance"] = case.draft.importance
        if memory.expires_at is not None and (case.expires_at is None or case.expires_at > memory.expires_at):
            values["expires_at"] = case.expires_at
        if values and case.sees(memory):
            await self._store.refresh(connection, memory, **values)
            case.changed.append(replace(memory, **values))

    async def _insert(
        self,
        connection: AsyncConnection,
        case: Case,
        owners: set[str],
        replaced: list[tuple[Memory, Verdict]],
        near: list[tuple[Memory, Verdict]],
    ) -> Decision:
        memory = case.memory(owners)
        stale = [(m, v) for m, v in near if v.relation == "stale" and m.owners & owners]
        refined = [m for m, v in replaced if v.relation == "richer" and case.sees(m)]
        if refined:  # the more detailed one inherits what the other had earned
            memory = replace(
                memory,
                subjects=tuple(dict.fromkeys([*memory.subjects, *(s for m in refined for s in m.subjects)])),
                importance=max(memory.importance, *(m.importance for m in refined)),
                expires_at=_later([memory.expires_at, *(m.expires_at for m in refined)]),
            )
        for old, verdict in replaced:
            case.changed.append(replace(old, owners=old.owners - owners))
            await self._store.supersede(
                connection,
                old,
                old.owners & owners,
                new_id=memory.id,
                user=case.origin.user,
                reason=verdict.reason,
                now=case.now,
            )
        await self._store.insert(connection, memory, case.key, linked(memory.content))
        case.changed.append(memory)
        if case.vector is not None:
            case.vectors[memory.id] = case.vector
        if stale:
            # Said before what is known now: kept in the history, never shown as current.
            current, verdict = stale[0]
            outdated = current.owners & owners
            case.changed[-1] = replace(memory, owners=frozenset(owners) - outdated)
            await self._store.supersede(
                connection,
                memory,
                outdated,
                new_id=current.id,
                user=case.origin.user,
                reason=verdict.reason,
                now=case.now,
            )
            if outdated == owners:
                return case.decision("ignore", current, verdict.reason, target=current)
        seen = [(old, verdict) for old, verdict in replaced if case.sees(old)]
        close = tuple(m for m, v in near if v.relation in ("doubtful", "different") and case.sees(m))[:3]
        if seen:
            old, verdict = seen[0]
            return case.decision("replace", memory, verdict.reason, target=old, close=close)
        return case.decision("add", memory, "new", close=close)


def _tidy(content: str) -> str:
    """One line; no NUL (PostgreSQL takes none) and no half of a surrogate pair (nothing can encode it)."""
    clean = content.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(clean.split())


def _later(times: Sequence[datetime | None]) -> datetime | None:
    return None if None in times else max(time for time in times if time is not None)


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
