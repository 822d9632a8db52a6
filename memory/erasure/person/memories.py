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

from sqlalchemy import Select, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Place, user_key
from memory.process.spans import new_id
from memory.sql.memories import CORRECTED
from memory.sql.memory_rows import index_again, told_again, unexpired
from memory.sql.tables import memories, memory_owners, memory_updates, messages

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
        active[link.memory_id][link.owner] = link.superseded == 0
    erased = ErasedMemories()
    for row in rows:
        owners = active[row.id]
        if row.user_id != user or _other_people(owners, user) or GLOBAL in owners:
            await _remove_from_shared(connection, row, owners, user)
            erased.shared += 1
        else:
            erased.deleted[row.id] = row.content
    erased.steps = await _remove_from_history(connection, user, ids)
    erased.steps += await _bridge_history(connection, erased.deleted, active, now)
    deleted = list(erased.deleted)
    for table_column in (memory_updates.c.old_id, memory_owners.c.memory_id, memories.c.id):
        await connection.execute(delete(table_column.table).where(table_column.in_(deleted)))
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


async def _bridge_history(
    connection: AsyncConnection,
    deleted: Collection[str],
    active: Mapping[str, Mapping[str, bool]],
    now: datetime,
) -> int:
    """Connect what a deleted memory had replaced with what replaced the deleted one. If nothing replaced it,
    the older memory becomes active again, unless it was corrected on purpose. Returns the number of deleted
    steps."""
    touching = or_(memory_updates.c.new_id.in_(deleted), memory_updates.c.old_id.in_(deleted))
    query = select(memory_updates).where(touching).order_by(memory_updates.c.created_at)
    steps = (await connection.execute(query)).all()
    removed = sum(step.old_id in deleted for step in steps)
    for step in steps:
        if step.new_id not in deleted or step.old_id in deleted:
            continue
        successors: dict[str, tuple[Any, list[str]]] = {}
        for owner in step.owners:
            last = _last_step(step, owner, steps, deleted)
            if last is step or last.new_id in deleted:
                corrected = CORRECTED in (step.reason, last.reason)
                if active[last.new_id].get(owner) and not corrected:
                    await _reactivate(connection, step.old_id, owner, now)
            elif last.new_id != step.old_id:
                successors.setdefault(last.id, (last, []))[1].append(owner)
        await connection.execute(delete(memory_updates).where(memory_updates.c.id == step.id))
        removed += 1 - len(successors)
        for last, owners in successors.values():
            bridge = {"id": new_id(), "old_id": step.old_id, "new_id": last.new_id, "owners": owners}
            why = {"user_id": last.user_id, "reason": last.reason, "created_at": last.created_at}
            await connection.execute(memory_updates.insert().values(**bridge, **why))
    return removed


def _last_step(step: Any, owner: str, steps: Sequence[Any], deleted: Collection[str]) -> Any:
    """Follow the owner's chain of deleted memories to the step that leaves it, or to its end."""
    seen = {step.id}
    while step.new_id in deleted:
        after = [s for s in steps if s.old_id == step.new_id and owner in s.owners and s.id not in seen]
        if not after:
            return step
        step = after[-1]
        seen.add(step.id)
    return step


async def _reactivate(connection: AsyncConnection, id: str, owner: str, now: datetime) -> None:
    """Make the memory active again, unless it has expired or an active one has the same words."""
    current = exists().where(memories.c.id == id, unexpired(now))
    link = (memory_owners.c.memory_id == id, memory_owners.c.owner == owner)
    await connection.execute(update(memory_owners).where(*link, current, ~told_again()).values(superseded=0))
    await index_again(connection, [id])
