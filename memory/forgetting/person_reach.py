"""What is a person's, for their erasure: all of it, and the replies to others that contain it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, user_key
from memory.forgetting.reach import NOT_SCANNED, TELLING, Link, Reach, Scanned, facts_of, lost_links, names_of
from memory.forgetting.repeats import repeats, words
from memory.sql.hidden import parts
from memory.sql.messages.message_rows import kept
from memory.sql.rests_on import resting_on
from memory.sql.tables import (
    active_conversations,
    context_entries,
    memories,
    memory_owners,
    messages,
    rests_on,
    tasks,
)


async def of_person(
    connection: AsyncConnection, user: str, places: Collection[str], scanned: Scanned = NOT_SCANNED
) -> Reach:
    """All that is a person's, with the replies to others, in these places or inside them, that were shown
    something of theirs and contain it; those that were `scanned` before are not compared again."""
    own = user_key(user)
    linked = select(memory_owners.c.memory_id).where(memory_owners.c.owner == own)
    stated = select(memories.c.id).where(or_(memories.c.user_id == user, memories.c.id.in_(linked)))
    links, _ = await lost_links(connection, list(await connection.scalars(stated)), user)
    facts = await facts_of(connection, links)
    kept_by_others = {id for id, owner in links if owner == GLOBAL}
    mine = (await connection.execute(select(messages).where(messages.c.user_id == user))).all()
    told = {row.id for row in mine if row.role == "user"}
    shared = await left_to_others(connection, links)
    texts = [fact.content for fact in facts if fact.id not in shared]
    texts += [row.text for row in mine if row.id in told and len(words(row.text)) >= TELLING]
    talks = {row.conversation_id for row in mine}
    active = active_conversations.c
    summaries = await connection.scalars(select(active.id).where(active.conversation_id.in_(talks)))
    theirs = {fact.id for fact in facts} - shared | {row.id for row in mine} | set(summaries)
    shown = await _shown_to_others(connection, user, theirs, places)
    new = {id: text for id, (seq, text) in shown.items() if seq > scanned.upto}
    containing = scanned.found & shown.keys() | await _repeating(connection, new, texts, user)
    upto = max([scanned.upto, *(seq for seq, _ in shown.values())])
    its_tasks = select(tasks.c.id).where(tasks.c.user_id == user)
    its_entries = select(context_entries.c.id).where(context_entries.c.user_id == user)
    return Reach(
        user,
        frozenset(link for link in links if link[0] not in kept_by_others or link[1] == own),
        tuple(facts),
        frozenset(told),
        frozenset({row.id for row in mine} - told | containing),
        tuple(sorted(shown.keys() - containing)),
        frozenset(await connection.scalars(its_tasks)),
        frozenset(await connection.scalars(its_entries)),
        scanned=Scanned(upto, frozenset(containing)),
    )


async def left_to_others(connection: AsyncConnection, links: Collection[Link]) -> set[str]:
    """Those of the memories of these links that have others."""
    query = select(memory_owners.c.memory_id, memory_owners.c.owner)
    query = query.where(memory_owners.c.memory_id.in_({id for id, _ in links}))
    return {row.memory_id for row in await connection.execute(query) if tuple(row) not in links}


async def _shown_to_others(
    connection: AsyncConnection, user: str, theirs: Collection[str], places: Collection[str]
) -> dict[str, tuple[int, str]]:
    """The replies to others in these places that rest on something of the person's: `seq` and text."""
    inside = [messages.c.place.startswith(f"{place}/", autoescape=True) for place in places]
    there = or_(messages.c.place.in_(places), *inside)
    found: dict[str, tuple[int, str]] = {}
    for part in parts(theirs):
        rests = resting_on(part, "found", "covered")
        query = select(messages.c.id, messages.c.seq, messages.c.text)
        query = query.where(messages.c.id.in_(rests), there)
        rows = await connection.execute(
            query.where(messages.c.role == "assistant", messages.c.user_id != user)
        )
        found |= {row.id: (row.seq, row.text) for row in rows}
    return found


async def _repeating(
    connection: AsyncConnection, shown: Mapping[str, str], texts: Sequence[str], user: str
) -> set[str]:
    """Those of the replies that contain one of the texts, and were shown no statement of somebody else that
    contains it too."""
    names, found = await names_of(connection, user), set[str]()
    for id, text in shown.items():
        await asyncio.sleep(0)  # it may take long, and others have work to do
        told = [one for one in texts if repeats(text, one, names)]
        if told and not await _said_by_others(connection, id, told, user, names):
            found.add(id)
    return found


async def _said_by_others(
    connection: AsyncConnection, reply: str, texts: Sequence[str], user: str, names: str
) -> bool:
    given = select(rests_on.c.source_id).where(rests_on.c.derived_id == reply, rests_on.c.how == "found")
    spoken = (messages.c.role == "user", messages.c.user_id != user, kept())
    said = list(await connection.scalars(select(messages.c.text).where(messages.c.id.in_(given), *spoken)))
    known = select(memories.c.content).where(memories.c.id.in_(given), memories.c.user_id != user)
    said += await connection.scalars(known)
    return all(any(repeats(one, text, names) for one in said) for text in texts)
