"""Erases a person from the memories.

A memory that only they stated is deleted for everybody, with its text, names and history. A memory that
somebody else also stated stays with that person, and no longer cites the erased one.

If the person's statement had replaced somebody else's, the other statement becomes active again, or its
history points to whatever replaced the person's. So an erasure undoes what the person did, and nothing else.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Place, user_key
from memory.sql.changes import changed
from memory.sql.memories import CORRECTED
from memory.sql.memory_rows import index_again, unexpired
from memory.sql.owner_links import bring_back
from memory.sql.tables import memories, memory_owners, memory_updates, messages, rests_on

NOBODY = ""
"""Stored as the user where a person was erased."""

_Active = Mapping[str, Mapping[str, bool]]
"""By memory and owner: whether the memory is active for the owner, and not superseded."""


@dataclass(slots=True)
class ErasedMemories:
    """What an erasure did to the memories of a person."""

    deleted: dict[str, str] = field(default_factory=dict)
    """The texts of the memories that were deleted for everybody, by id."""
    shared: int = 0
    """Memories that others own too: the erasure deleted only the person's part in them."""
    steps: int = 0
    """The number of deleted steps of the history."""


def memory_ids_of(user: str) -> Select[Any]:
    """The ids of the memories that the person owns or stated, oldest first."""
    link = (memory_owners.c.memory_id == memories.c.id, memory_owners.c.owner == user_key(user))
    query = select(memories.c.id).where(or_(exists().where(*link), memories.c.user_id == user))
    return query.order_by(memories.c.created_at, memories.c.id)


def stated_alone(user: str) -> ColumnElement[bool]:
    """True for memories that nobody else stated, and that are not everybody's."""
    link = memory_owners.c
    others = and_(link.owner.startswith("user:"), link.owner != user_key(user))
    shared = select(link.memory_id).where(or_(others, link.owner == GLOBAL))
    return and_(memories.c.user_id == user, memories.c.id.not_in(shared))


async def owners_of(connection: AsyncConnection, ids: Collection[str]) -> set[str]:
    """All owners of these memories. The erasure locks them, so that no other writer interferes."""
    query = select(memory_owners.c.owner).where(memory_owners.c.memory_id.in_(ids)).distinct()
    return set((await connection.execute(query)).scalars())


async def erase_memories(
    connection: AsyncConnection, user: str, ids: Collection[str], now: datetime
) -> ErasedMemories:
    """Erase the person from these memories, in the caller's transaction. Deletes those that only they stated;
    removes the person from those that somebody else also stated or that are everybody's. Also removes their
    steps from the history, without a gap. Safe to run twice."""
    rows = (await connection.execute(select(memories).where(memories.c.id.in_(ids)))).all()
    links = (await connection.execute(select(memory_owners).where(memory_owners.c.memory_id.in_(ids)))).all()
    active: dict[str, dict[str, bool]] = {row.id: {} for row in rows}
    for link in links:
        active[link.memory_id][link.owner] = link.superseded_by is None
    erased = ErasedMemories()
    for row in rows:
        owners = active[row.id]
        if row.user_id != user or _other_people(owners, user) or GLOBAL in owners:
            await _remove_from_shared(connection, row, owners, user)
            erased.shared += 1
        else:
            erased.deleted[row.id] = row.content
    erased.steps = await _remove_from_history(connection, user, ids)
    await _bridge(connection, erased.deleted, links, now)
    deleted = list(erased.deleted)
    naming = or_(memory_updates.c.old_id.in_(deleted), memory_updates.c.new_id.in_(deleted))
    erased.steps += (await connection.execute(delete(memory_updates).where(naming))).rowcount
    for column in (rests_on.c.derived_id, memory_owners.c.memory_id, memories.c.id):
        await connection.execute(delete(column.table).where(column.in_(deleted)))
    await changed(connection, "memory", deleted, gone=True)
    await index_again(connection, [row.id for row in rows if row.id not in erased.deleted])
    return erased


