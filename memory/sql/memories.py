"""Memories in SQL: the record of truth.

Whose a memory is stands in its links (`memory_owners`). Being replaced happens an owner at a time: the link
is marked superseded, the row and its text stay for history and undo. A memory without an active link is
readable by nobody.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import spans
from memory.audience import PRIVATE, Audience, user_key
from memory.errors import NotFound
from memory.facts.aliases import Aliases
from memory.records import Memory
from memory.sql.conditions import (
    ALIASES,
    BY_IDS,
    CANDIDATES,
    aliases_for,
    all_readable,
    fetch,
    fetch_revisions,
    index_again,
    is_active,
    is_held,
    readable,
    unexpired,
    with_owners,
)
from memory.sql.engine import Database, Overtaken
from memory.sql.tables import memories, memory_aliases, memory_owners, memory_updates, waits

CORRECTED = "corrected on purpose"
"""Why something gave way that people had pointed at."""
MADE_PRIVATE = "made private"
"""The reason of the step, from a memory to itself, that took it back from the places it was told in."""
WHOLE_ID = 36
"""Characters of a uuid."""


A_MOMENT = timedelta(seconds=2)
"""For so long it may go unnoticed that another process has learned of a name."""
MOST_KEPT = 10_000
"""Readers whose names are kept in this process."""


@dataclass(frozen=True, slots=True)
class _Kept:
    aliases: Aliases
    writes: int
    at: datetime


def tellers(owners: Iterable[str], user: str) -> set[str]:
    """The keys of the people by whose word a memory is known: `user`, who told it first, and those among its
    active owners."""
    return {owner for owner in owners if owner.startswith("user:")} | {user_key(user)}


def _is_place(owner: str) -> bool:
    return owner.startswith("place:")


class MemoryStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._aliases: dict[frozenset[str], _Kept] = {}

    # Reading. Every one takes an audience.

    async def get(self, id: str, audience: Audience, now: datetime) -> Memory:
        """One memory by its id, or by the first eight or more characters of it."""
        begun = 8 <= len(id) < WHOLE_ID  # a search for a beginning reads every row
        matches = memories.c.id.startswith(id, autoescape=True) if begun else memories.c.id == id
        async with self._database.read() as connection:
            found = await fetch(connection, and_(matches, readable(audience), unexpired(now)))
        if len(found) != 1:
            raise NotFound(f"no memory {id!r} here; `hachi memories list` shows the ids")
        return found[0]

    async def by_ids(self, ids: Collection[str], audience: Audience, now: datetime) -> dict[str, Memory]:
        if not ids:
            return {}
        given = {"ids": list(ids), "owners": list(audience.keys), "now": now}
        async with self._database.read() as connection:
            found = with_owners((await connection.execute(BY_IDS, given)).all())
        return {memory.id: memory for memory, _ in found}

    async def newest(
        self,
        audience: Audience,
        now: datetime,
        limit: int | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Memory]:
        """All that may be read, newest first; of a time, where one is given."""
        where = [all_readable(audience), unexpired(now)]
        where += [memories.c.created_at >= since] if since else []
        where += [memories.c.created_at < until] if until else []
        async with self._database.read() as connection:
            return await fetch(connection, and_(*where), limit)

    async def where(self, condition: ColumnElement[bool]) -> list[Memory]:
        """For upkeep alone, which acts on everybody's memories and shows them to nobody but the operator."""
        async with self._database.read() as connection:
            return await fetch(connection, condition)

    async def known_aliases(self, audience: Audience, now: datetime) -> Aliases:
        """The names that memories this audience may read say are one person's. Kept for a moment, and no
        longer than this process writes nothing: every search asks."""
        kept = self._aliases.get(audience.keys)
        if kept is None or kept.writes != self._database.writes or abs(now - kept.at) > A_MOMENT:
            async with self._database.read() as connection:
                found = await self.aliases(connection, audience.keys, now)
            if len(self._aliases) >= MOST_KEPT:
                self._aliases.clear()
            kept = self._aliases[audience.keys] = _Kept(found, self._database.writes, now)
        return kept.aliases

    def forget_aliases(self) -> None:
        """Look again, where memories were taken away."""
        self._aliases.clear()

    async def count(self, audience: Audience, now: datetime) -> int:
        query = select(func.count()).select_from(memories).where(all_readable(audience), unexpired(now))
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar_one()

    # Deciding and writing, inside the caller's transaction: see `memory.facts.writer`.

    async def holders(
        self, connection: AsyncConnection, owners: Collection[str], content_key: str
    ) -> dict[str, Memory]:
        """For each owner that has these very words as an active memory, expired or not: that memory."""
        query = select(memory_owners.c.owner, memory_owners.c.memory_id).where(
            memory_owners.c.owner.in_(owners), memory_owners.c.content_key == content_key, is_active()
        )
        held: dict[str, str] = {row.owner: row.memory_id for row in await connection.execute(query)}
        if not held:
            return {}
        found = await fetch(connection, memories.c.id.in_(set(held.values())))
        by_id = {memory.id: memory for memory in found}
        return {owner: by_id[id] for owner, id in held.items()}

    async def candidates(
        self, connection: AsyncConnection, ids: Collection[str], owners: Collection[str], now: datetime
    ) -> list[Memory]:
        """Of these memories, and of the newest that wait to be indexed, the ones some of `owners` hold."""
        given = {"ids": list(ids), "owners": list(owners), "now": now}
        return [memory for memory, _ in with_owners((await connection.execute(CANDIDATES, given)).all())]

    async def insert(
        self,
        connection: AsyncConnection,
        memory: Memory,
        content_key: str,
        aliases: Sequence[tuple[str, str]] = (),
    ) -> None:
        """A new memory; `aliases` are the names that it says are one person's."""
        values = {field: getattr(memory, field) for field in Memory.__dataclass_fields__ if field != "owners"}
        await connection.execute(insert(memories).values(**values | {"subjects": list(memory.subjects)}))
        links = [
            {"memory_id": memory.id, "owner": owner, "content_key": content_key} for owner in memory.owners
        ]
        await connection.execute(insert(memory_owners), links)
        if aliases:
            pairs = [
                {"memory_id": memory.id, "owner": owner, "name": name, "other": other}
                for owner in memory.owners
                for name, other in aliases
            ]
            await connection.execute(insert(memory_aliases), pairs)

    async def aliases(self, connection: AsyncConnection, owners: Collection[str], now: datetime) -> Aliases:
        """The names that memories of these owners say are one person's, in the order they were learned."""
        rows = await connection.execute(ALIASES, {"owners": list(owners), "now": now})
        return Aliases(tuple((row.name, row.other) for row in rows))

    async def link(
        self, connection: AsyncConnection, id: str, owners: Iterable[str], content_key: str
    ) -> None:
        """Give a memory further owners. One that had given it up before takes it back."""
        for owner in owners:
            here = and_(memory_owners.c.memory_id == id, memory_owners.c.owner == owner)
            back = await connection.execute(update(memory_owners).where(here).values(superseded=0))
            if back.rowcount == 0:
                await connection.execute(
                    insert(memory_owners).values(memory_id=id, owner=owner, content_key=content_key)
                )
                await connection.execute(aliases_for(id, owner))
        await index_again(connection, [id])

    async def supersede(
        self,
        connection: AsyncConnection,
        old: Memory,
        owners: Collection[str],
        *,
        new_id: str | None,
        user: str,
        reason: str,
        now: datetime,
    ) -> None:
        """For these owners `old` gives way to `new_id`; what other owners have stays as it is."""
        await connection.execute(
            update(memory_owners)
            .where(memory_owners.c.memory_id == old.id, memory_owners.c.owner.in_(owners))
            .values(superseded=1)
        )
        await connection.execute(
            insert(memory_updates).values(
                id=spans.new_id(),
                user_id=user,
                old_id=old.id,
                new_id=new_id,
                reason=reason,
                created_at=now,
                owners=sorted(owners),
            )
        )
        await index_again(connection, [old.id])

    async def refresh(self, connection: AsyncConnection, memory: Memory, **values: Any) -> None:
        """Raise `importance`, or put off `expires_at` (None: for good), of a memory that was said again. What
        others make of it at the same moment is never lowered. Raises Overtaken where it was just deleted.
        """
        raised: dict[str, Any] = {}
        if "importance" in values:
            old, new = memories.c.importance, values["importance"]
            raised["importance"] = case((old < new, new), else_=old)
        if "expires_at" in values:
            until, later = memories.c.expires_at, values["expires_at"]
            raised["expires_at"] = later and case(
                (until < later, literal(later, memories.c.expires_at.type)), else_=until
            )
        done = await connection.execute(update(memories).where(memories.c.id == memory.id).values(**raised))
        if done.rowcount == 0:
            raise Overtaken(f"memory {memory.id} has just been deleted")
        if "expires_at" in values:
            await index_again(connection, [memory.id])

    # Consolidation.

    async def touch(self, ids: Collection[str], now: datetime) -> None:
        """These were recalled."""
        async with self._database.write() as connection:
            await connection.execute(
                update(memories)
                .where(memories.c.id.in_(ids))
                .values(last_accessed_at=now, uses=memories.c.uses + 1)
            )

    async def unindexed(self, generation: str, limit: int) -> list[tuple[Memory, int]]:
        """Memories, superseded ones too, whose state the index of this generation does not show yet; each
        with the revision of that state."""
        async with self._database.read() as connection:
            due = select(memories.c.id).where(waits(memories.c.indexed_under, generation)).limit(limit)
            return await fetch_revisions(connection, memories.c.id.in_(due))

    async def count_unindexed(self, generation: str) -> int:
        due = waits(memories.c.indexed_under, generation)
        async with self._database.read() as connection:
            query = select(func.count()).select_from(memories).where(due)
            return (await connection.execute(query)).scalar_one()

    async def mark_indexed(self, revisions: Mapping[str, int], generation: str) -> None:
        """The index was given these states. What has changed since is due again, even where somebody has put
        its newer state already: the older one may have come after it."""
        rows = select(memories.c.id, memories.c.revision).where(memories.c.id.in_(revisions))
        async with self._database.write() as connection:
            # What somebody is changing at this moment is passed over: it stays due by that change.
            found = (await connection.execute(rows.with_for_update(skip_locked=True))).all()
            shown = [row.id for row in found if row.revision == revisions[row.id]]
            changed = [row.id for row in found if row.revision != revisions[row.id]]
            for ids, under in ((shown, generation), (changed, None)):
                if ids:
                    marked = update(memories).where(memories.c.id.in_(ids)).values(indexed_under=under)
                    await connection.execute(marked)

    async def missing(self, ids: Collection[str]) -> set[str]:
        """Which of these have no row any more."""
        async with self._database.read() as connection:
            rows = await connection.execute(select(memories.c.id).where(memories.c.id.in_(ids)))
            return set(ids) - set(rows.scalars())

    async def unlink(self, connection: AsyncConnection, memory: Memory, user: str) -> list[str]:
        """Take a memory away from `user`, and from the places they said it in unless somebody else said it
        too; and what it had replaced for them. Returns the ids of the rows that nobody needs any more and
        that are deleted. Raises NotFound where somebody else said it, and `user` did not."""
        here = memory_owners.c.memory_id == memory.id
        lock = select(memories.c.id).where(memories.c.id == memory.id).with_for_update()
        await connection.execute(lock)  # whoever says it at this moment says it before or after
        active = select(memory_owners.c.owner).where(here, is_active())
        owners = set((await connection.execute(active)).scalars())
        said_by = tellers(owners, memory.user_id)
        if not owners or user_key(user) not in said_by:
            raise NotFound(f"memory {memory.id!r} is not {user}'s to take away: somebody else said it")
        others = sorted(said_by - {user_key(user)})
        if others and memory.user_id == user:  # theirs from now on, and no longer by the word of who left
            heir = others[0].removeprefix("user:")
            left = update(memories).where(memories.c.id == memory.id)
            await connection.execute(left.values(user_id=heir, message_id=None))
        gone = await self._take_away(connection, [(memory.id, {user_key(user)} if others else owners)])
        await index_again(connection, [memory.id])
        return gone

    async def withdraw(
        self, connection: AsyncConnection, memory: Memory, user: str, now: datetime
    ) -> list[str]:
        """Take a memory back from all places, as if it had never been told there: what it had replaced there
        goes too. `user`, who alone told it, keeps it as their own. Returns the ids of the rows that nobody
        needs any more and that are deleted. Raises NotFound where it is in no place, or somebody else told it
        too."""
        here, own = memory_owners.c.memory_id == memory.id, user_key(user)
        lock = select(memories.c.id).where(memories.c.id == memory.id).with_for_update()
        await connection.execute(lock)  # whoever says it at this moment says it before or after
        links = (await connection.execute(select(memory_owners).where(here))).all()
        active = {link.owner for link in links if not link.superseded}
        if tellers(active, memory.user_id) != {own} or not any(map(_is_place, active)):
            raise NotFound(f"memory {memory.id!r} is not {user}'s to make private: somebody else told it too")
        key = links[0].content_key
        known = await self.holders(connection, [own], key)
        if own not in {link.owner for link in links} and not known:
            await self.link(connection, memory.id, [own], key)
        places = {link.owner for link in links if _is_place(link.owner)}
        gone = await self._take_away(connection, [(memory.id, places)])
        await self._forget_in_places(connection, memory.id)
        if memory.id not in gone:
            alone = update(memories).where(memories.c.id == memory.id)
            await connection.execute(alone.values(place=str(PRIVATE)))
            await index_again(connection, [memory.id])
        kept = known[own].id if memory.id in gone else memory.id
        step = {"id": spans.new_id(), "user_id": user, "old_id": kept, "new_id": kept}
        why = {"reason": MADE_PRIVATE, "created_at": now, "owners": [own]}
        await connection.execute(insert(memory_updates).values(**step, **why))
        return gone

    async def made_private(self, connection: AsyncConnection, user: str) -> list[tuple[Memory, datetime]]:
        """What a person took back from places and still has, if only in its history; and when, at last."""
        steps = select(memory_updates.c.old_id, func.max(memory_updates.c.created_at).label("at"))
        theirs = (memory_updates.c.user_id == user, memory_updates.c.reason == MADE_PRIVATE)
        rows = await connection.execute(steps.where(*theirs).group_by(memory_updates.c.old_id))
        taken_back: dict[str, datetime] = {row.old_id: row.at for row in rows}
        found = await fetch(connection, memories.c.id.in_(taken_back)) if taken_back else []
        return [(memory, taken_back[memory.id]) for memory in found]

    async def _forget_in_places(self, connection: AsyncConnection, id: str) -> None:
        """No history of a place shows the memory as what was there before."""
        steps = select(memory_updates).where(memory_updates.c.old_id == id)
        for step in (await connection.execute(steps)).all():
            same = memory_updates.c.id == step.id
            left = [owner for owner in step.owners if not _is_place(owner)]
            kept = update(memory_updates).where(same).values(owners=left)
            await connection.execute(kept if left else delete(memory_updates).where(same))

    async def delete(self, connection: AsyncConnection, ids: Collection[str]) -> list[str]:
        """Delete rows for everybody, and what they had replaced. Returns all ids that went."""
        return await self._take_away(connection, [(id, None) for id in ids])

    async def _take_away(
        self, connection: AsyncConnection, lost: list[tuple[str, Collection[str] | None]]
    ) -> list[str]:
        """These owners (None: all) lose a memory, and what it had replaced for them. A row goes with its last
        link: as long as it stands in somebody's history it stays."""
        touched: set[str] = set()
        while lost:
            id, owners = lost.pop()
            touched.add(id)
            links = [memory_owners.c.memory_id == id]
            if owners is not None:
                links.append(memory_owners.c.owner.in_(owners))
            await connection.execute(delete(memory_owners).where(*links))
            steps = select(memory_updates).where(memory_updates.c.new_id == id)
            for step in (await connection.execute(steps)).all():
                theirs = [owner for owner in step.owners if owners is None or owner in owners]
                left = [owner for owner in step.owners if owner not in theirs]
                same = memory_updates.c.id == step.id
                await connection.execute(
                    update(memory_updates).where(same).values(owners=left)
                    if left
                    else delete(memory_updates).where(same)
                )
                given_up = select(memory_owners.c.owner).where(
                    memory_owners.c.memory_id == step.old_id, memory_owners.c.owner.in_(theirs), ~is_active()
                )
                if replaced := set((await connection.execute(given_up)).scalars()):
                    lost.append((step.old_id, replaced))
        linked = select(memory_owners.c.memory_id).where(memory_owners.c.memory_id.in_(touched))
        gone = touched - set((await connection.execute(linked)).scalars())
        await connection.execute(delete(memory_updates).where(memory_updates.c.old_id.in_(gone)))
        await connection.execute(delete(memories).where(memories.c.id.in_(gone)))
        return sorted(gone)

    async def revive(self, connection: AsyncConnection, ids: Collection[str], now: datetime) -> None:
        """Bring back what these had replaced and what still holds: a week's leave ends no address. Not what
        was corrected on purpose, nor for owners who have something newer or the same words by now."""
        steps = (
            select(memory_updates.c.old_id, memory_updates.c.new_id, memory_updates.c.owners)
            .join(memories, memories.c.id == memory_updates.c.old_id)
            .where(memory_updates.c.new_id.in_(ids), memory_updates.c.old_id.not_in(ids), unexpired(now))
            .where(memory_updates.c.reason != CORRECTED)
        )
        other = memory_owners.alias("other")
        newer = exists().where(
            other.c.owner == memory_owners.c.owner,
            other.c.content_key == memory_owners.c.content_key,
            other.c.superseded == 0,
        )
        for step in (await connection.execute(steps)).all():
            here = and_(memory_owners.c.memory_id == step.new_id, is_active())
            current = (await connection.execute(select(memory_owners.c.owner).where(here))).scalars().all()
            theirs = memory_owners.c.owner.in_(set(step.owners) & set(current))
            back = update(memory_owners).where(memory_owners.c.memory_id == step.old_id, theirs, ~newer)
            await connection.execute(back.values(superseded=0))
            await index_again(connection, [step.old_id])

    async def expired(self, connection: AsyncConnection, now: datetime, limit: int) -> list[Memory]:
        """What the purge is to delete, whoever it belongs to. Nobody puts off its end any more in this
        transaction; what somebody is changing at this moment is left for the next purge."""
        due = select(memories.c.id).where(memories.c.expires_at <= now).order_by(memories.c.id).limit(limit)
        ids = (await connection.execute(due.with_for_update(skip_locked=True))).scalars().all()
        return await fetch(connection, memories.c.id.in_(ids)) if ids else []

    async def totals(self, now: datetime) -> dict[str, int]:
        """Counts for `hachi doctor` and `hachi stats`; no content."""
        active = is_held(memories.c.id)
        query = select(
            func.count(case((and_(active, unexpired(now)), 1))).label("active"),
            func.count(case((~active, 1))).label("superseded"),
            func.count(case((memories.c.expires_at <= now, 1))).label("expired"),
            func.count(case((memories.c.indexed_under.is_(None), 1))).label("unindexed"),
        ).select_from(memories)
        async with self._database.read() as connection:
            return dict((await connection.execute(query)).one()._mapping)
