"""Purge rows: hidden ones whose time to undo is over, and expired memories.

Each step is a transaction that is safe to repeat. A memory is deleted with its last link. If somebody else
stated it too, it becomes that person's.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import PRIVATE, Place, user_key
from memory.process.pace import unhurried
from memory.sql import hidden as entries
from memory.sql import tables as t
from memory.sql.engine import Database
from memory.sql.hidden import Kind
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import WHOLE_ID
from memory.sql.memories.replacements import Link, drop_replacements
from memory.sql.messages.message_rows import is_visible
from memory.sql.rests_on import drop_rows, let_go, record_each, resting_on, statements_of

BATCH = 250
"""Rows deleted in one transaction."""
NOBODY = ""
"""The user of rows whose author was erased or has forgotten them."""


@dataclass(frozen=True)
class Purge:
    database: Database
    clock: Callable[[], datetime]

    async def due(self) -> list[str]:
        """Return the forgettings whose time to undo is over."""
        return await entries.ended(self.database, self.clock())

    async def shown_by(self, forgetting: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return what other stores have to delete: the ids of rows that are hidden for everybody, and texts
        of messages."""
        async with self.database.read() as connection:
            rows = await entries.rows_of(connection, [forgetting])
            said = rows.get("message", set())
            facts = {id.partition(" ")[0] for id in rows.get("link", ())}
            whole = await entries.hidden_among(connection, facts)
            texts = await connection.scalars(select(t.messages.c.text).where(t.messages.c.id.in_(said)))
            items = rows.get("task", set()) | rows.get("entry", set()) | rows.get("summary", set())
            return frozenset(whole | said | items), frozenset(texts)

    async def delete(self, forgetting: str) -> set[str]:
        """Delete the rows that a forgetting hides, and then the forgetting. The ids of forgotten messages
        stay hidden, so that no import restores them. Returns the ids of the deleted rows."""
        gone: set[str] = set()
        while True:
            async with self.database.read() as connection:
                lock = await _owners_of(connection, forgetting)
            async with self.database.write(lock=lock) as connection:
                rows = await _some(connection, forgetting)
                if not rows:
                    await _end(connection, forgetting)
                    break
                gone |= await self._delete_rows(connection, forgetting, rows)
        self.database.drop_copies()  # copies from a conversion may contain these rows
        await self.database.empty_log()
        return gone

    async def _delete_rows(
        self, connection: AsyncConnection, forgetting: str, rows: dict[Kind, set[str]]
    ) -> set[str]:
        this = select(t.forgettings.c.person, t.forgettings.c.why).where(t.forgettings.c.id == forgetting)
        user, why = (await connection.execute(this)).one()
        links = {tuple(id.split(" ", 1)) for id in rows.get("link", ())}
        said, items = rows.get("message", set()), rows.get("task", set()) | rows.get("entry", set())
        summaries = rows.get("summary", set())
        shown = {id for id, _ in links} | said | items | summaries
        await drop_calls(connection, t.messages.c.id.in_(resting_on(shown, "found")))
        gone = await delete_links(connection, {(id, owner) for id, owner in links}, user)
        await delete_messages(connection, said, self.clock())
        for column in (t.tasks.c.id, t.context_entries.c.id):
            await connection.execute(delete(column.table).where(column.in_(items)))
        gone |= said | items | summaries
        await drop_rows(connection, gone)
        await drop_jobs(connection, gone)
        for kind, ids in rows.items():
            # the ids of messages stay, so that no import restores them
            if kind != "message" or why != "forgotten":
                await entries.show(connection, kind, ids, t.hidden.c.forgetting_id == forgetting)
        return gone


async def _owners_of(connection: AsyncConnection, forgetting: str) -> set[str]:
    owner = func.substr(t.hidden.c.row_id, WHOLE_ID + 2)  # after the memory's id and a space
    links = select(owner).where(t.hidden.c.forgetting_id == forgetting, t.hidden.c.kind == "link")
    return set(await connection.scalars(links.distinct()))


async def _some(connection: AsyncConnection, forgetting: str) -> dict[Kind, set[str]]:
    """Return at most `BATCH` rows to delete. Withdrawn rows are not deleted."""
    there = exists().where(t.messages.c.id == t.hidden.c.row_id)
    others = t.hidden.c.kind.in_(("link", "task", "entry", "summary"))
    query = select(t.hidden.c.kind, t.hidden.c.row_id).where(
        t.hidden.c.forgetting_id == forgetting, or_(others, and_(t.hidden.c.kind == "message", there))
    )
    found: dict[Kind, set[str]] = {}
    for row in await connection.execute(
        query.order_by(t.hidden.c.kind.desc(), t.hidden.c.row_id.desc()).limit(BATCH)
    ):
        found.setdefault(row.kind, set()).add(row.row_id)
    return found


async def _end(connection: AsyncConnection, forgetting: str) -> None:
    """Delete a forgetting. One that a person asked for stays with its time and the ids of its messages."""
    this = and_(t.forgettings.c.id == forgetting, t.forgettings.c.why == "forgotten")
    kept = update(t.forgettings).where(this).values(until=None, named=None)
    if (await connection.execute(kept)).rowcount == 0:
        await connection.execute(delete(t.forgettings).where(t.forgettings.c.id == forgetting))


