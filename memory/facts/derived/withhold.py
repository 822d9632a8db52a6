"""Withholds derived texts whose sources no longer hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.facts.derived.ended import ended_parts
from memory.facts.derived.lost import Fact, Lost, links_of, read, with_replaced
from memory.facts.derived.profile_entries import Row, withhold_entries
from memory.sql.jobs import JobQueue
from memory.sql.summaries import LOOK_BACK, consolidation_subject, heard_by
from memory.sql.tables import (
    active_conversations,
    derived_sources,
    messages,
)


@dataclass(frozen=True, slots=True)
class Withheld:
    summaries: int
    """How many summaries are withheld until they are rebuilt."""
    entries: tuple[Row, ...]
    """The rows of the profile that lost their value, as they were."""
    outdated: frozenset[str]
    """The ids of the messages that were marked as outdated by this."""


@dataclass(frozen=True, slots=True)
class HeldFacts:
    """Facts before some of their owners lose them, for `withhold_lost`."""

    facts: Sequence[Fact]
    heard: Mapping[str, Any]
    """The rows of the messages that state them, by id."""

    @classmethod
    async def of(cls, connection: AsyncConnection, memory_ids: Collection[str]) -> "HeldFacts":
        return cls(*await read(connection, (), memory_ids))


async def withhold(
    connection: AsyncConnection,
    now: datetime,
    *,
    message_ids: Collection[str] = (),
    memory_ids: Collection[str] = (),
    owners: Collection[str] | None = None,
    instead: str = "",
    undone: bool = False,
) -> Withheld:
    """Remove every derived text that rests on these messages or memories, in the caller's transaction, and
    add the jobs that write it again. Call it before their rows are deleted.

    `owners` are the owner keys for which they no longer hold; None means for everybody. `instead` is the
    statement that replaced a memory: profile values that it repeats stay. With `undone` a forgetting is
    undone: replies that are being written from these texts keep theirs.
    """
    if owners is None:
        memory_ids = await with_replaced(connection, memory_ids)
    facts, heard = await read(connection, message_ids, memory_ids)
    losers = None if owners is None else frozenset(owners)
    lost = Lost(frozenset(message_ids), facts, heard, losers, instead, now, undone)
    return await _withhold(connection, lost)


async def withhold_lost(
    connection: AsyncConnection,
    held: HeldFacts,
    now: datetime,
    *,
    besides: Collection[str] = (),
    undone: bool = False,
) -> Withheld:
    """Like `withhold`, after owners have lost some of these facts: for these owners alone, or for everybody
    where nothing is left of a fact. `besides` are messages without a text, which need no mark."""
    left = await links_of(connection, [fact.id for fact in held.facts])
    lost: dict[frozenset[str] | None, list[Fact]] = {}
    for fact in held.facts:
        still = {owner for owner, holds in left.get(fact.id, {}).items() if holds}
        losers = fact.active - still if fact.id in left else None
        if losers is None or losers:
            lost.setdefault(losers, []).append(fact)
    found = Withheld(0, (), frozenset())
    for losers, facts in lost.items():
        heard = {id: held.heard[id] for fact in facts for id in fact.messages & held.heard.keys()}
        one = await _withhold(connection, Lost(frozenset(), facts, heard, losers, "", now, undone), besides)
        found = Withheld(
            found.summaries + one.summaries, found.entries + one.entries, found.outdated | one.outdated
        )
    return found


async def _withhold(connection: AsyncConnection, lost: Lost, besides: Collection[str] = ()) -> Withheld:
    now = lost.now
    outdated = await _mark_outdated(connection, lost, besides)
    emptied = await _withhold_summaries(connection, lost)
    in_short, entries = await withhold_entries(connection, lost, emptied)
    for row in in_short:
        place, user = Place.of_key(row["place"]), row["user_id"]
        talk, owner = (f"dm:{user}", user_key(user)) if place.private else (place.key, place.key)
        await _rebuild(connection, talk, owner, user, now)
    return Withheld(len(emptied) + len(in_short), tuple(entries), outdated)


async def _mark_outdated(connection: AsyncConnection, lost: Lost, besides: Collection[str]) -> frozenset[str]:
    """Note in the messages of facts that end for everybody that summaries leave them out, since nothing else
    is kept of these facts. Returns the ids of those that had no such note."""
    if lost.owners is not None:
        return frozenset()
    ended = {id for fact in lost.facts for id in fact.messages}.difference(besides)
    rows = [lost.heard[id] for id in sorted(ended & lost.heard.keys())]
    for row in rows:
        contents = [fact.content for fact in lost.facts if row.id in fact.messages]
        parts = ended_parts(row.text, contents, f"{row.user_id} {row.author}")
        if row.outdated_at is not None and parts is not None:  # something else in it has ended before
            before = [(start, end) for start, end in row.ended or ()]
            parts = tuple(sorted({*parts, *before})) if before else None
        marked = update(messages).where(messages.c.id == row.id)
        at = func.coalesce(messages.c.outdated_at, literal(lost.now, messages.c.outdated_at.type))
        await connection.execute(marked.values(outdated_at=at, ended=parts))
    return frozenset(row.id for row in rows if row.outdated_at is None)


async def _withhold_summaries(connection: AsyncConnection, lost: Lost) -> list[str]:
    """Returns the ids of the summaries that were emptied."""
    active, now = active_conversations, lost.now
    told = [id for id, row in lost.heard.items() if id in lost.forgotten or row.outdated_at is None]
    same = and_(messages.c.conversation_id == active.c.conversation_id, heard_by() == active.c.owner)
    covering = select(active.c.id).join(messages, and_(same, messages.c.seq <= active.c.covered))
    given = select(derived_sources.c.text_id).where(derived_sources.c.source_id.in_(lost.ids))
    owners = {owner for fact in lost.facts for owner in fact.owners}
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
        emptied = {"summary": "", "withheld": 1, "updated_at": now, "indexed_under": None}
        if not (lost.instead or lost.expired or lost.undone):
            emptied["forgotten_at"] = now
        rows_of = update(active).where(active.c.id.in_(ids))
        await connection.execute(rows_of.values(**emptied, revision=active.c.revision + 1))
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
