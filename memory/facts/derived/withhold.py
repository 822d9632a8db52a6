"""Withholds derived texts whose sources no longer hold."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.facts.derived.lost import Lost, read, with_replaced
from memory.facts.derived.profile_entries import Row, withhold_entries
from memory.sql.jobs import JobQueue
from memory.sql.summaries import LOOK_BACK, consolidation_subject, heard_by
from memory.sql.tables import (
    active_conversations,
    derived_sources,
    memory_owners,
    messages,
)


@dataclass(frozen=True, slots=True)
class Withheld:
    summaries: int
    """How many summaries are withheld until they are rebuilt."""
    entries: tuple[Row, ...]
    """The rows of the profile that lost their value, as they were."""


async def withhold(
    connection: AsyncConnection,
    now: datetime,
    *,
    message_ids: Collection[str] = (),
    memory_ids: Collection[str] = (),
    owners: Collection[str] | None = None,
    instead: str = "",
) -> Withheld:
    """Remove every derived text that rests on these messages or memories, in the caller's transaction, and
    add the jobs that write it again. Call it before their rows are deleted.

    `owners` are the owner keys for which they no longer hold; None means for everybody. `instead` is the
    statement that replaced a memory: profile values that it repeats stay.
    """
    if owners is None:
        memory_ids = await with_replaced(connection, memory_ids)
    facts, heard = await read(connection, message_ids, memory_ids)
    losers = None if owners is None else frozenset(owners)
    lost = Lost(frozenset(message_ids), facts, heard, losers, instead, now)
    await _mark_outdated(connection, lost, now)
    emptied = await _withhold_summaries(connection, lost, now)
    in_short, entries = await withhold_entries(connection, lost, emptied)
    for row in in_short:
        place, user = Place.of_key(row["place"]), row["user_id"]
        talk, owner = (f"dm:{user}", user_key(user)) if place.private else (place.key, place.key)
        await _rebuild(connection, talk, owner, user, now)
    return Withheld(len(emptied) + len(in_short), tuple(entries))


async def _mark_outdated(connection: AsyncConnection, lost: Lost, now: datetime) -> None:
    """Note in the messages of facts that end for everybody that summaries leave them out, since nothing else
    is kept of these facts."""
    ended = {id for fact in lost.facts if lost.owners is None for id in fact.messages}
    if ended:
        marked = update(messages).where(messages.c.id.in_(ended), messages.c.outdated_at.is_(None))
        await connection.execute(marked.values(outdated_at=now))


async def _withhold_summaries(connection: AsyncConnection, lost: Lost, now: datetime) -> list[str]:
    """Returns the ids of the summaries that were emptied."""
    active = active_conversations
    told = [id for id, row in lost.heard.items() if id in lost.forgotten or row.outdated_at is None]
    same = and_(messages.c.conversation_id == active.c.conversation_id, heard_by() == active.c.owner)
    covering = select(active.c.id).join(messages, and_(same, messages.c.seq <= active.c.covered))
    given = select(derived_sources.c.text_id).where(derived_sources.c.source_id.in_(lost.ids))
    owners = select(memory_owners.c.owner).where(
        memory_owners.c.memory_id.in_([fact.id for fact in lost.facts])
    )
    rests = or_(
        active.c.id.in_(covering.where(messages.c.id.in_(told))),
        active.c.id.in_(given),
        and_(active.c.unsourced == 1, active.c.owner.in_(owners)),
    )
    rows = (await connection.execute(select(active).where(active.c.summary != "", rests))).all()
    ids = []
    for row in rows:
        place = _place_of(row.owner)
        user = row.owner.removeprefix("user:") if place.private else min(lost.people)
        if lost.concerns(user, place):
            ids.append(row.id)
            await _rebuild(connection, row.conversation_id, row.owner, user, now)
    if ids:
        emptied = update(active).where(active.c.id.in_(ids))
        revision = active.c.revision + 1
        await connection.execute(
            emptied.values(summary="", withheld=1, updated_at=now, indexed_under=None, revision=revision)
        )
        await connection.execute(delete(derived_sources).where(derived_sources.c.text_id.in_(ids)))
    return ids


def _place_of(owner: str) -> Place:
    return Place() if owner.startswith("user:") else Place.of_key(owner)


async def _rebuild(
    connection: AsyncConnection, conversation: str, owner: str, user: str, now: datetime
) -> None:
    payload = {"conversation": conversation, "place": list(_place_of(owner).path)}
    about = consolidation_subject(conversation, owner)
    await JobQueue.add(connection, LOOK_BACK, user, payload, now, about=about)