async def delete_links(
    connection: AsyncConnection, links: Collection[Link], person: str | None = None
) -> set[str]:
    """Delete these links, and memories without other links. If `person` has forgotten them, the memories that
    they superseded are restored, and a memory with other links passes to their owners. Returns the ids of
    deleted memories."""
    ids = {id for id, _ in links}
    for id in sorted(ids):
        owners = [owner for one, owner in links if one == id]
        here = (t.memory_owners.c.memory_id == id, t.memory_owners.c.owner.in_(owners))
        await connection.execute(delete(t.memory_owners).where(*here))
    linked = select(t.memory_owners.c.memory_id).where(t.memory_owners.c.memory_id.in_(ids))
    left = set(await connection.scalars(linked))
    if person is not None:
        await drop_replacements(connection, links)
        for id in sorted(left):
            await pass_to_others(connection, id, person)
    gone = ids - left
    named = or_(t.memory_updates.c.old_id.in_(gone), t.memory_updates.c.new_id.in_(gone))
    await connection.execute(delete(t.memory_updates).where(named))
    await connection.execute(delete(t.memories).where(t.memories.c.id.in_(gone)))
    await _rest_on_messages(connection, gone)
    await drop_rows(connection, gone)
    return gone


async def pass_to_others(connection: AsyncConnection, id: str, person: str) -> None:
    """Make another person who stated a memory its author, and remove the messages of `person` from its
    evidence. A memory that only places own stays the person's."""
    pair = t.replacements.c
    replaced = exists().where(pair.old_id == id, pair.owner == t.memory_owners.c.owner).label("replaced")
    linked = select(t.memory_owners.c.owner, replaced).where(t.memory_owners.c.memory_id == id)
    links = (await connection.execute(linked)).all()
    people = [one for one in links if one.owner.startswith("user:")]
    places = sorted(one.owner for one in links if one.owner.startswith("place:"))
    row = (await connection.execute(select(t.memories).where(t.memories.c.id == id))).first()
    if row is None or user_key(person) in [one.owner for one in people] or (places and not people):
        return
    spoken = select(t.messages.c.id).where(t.messages.c.role == "user")
    theirs = t.rests_on.c.source_id.in_(spoken.where(t.messages.c.user_id == person))
    await connection.execute(delete(t.rests_on).where(t.rests_on.c.derived_id == id, theirs))
    if row.user_id != person:
        return
    people.sort(key=lambda one: (one.replaced, one.owner))
    heir = people[0].owner.removeprefix("user:") if people else NOBODY
    stated = t.messages.c.id.in_(statements_of([id]))
    query = select(t.messages).where(stated, t.messages.c.user_id == heir, is_visible())
    evidence = (await connection.execute(query.order_by(t.messages.c.seq).limit(1))).first()
    keys = [evidence.place] if evidence and evidence.place in places else places
    place = Place.of_key(keys[0]) if keys else PRIVATE
    values = {"user_id": heir, "message_id": evidence.id if evidence else None, "place": str(place)}
    await connection.execute(update(t.memories).where(t.memories.c.id == id).values(**values))


async def delete_messages(connection: AsyncConnection, ids: Collection[str], now: datetime) -> None:
    """Delete these messages. They must be hidden, so that no window in the index contains them."""
    await tell_platforms(connection, ids, now)
    await connection.execute(delete(t.messages).where(t.messages.c.id.in_(ids)))


async def drop_calls(connection: AsyncConnection, where: ColumnElement[bool]) -> None:
    """Delete the pending calls of clients' tools in these messages."""
    waiting = select(t.messages.c.id).where(t.messages.c.client_items.is_not(None), where)
    ids = list(await connection.scalars(waiting))
    await connection.execute(update(t.messages).where(t.messages.c.id.in_(ids)).values(client_items=None))
    await let_go(connection, ids)


async def _rest_on_messages(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Make the evidence of these memories a source of the replies that were written from them."""
    stated = t.rests_on.alias("stated")
    both = and_(stated.c.derived_id == t.rests_on.c.source_id, stated.c.how == "stated")
    shown = select(t.rests_on.c.derived_id, stated.c.source_id).join(stated, both)
    rows = await connection.execute(shown.where(t.rests_on.c.source_id.in_(ids), t.rests_on.c.how == "found"))
    await record_each(connection, [(row.derived_id, row.source_id, "found") for row in rows])


async def drop_jobs(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Delete the pending jobs whose payload names one of these rows."""
    rows = await connection.execute(select(t.work.c.id, t.work.c.payload).where(t.work.c.about.is_(None)))
    naming = [job.id async for job in unhurried(rows) if _names(job.payload, ids)]
    await connection.execute(delete(t.work).where(t.work.c.id.in_(naming)))


def _names(part: Any, ids: Collection[str]) -> bool:
    if isinstance(part, dict):
        return any(_names(value, ids) for value in part.values())
    if isinstance(part, list):
        return any(_names(one, ids) for one in part)
    return isinstance(part, str) and part in ids
