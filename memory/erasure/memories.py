"""A person leaves what is remembered. What they alone said goes for everybody, with its text, its names and
its history. What somebody else said as well stays theirs, and no longer by the word of who left.

Where what they said had taken the place of what others said, the others' statement takes it back, or is told
to have given way to what came next: an erasure undoes what the person did, and nothing else.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Place, user_key
from memory.spans import new_id
from memory.sql.memories import CORRECTED
from memory.sql.memory_rows import index_again, unexpired
from memory.sql.tables import memories, memory_owners, memory_updates, messages

NOBODY = ""
"""Stands where a person stood who is not to be named any more."""


@dataclass(slots=True)
class Taken:
    gone: dict[str, str] = field(default_factory=dict)
    """The texts of the memories that went for everybody, by id."""
    left: int = 0
    """Memories that others hold as well: only the person's part in them went."""
    steps: int = 0
    """Steps of the history that went."""


def theirs(user: str) -> Select[Any]:
    """The ids of the memories that are the person's, or that they are the teller of; oldest first."""
    held = exists().where(memory_owners.c.memory_id == memories.c.id, memory_owners.c.owner == user_key(user))
    query = select(memories.c.id).where(or_(held, memories.c.user_id == user))
    return query.order_by(memories.c.created_at, memories.c.id)


async def owners_of(connection: AsyncConnection, ids: Collection[str]) -> set[str]:
    """Whoever else has a part in these: what is decided about them is to be decided by nobody else."""
    query = select(memory_owners.c.owner).where(memory_owners.c.memory_id.in_(ids)).distinct()
    return set((await connection.execute(query)).scalars())


async def take_memories(connection: AsyncConnection, user: str, ids: Collection[str], now: datetime) -> Taken:
    """These memories lose the person, in the caller's transaction; done again, it finds nothing to do."""
    rows = (await connection.execute(select(memories).where(memories.c.id.in_(ids)))).all()
    links = (await connection.execute(select(memory_owners).where(memory_owners.c.memory_id.in_(ids)))).all()
    held: dict[str, dict[str, bool]] = {row.id: {} for row in rows}
    for link in links:
        held[link.memory_id][link.owner] = link.superseded == 0
    taken = Taken()
    for row in rows:
        if row.user_id != user or _others(held[row.id], user) or GLOBAL in held[row.id]:
            await _leave(connection, row, held[row.id], user)
            taken.left += 1
        else:
            taken.gone[row.id] = row.content
    staying = [row.id for row in rows if row.id not in taken.gone]
    taken.steps = await _forget_steps(connection, user, ids)
    taken.steps += await _close_the_gap(connection, taken.gone, held, now)
    gone = list(taken.gone)
    await connection.execute(delete(memory_updates).where(memory_updates.c.old_id.in_(gone)))
    await connection.execute(delete(memory_owners).where(memory_owners.c.memory_id.in_(gone)))
    await connection.execute(delete(memories).where(memories.c.id.in_(gone)))
    await index_again(connection, staying)
    return taken


def _others(owners: dict[str, bool], user: str) -> list[str]:
    """The other people who said it; those for whom it still holds first."""
    people = [owner for owner in owners if owner.startswith("user:") and owner != user_key(user)]
    return [owner.removeprefix("user:") for owner in sorted(people, key=lambda o: (not owners[o], o))]


async def _leave(connection: AsyncConnection, row: Any, owners: dict[str, bool], user: str) -> None:
    """It stays for others; where the person was the one who said it, one of them is now."""
    lost = {user_key(user)}
    if row.user_id == user:
        others = _others(owners, user)
        places = [owner for owner in owners if owner.startswith("place:")]
        staying = await _said_in(connection, others, places)
        lost |= set(places) - set(staying)
        heard = Place.of_key(staying[0]) if staying else Place.parse(row.place)
        left = update(memories).where(memories.c.id == row.id)
        heir = others[0] if others else NOBODY
        await connection.execute(left.values(user_id=heir, message_id=None, place=str(heard)))
    here = memory_owners.c.memory_id == row.id
    await connection.execute(delete(memory_owners).where(here, memory_owners.c.owner.in_(lost)))