def _other_people(owners: Mapping[str, bool], user: str) -> list[str]:
    """The other people who stated the memory. Those for whom it is active come first."""
    people = [owner for owner in owners if owner.startswith("user:") and owner != user_key(user)]
    return [owner.removeprefix("user:") for owner in sorted(people, key=lambda o: (not owners[o], o))]


async def _remove_from_shared(
    connection: AsyncConnection, row: Any, owners: Mapping[str, bool], user: str
) -> None:
    """Remove the person from a memory that others keep. If they stated it first, name another teller."""
    lost = {user_key(user)}
    if row.user_id == user:
        others = _other_people(owners, user)
        places = [owner for owner in owners if owner.startswith("place:")]
        kept = await _places_where_others_spoke(connection, others, places)
        lost |= set(places) - set(kept)
        place = Place.of_key(kept[0]) if kept else Place.parse(row.place)
        heir = others[0] if others else NOBODY
        same = update(memories).where(memories.c.id == row.id)
        await connection.execute(same.values(user_id=heir, message_id=None, place=str(place)))
    here = memory_owners.c.memory_id == row.id
    await connection.execute(delete(memory_owners).where(here, memory_owners.c.owner.in_(lost)))


async def _places_where_others_spoke(
    connection: AsyncConnection, others: Sequence[str], places: Sequence[str]
) -> list[str]:
    """The places where one of the others can have stated the memory. A single place is certain, because they
    own the memory through it; of several, those where they have spoken."""
    if len(places) < 2 or not others:
        return list(places)
    spoke = select(messages.c.place).where(messages.c.user_id.in_(others), messages.c.place.in_(places))
    found = set((await connection.execute(spoke.distinct())).scalars())
    return sorted(found) or list(places)


async def _remove_from_history(connection: AsyncConnection, user: str, ids: Collection[str]) -> int:
    """Remove the person from the history. Returns the number of deleted steps, which had no other owner."""
    touching = or_(memory_updates.c.old_id.in_(ids), memory_updates.c.new_id.in_(ids))
    deleted = 0
    for step in (await connection.execute(select(memory_updates).where(touching))).all():
        others = [owner for owner in step.owners if owner != user_key(user)]
        same = memory_updates.c.id == step.id
        if not others:
            await connection.execute(delete(memory_updates).where(same))
            deleted += 1
        elif others != step.owners or step.user_id == user:
            by = NOBODY if step.user_id == user else step.user_id
            await connection.execute(update(memory_updates).where(same).values(owners=others, user_id=by))
    return deleted


async def _bridge(
    connection: AsyncConnection, deleted: Collection[str], links: Collection[Any], now: datetime
) -> None:
    """Connect what a deleted memory had replaced with what replaced the deleted one. If nothing replaced it,
    the older memory holds again, unless it was corrected on purpose."""
    theirs = {(link.memory_id, link.owner): link for link in links if link.memory_id in deleted}
    older = memory_owners.c.superseded_by.in_(deleted) & memory_owners.c.memory_id.not_in(deleted)
    for link in (await connection.execute(select(memory_owners).where(older))).all():
        via, after, followed = link, theirs.get((link.superseded_by, link.owner)), {link.memory_id}
        while after and after.superseded_by in deleted and after.memory_id not in followed:
            followed.add(after.memory_id)
            via, after = after, theirs.get((after.superseded_by, after.owner))
        by, reason = (after.superseded_by, after.reason) if after else (None, None)
        by = None if by in deleted or by == link.memory_id else by
        here = (memory_owners.c.memory_id == link.memory_id) & (memory_owners.c.owner == link.owner)
        bridged = {"superseded_by": by, "reason": reason} if by else {"superseded_by": link.memory_id}
        await connection.execute(update(memory_owners).where(here).values(bridged))
        step = (memory_updates.c.old_id == link.memory_id) & memory_updates.c.new_id.in_(deleted)
        if by:
            why = {"new_id": by, "reason": reason}
            await connection.execute(update(memory_updates).where(step).values(why))
        if after and after.superseded_by is None and CORRECTED not in (link.reason, via.reason):
            current = memory_owners.c.memory_id.in_(select(memories.c.id).where(unexpired(now)))
            await bring_back(connection, here & current & memory_owners.c.superseded_at.is_not(None))
