"""Store memories in SQL, the source of truth.

A memory's owners are its rows in `memory_owners`. It is superseded for each owner separately, and its
text stays for history and undo. Without an active owner nobody can read it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.process import spans
from memory.records import Memory
from memory.sql.changes import IS_SINCE, Moment
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.memories.memory_rows import (
    ACTIVE_LINKS,
    ALIASES,
    BY_IDS,
    LINKS,
    begins,
    fetch,
    with_owners,
)
from memory.sql.memories.replacements import (
    ALWAYS,
    PAST_ITS_EXPIRY,
    WHILE_IT_HOLDS,
    Link,
    is_active,
    replace,
    replace_same,
    unexpired,
)
from memory.sql.messages.message_rows import is_visible
from memory.sql.readable import MEMORIES_READABLE, memories_readable
from memory.sql.tables import (
    changes,
    memories,
    memory_aliases,
    memory_owners,
    memory_tags,
    memory_updates,
    messages,
    replacements,
)
from memory.text import tags
from memory.text.names import Aliases

CORRECTED = "corrected on purpose"
"""The reason of a step in which a person or a program named the memory to correct."""
CORRECTED_BY_MODEL = "corrected by the model"
"""The reason of a step in which the model named it. The model may have been wrong."""
FOR_A_TIME = "replaced for a time"
"""The reason if the newer fact expires. The older fact, named by a program or the model, is then restored."""
MADE_PRIVATE = "made private"
"""The reason of a step from a memory to itself that hid it from its places."""
UNDONE = "undone"
"""The reason of a step that undoes a replacement."""
ALIASES_FRESH = timedelta(seconds=2)
"""How long cached aliases are used. A search may miss an alias from another process for that long."""
CACHED_READERS = 10_000
"""The most audiences whose aliases are cached."""


_INSERT_LINKS = insert(memory_owners).returning(
    literal_column(
        """EXISTS (SELECT 1 FROM memory_owners AS other WHERE other.owner = memory_owners.owner
        AND other.content_key = memory_owners.content_key AND other.memory_id <> memory_owners.memory_id)""",
        Boolean,
    )
)
"""Inserts links, and returns of each whether its owner has another memory in the same words."""


@cache
def _comparable_facts(*, stated: bool, searched: bool, sqlite: bool) -> Select[Any]:
    """Select the owners' memories in the same words, those with these ids, and with `searched` those that
    changed since the search. With `stated` the message is locked until the transaction ends; there is no
    row if the message is missing, and at least one if it exists. The statement is cached, because
    building it takes longer than running it."""
    mine = memory_owners.c.owner.in_(bindparam("owners", expanding=True))
    worded_so = (memory_owners.c.content_key == bindparam("content_key"), mine, is_active())
    named = memory_owners.c.memory_id.in_(bindparam("ids", expanding=True))
    found = [select(memory_owners.c.memory_id).where(condition) for condition in (named, and_(*worded_so))]
    if searched:
        noted = changes.c.owner.in_(bindparam("owners", expanding=True))
        new = text(IS_SINCE[sqlite])
        found.append(select(changes.c.id).where(changes.c.kind == "memory", noted, new))
    these = and_(memories.c.id.in_(union_all(*found)), MEMORIES_READABLE)
    query = select(memories, LINKS.c.owner, LINKS.c.content_key)
    query = query.order_by(memories.c.created_at.desc(), memories.c.id)
    if not stated:
        return query.select_from(memories.outerjoin(LINKS, ACTIVE_LINKS)).where(these)
    query = query.select_from(messages.outerjoin(memories, these).outerjoin(LINKS, ACTIVE_LINKS))
    query = query.where(messages.c.id == bindparam("message"), is_visible())
    return query.with_for_update(read=True, key_share=True, of=messages)


class ComparableFacts(NamedTuple):
    """The memories to compare a new fact with."""

    worded_so: dict[str, Memory]
    """The active memory in the same words, expired or not, keyed by owner."""
    near: list[Memory]
    """The unexpired ones, the search results, and memories that changed since the search."""


class _CachedAliases(NamedTuple):
    aliases: Aliases
    writes: int
    at: datetime


def tellers(owners: Iterable[str], user: str) -> set[str]:
    """Return the owner keys of the people who stated a memory: `user`, the first, and its active owners."""
    return {owner for owner in owners if owner.startswith("user:")} | {user_key(user)}


class MemoryStore:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._aliases: dict[frozenset[str], _CachedAliases] = {}

    # Reading. Every method takes an audience.

    async def get(self, id: str, audience: Audience, now: datetime) -> Memory:
        """Return the memory with this id, or prefix of eight or more characters. Raises NotFound."""
        named = and_(begins(memories.c.id, id), memories_readable(audience), unexpired())
        async with self.database.read() as connection:
            found = await fetch(connection, named, now)
        if len(found) != 1:
            listed = "`hachi memories list` shows the ids, with --user those of somebody else"
            raise NotFound(f"no memory {id!r} here; {listed}")
        return found[0]

    async def current(
        self, connection: AsyncConnection, id: str, audience: Audience, now: datetime
    ) -> Memory | None:
        """Return the active memory with this id, or prefix as in `get`; else its replacement; else None."""
        named = select(memory_owners.c.memory_id).where(begins(memory_owners.c.memory_id, id)).distinct()
        ids = list(await connection.scalars(named))
        if len(ids) != 1:
            return None
        pair = replacements.c
        newer = select(pair.new_id).where(pair.old_id == ids[0], pair.owner.in_(audience.keys))
        these = or_(memories.c.id == ids[0], memories.c.id.in_(newer))
        found = await fetch(connection, and_(these, memories_readable(audience), unexpired()), now)
        return next((memory for memory in found if memory.id == ids[0]), found[0] if found else None)

    async def by_ids(self, ids: Collection[str], audience: Audience, now: datetime) -> dict[str, Memory]:
        """Return the memories that are active, unexpired and readable by the audience, keyed by id."""
        if not ids:
            return {}
        given = {"ids": list(ids), "owners": list(audience.keys), "now": now}
        found = with_owners(await self.database.rows(BY_IDS, given))
        return {memory.id: memory for memory in found}

    async def newest(
        self,
        audience: Audience,
        now: datetime,
        limit: int | None = None,
        subjects: Collection[str] = (),
        /,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        after: tuple[datetime, str] | None = None,
    ) -> list[Memory]:
        """Return memories, newest first, created at `since` or later and before `until`. `after`, a time
        and an id, continues a list behind that memory. With `subjects`, each has at least one of them."""
        link, ids = memory_owners.c, []
        where = [is_active(), unexpired()]
        tagged = select(memory_tags.c.memory_id).where(memory_tags.c.tag.in_(subjects))
        where += [link.memory_id.in_(tagged)] if subjects else []
        where += [link.created_at >= since] if since else []
        where += [link.created_at < until] if until else []
        if after:
            same = and_(link.created_at == after[0], link.memory_id < after[1])
            where += [link.created_at <= after[0], or_(link.created_at < after[0], same)]
        for owner in sorted(audience.keys):  # one query an owner, since the index sorts within an owner
            mine = select(link.memory_id).join(memories).where(link.owner == owner, *where)
            mine = mine.order_by(link.created_at.desc(), link.memory_id.desc()).limit(limit)
            ids.append(select(mine.subquery().c.memory_id))
        return await self.where(memories.c.id.in_(union_all(*ids)), now, limit) if ids else []

    async def times(self, audience: Audience, now: datetime) -> list[datetime]:
        """Return the creation times of the memories that this audience may read, newest first."""
        link, told = memory_owners.c, func.min(memory_owners.c.created_at)
        query = select(told).join(memories).where(link.owner.in_(audience.keys), is_active(), unexpired())
        rows = await self.database.rows(query.group_by(link.memory_id).order_by(told.desc()), {"now": now})
        return [row[0] for row in rows]

    async def where(
        self, condition: ColumnElement[bool], now: datetime, limit: int | None = None
    ) -> list[Memory]:
        """Return the memories that meet the condition, newest first. The condition must contain an audience,
        unless only the operator sees the result."""
        async with self.database.read() as connection:
            return await fetch(connection, condition, now, limit)

    async def aliases(
        self, owners: frozenset[str], now: datetime, connection: AsyncConnection | None = None
    ) -> Aliases:
        """Return the aliases of people that the memories of these owners state, in the caller's transaction
        if there is one. Cached until this process writes, and for `ALIASES_FRESH` at most."""
        cached, writes = self._aliases.get(owners), self.database.writes
        if cached and cached.writes == writes and abs(now - cached.at) <= ALIASES_FRESH:
            return cached.aliases
        ask = connection.execute if connection else self.database.rows
        rows: Iterable[Any] = await ask(ALIASES, {"owners": list(owners), "now": now})
        found = Aliases(tuple((row.name, row.other) for row in rows))
        if len(self._aliases) >= CACHED_READERS:
            self._aliases.clear()
        self._aliases[owners] = _CachedAliases(found, writes, now)
        return found

    def forget_aliases(self) -> None:
        """Empty the cache, after an erasure."""
        self._aliases.clear()

    # Writing, in the caller's transaction: see `memory.facts.writer`.

    async def comparable_facts(
        self,
        connection: AsyncConnection,
        owners: Collection[str],
        content_key: str,
        now: datetime,
        ids: Collection[str] = (),
        since: Moment | None = None,
        stated_in: str | None = None,
    ) -> ComparableFacts:
        """Return the owners' memories in the same words, with these ids, and those changed `since`. Locks
        the message `stated_in` until the transaction ends; raises NotFound if it is missing."""
        given = {"owners": list(owners), "content_key": content_key, "ids": list(ids), "now": now}
        given |= {"message": stated_in} if stated_in else {}
        given |= {"since": since} if since else {}
        sqlite = self.database.sqlite
        query = _comparable_facts(stated=stated_in is not None, searched=since is not None, sqlite=sqlite)
        rows = (await connection.execute(query, given)).all()
        if stated_in is not None and not rows:
            raise NotFound(f"the message {stated_in} has been erased")
        rows = [row for row in rows if row.id is not None]
        found = {memory.id: memory for memory in with_owners(rows)}
        same = [row for row in rows if row.content_key == content_key and row.owner in owners]
        near = [one for one in found.values() if one.expires_at is None or one.expires_at > now]
        return ComparableFacts({row.owner: found[row.id] for row in same}, near)

    async def candidates(
        self, connection: AsyncConnection, ids: Collection[str], owners: Collection[str], now: datetime
    ) -> list[Memory]:
        """Return those of these memories that are active for one of the owners."""
        given = {"ids": list(ids), "owners": list(owners), "now": now}
        return with_owners((await connection.execute(BY_IDS, given)).all())

    async def insert(
        self,
        connection: AsyncConnection,
        facts: Mapping[str, Memory],
        now: datetime,
        aliases: Sequence[tuple[str, str]] = (),
        never: Collection[str] = (),
    ) -> None:
        """Insert new memories, given by content key. Each supersedes its owners' memories in the same
        words, except for owners in `never`. `aliases` are the pairs of names that the memories link."""
        if not facts:
            return
        names = [field for field in Memory.__dataclass_fields__ if field != "owners"]
        rows = [
            {name: getattr(memory, name) for name in names} | {"subjects": list(tags(memory.subjects))}
            for memory in facts.values()
        ]
        owned = [(key, memory.id, owner) for key, memory in facts.items() for owner in sorted(memory.owners)]
        links = [
            {"memory_id": id, "owner": owner, "content_key": key, "created_at": facts[key].created_at}
            for key, id, owner in owned
        ]
        linked = [
            {"memory_id": id, "owner": owner, "name": name, "other": other}
            for _, id, owner in owned
            for name, other in aliases
        ]
        await connection.execute(insert(memories), rows)
        told_before = (await connection.scalars(_INSERT_LINKS, links)).all()
        if linked:
            await connection.execute(insert(memory_aliases), linked)
        if any(told_before):
            owners = {owner for _, _, owner in owned if owner not in never}
            await replace_same(connection, {key: memory.id for key, memory in facts.items()}, owners, now)

    async def supersede(
        self,
        connection: AsyncConnection,
        old: Memory,
        owners: Collection[str],
        new_id: str,
        *,
        user: str,
        reason: str,
        now: datetime,
        in_force: bool = True,
    ) -> None:
        """Supersede `old` with `new_id` for these owners, by an action of `user`. Other owners keep
        `old`. If `old` was not `in_force`, it is never restored."""
        lasts = PAST_ITS_EXPIRY if reason == CORRECTED else WHILE_IT_HOLDS
        olds: set[Link] = {(old.id, owner) for owner in owners}
        await replace(connection, olds, new_id, lasts if in_force else ALWAYS, reason, now)
        step = {"user_id": user, "old_id": old.id, "new_id": new_id, "reason": reason, "created_at": now}
        await connection.execute(
            insert(memory_updates).values(id=spans.new_id(), owners=sorted(owners), **step)
        )

    async def refresh(self, connection: AsyncConnection, memory: Memory, **values: Any) -> None:
        """Raise `importance`, or postpone `expires_at` (None: never), of a memory that was stated again.
        Never lowers what a concurrent transaction wrote. Raises Overtaken if the memory was deleted."""
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

    # After the turn.

    async def touch(self, ids: Collection[str], now: datetime) -> None:
        """Store that these memories were recalled at `now`."""
        touched = update(memories).where(memories.c.id.in_(ids))
        await self.database.run(touched.values(last_accessed_at=now, uses=memories.c.uses + 1))

    async def totals(self, now: datetime) -> dict[str, int]:
        """Count memories for `hachi doctor` and `hachi stats`, without their content."""
        active = exists().where(memory_owners.c.memory_id == memories.c.id, is_active())
        query = select(
            func.count(case((and_(active, unexpired()), 1))).label("active"),
            func.count(case((~active, 1))).label("superseded"),
            func.count(case((memories.c.expires_at <= now, 1))).label("expired"),
        ).select_from(memories)
        [row] = await self.database.rows(query, {"now": now})
        return dict(row._mapping)