async def _said_in(connection: AsyncConnection, others: Sequence[str], places: Sequence[str]) -> list[str]:
    """In which of these places one of the others said it. Of one place that is certain: it is how they came
    to have a part in it. Of several, it can only be where they have spoken."""
    if len(places) < 2 or not others:
        return list(places)
    spoke = select(messages.c.place).where(messages.c.user_id.in_(others), messages.c.place.in_(places))
    found = set((await connection.execute(spoke.distinct())).scalars())
    return sorted(found) or list(places)


async def _forget_steps(connection: AsyncConnection, user: str, ids: Collection[str]) -> int:
    """Steps of these memories that were taken for the person; they are told of for others alone."""
    touching = or_(memory_updates.c.old_id.in_(ids), memory_updates.c.new_id.in_(ids))
    forgotten = 0
    for step in (await connection.execute(select(memory_updates).where(touching))).all():
        left = [owner for owner in step.owners if owner != user_key(user)]
        same = memory_updates.c.id == step.id
        if not left:
            await connection.execute(delete(memory_updates).where(same))
            forgotten += 1
        elif left != step.owners or step.user_id == user:
            by = NOBODY if step.user_id == user else step.user_id
            await connection.execute(update(memory_updates).where(same).values(owners=left, user_id=by))
    return forgotten


async def _close_the_gap(
    connection: AsyncConnection, gone: Collection[str], held: dict[str, dict[str, bool]], now: datetime
) -> int:
    """What had given way to something that goes now has given way to what came after that; where nothing
    did, it holds again, unless it was corrected on purpose. Returns how many steps went."""
    into = memory_updates.c.new_id.in_(gone)
    query = select(memory_updates).where(or_(into, memory_updates.c.old_id.in_(gone)))
    steps = (await connection.execute(query.order_by(memory_updates.c.created_at))).all()
    forgotten = sum(step.old_id in gone for step in steps)
    for step in (step for step in steps if step.new_id in gone and step.old_id not in gone):
        onwards: dict[str, list[str]] = {}
        for owner in step.owners:
            last = _last(step, owner, steps, gone)
            if last is step or last.new_id in gone:
                corrected = CORRECTED in (step.reason, last.reason)
                if held[last.new_id].get(owner) and not corrected:
                    await _holds_again(connection, step.old_id, owner, now)
            elif last.new_id != step.old_id:
                onwards.setdefault(last.id, []).append(owner)
        await connection.execute(delete(memory_updates).where(memory_updates.c.id == step.id))
        forgotten += 1
        for last_id, owners in onwards.items():
            [last] = [other for other in steps if other.id == last_id]
            await connection.execute(memory_updates.insert().values(**_joined(step, last, owners)))
            forgotten -= 1
    return forgotten


def _last(step: Any, owner: str, steps: Sequence[Any], gone: Collection[str]) -> Any:
    """Along the chain of what goes, the step that leads out of it; the last there is, where none does."""
    seen = {step.id}
    while step.new_id in gone:
        after = [s for s in steps if s.old_id == step.new_id and owner in s.owners and s.id not in seen]
        if not after:
            return step
        step = after[-1]
        seen.add(step.id)
    return step


def _joined(step: Any, last: Any, owners: Sequence[str]) -> dict[str, Any]:
    """One step in place of several."""
    return {
        "id": new_id(),
        "user_id": last.user_id,
        "old_id": step.old_id,
        "new_id": last.new_id,
        "reason": last.reason,
        "created_at": last.created_at,
        "owners": owners,
    }


async def _holds_again(connection: AsyncConnection, id: str, owner: str, now: datetime) -> None:
    other = memory_owners.alias("other")
    newer = exists().where(
        other.c.owner == memory_owners.c.owner,
        other.c.content_key == memory_owners.c.content_key,
        other.c.superseded == 0,
    )
    holds = exists().where(memories.c.id == id, unexpired(now))
    back = update(memory_owners).where(
        memory_owners.c.memory_id == id, memory_owners.c.owner == owner, holds, ~newer
    )
    await connection.execute(back.values(superseded=0))
    await index_again(connection, [id])
