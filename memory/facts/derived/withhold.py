"""Withholds derived texts whose sources no longer hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.facts.derived.lost import Fact, Lost, links_of, read, with_replaced
from memory.facts.derived.profile_entries import Row, withhold_entries
from memory.sql.changes import changed
from memory.sql.jobs import JobQueue
from memory.sql.rests_on import let_go, resting_on
from memory.sql.summaries import LOOK_BACK, consolidation_subject, heard_by
from memory.sql.tables import (
    active_conversations,
    messages,
)


@dataclass(frozen=True, slots=True)
class Withheld:
    summaries: int
    """How many summaries are withheld until they are rebuilt."""
    entries: tuple[Row, ...]
    """The rows of the profile that lost their value, as they were."""


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
    undone: bool = False,
) -> Withheld:
    """Like `withhold`, after owners have lost some of these facts: for these owners alone, or for everybody
    where nothing is left of a fact."""
    left = await links_of(connection, [fact.id for fact in held.facts])
    lost: dict[frozenset[str] | None, list[Fact]] = {}
    for fact in held.facts:
        still = {owner for owner, holds in left.get(fact.id, {}).items() if holds}
        losers = fact.active - still if fact.id in left else None
        if losers is None or losers:
            lost.setdefault(losers, []).append(fact)
    found = Withheld(0, ())
    for losers, facts in lost.items():
        heard = {id: held.heard[id] for fact in facts for id in fact.messages & held.heard.keys()}
        one = await _withhold(connection, Lost(frozenset(), facts, heard, losers, "", now, undone))
        found = Withheld(found.summaries + one.summaries, found.entries + one.entries)
    return found


async def _withhold(connection: AsyncConnection, lost: Lost) -> Withheld:
    now = lost.now
    emptied = await _withhold_summaries(connection, lost)
    in_short, entries = await withhold_entries(connection, lost, emptied)
    for row in in_short:
        place, user = Place.of_key(row["place"]), row["user_id"]
        talk, owner = (f"dm:{user}", user_key(user)) if place.private else (place.key, place.key)
        await _rebuild(connection, talk, owner, now)
    return Withheld(len(emptied) + len(in_short), tuple(entries))


async def _withhold_summaries(connection: AsyncConnection, lost: Lost) -> list[str]:
    """Returns the ids of the summaries that were emptied."""
    active, now = active_conversations, lost.now
    same = and_(messages.c.conversation_id == active.c.conversation_id, heard_by() == active.c.owner)
    covering = select(active.c.id).join(messages, and_(same, messages.c.seq <= active.c.covered))
    rests = or_(
        active.c.id.in_(covering.where(messages.c.id.in_(lost.heard))),
        active.c.id.in_(resting_on(lost.ids, "covered")),
    )
    if lost.facts and lost.expired:  # what was written since then knows it
        rests = and_(rests, active.c.updated_at < max(fact.expires_at or now for fact in lost.facts))
    rows = (await connection.execute(select(active).where(active.c.summary != "", rests))).all()
    ids = []
    for row in rows:
        place = _place_of(row.owner)
        user = row.owner.removeprefix("user:") if place.private else min(lost.people)
        if lost.concerns(user, place):
            ids.append(row.id)
            await _rebuild(connection, row.conversation_id, row.owner, now)
    if ids:
        emptied = {"summary": "", "withheld": 1, "updated_at": now}
        if not (lost.instead or lost.expired or lost.undone):
            emptied["forgotten_at"] = now
        rows_of = update(active).where(active.c.id.in_(ids))
        await connection.execute(rows_of.values(**emptied, revision=active.c.revision + 1))
        await let_go(connection, ids)
        await changed(connection, "summary", ids, gone=True)
    return ids


def _place_of(owner: str) -> Place:
    return Place() if owner.startswith("user:") else Place.of_key(owner)


async def _rebuild(connection: AsyncConnection, conversation: str, owner: str, now: datetime) -> None:
    payload = {"conversation": conversation, "place": list(_place_of(owner).path)}
    about = consolidation_subject(conversation, owner)
    await JobQueue.expect(connection, LOOK_BACK, owner.removeprefix("user:"), payload, now, about=about)
