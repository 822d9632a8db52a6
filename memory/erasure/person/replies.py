"""Finds Hachi's replies to others that repeat what an erased person told.

A reply in a place may repeat what the person told there, or in a place around it, since nobody there could
read more. What somebody else told there too is theirs, and a reply that repeats it stays.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, false, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.erasure.message_removal import teller_words
from memory.erasure.person.listing import places_of
from memory.erasure.repetition import FactWords, Words, telling_sentences, words
from memory.facts.derived import HeldFacts
from memory.facts.derived.lost import links_of
from memory.sql.message_rows import kept
from memory.sql.tables import memories, memory_owners, messages

AT_ONCE = 200
"""Messages that are compared before other work gets a turn."""

_Facts = Mapping[str, set[FactWords]]
"""What the person told in each place, by its key."""


async def replies_repeating(connection: AsyncConnection, user: str, places: Collection[str]) -> list[str]:
    """The ids of the replies to others, in these places and inside them, that repeat what only this person
    told there, or repeat it and name the person."""
    return await _repeating(connection, user, places, await _told_in(connection, user, places))


async def replies_left_behind(connection: AsyncConnection, user: str, held: HeldFacts) -> list[str]:
    """The ids of the replies to others that repeat what places have lost of the facts `held` since, and that
    `replies_repeating` cannot find by anything else that the person told."""
    left = await links_of(connection, [fact.id for fact in held.facts])
    lost = [
        (owner, fact.content)
        for fact in held.facts
        for owner in fact.owners.keys() - left.get(fact.id, {}).keys()
        if owner.startswith("place:")
    ]
    if not lost:
        return []
    teller, told = await teller_words(connection, user), defaultdict(set)
    for owner, content in lost:
        told[owner].add(FactWords.of(content, teller))
    places = told.keys() | await places_of(connection, user)
    found = await _repeating(connection, user, places, told)
    still = await replies_repeating(connection, user, places) if found else []
    return sorted(set(found).difference(still))


async def _repeating(
    connection: AsyncConnection, user: str, places: Collection[str], told: _Facts
) -> list[str]:
    if not any(told.values()):
        return []
    named, teller = set(), await teller_words(connection, user)
    repeated: dict[str, set[FactWords]] = {}
    asked: dict[tuple[str, str], Words] = {}
    async for row in _heard(connection, user, told.keys()):
        talk = (row.conversation_id, row.user_id)
        if row.role == "user":
            asked[talk] = words(row.text)
        elif found := _repeated(_readable_in(row.place, told), words(row.text), asked.get(talk, frozenset())):
            repeated[row.id] = found
            if not teller.isdisjoint(words(row.text)):
                named.add(row.id)
    theirs = await _also_told(connection, user, places, set().union(*repeated.values()))
    return sorted(id for id, found in repeated.items() if id in named or found - theirs)


def _repeated(facts: Iterable[FactWords], reply: Words, question: Words) -> set[FactWords]:
    return {fact for fact in facts if not fact.all.isdisjoint(reply) and fact.repeated_in(reply, question)}


def _readable_in(place: str, told: _Facts) -> set[FactWords]:
    """What the person told in this place and the places around it."""
    return set().union(*(told.get(around.key, set()) for around in Place.of_key(place).containing()))


async def _told_in(connection: AsyncConnection, user: str, places: Collection[str]) -> _Facts:
    teller = await teller_words(connection, user)
    told: dict[str, set[FactWords]] = defaultdict(set)
    spoke = (messages.c.user_id == user, messages.c.role == "user", messages.c.place.in_(places), kept())
    for row in await connection.execute(select(messages.c.place, messages.c.text).where(*spoke)):
        told[row.place] |= {FactWords.of(text, teller) for text in telling_sentences(row.text, teller)}
    query = (
        select(memory_owners.c.owner, memories.c.content)
        .join(memories)
        .where(memory_owners.c.owner.in_(places), ~_told_by_others(user))
    )
    for row in await connection.execute(query):
        told[row.owner].add(FactWords.of(row.content, teller))
    return told


async def _heard(connection: AsyncConnection, user: str, places: Collection[str]) -> Any:
    """The messages of others in these places and the replies to them, in order."""
    columns = ("id", "conversation_id", "user_id", "place", "role", "text")
    query = select(*(messages.c[name] for name in columns)).where(_inside(messages.c.place, places), kept())
    query = query.where(messages.c.user_id != user).order_by(messages.c.seq)
    for number, row in enumerate((await connection.execute(query)).all()):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        yield row


async def _also_told(
    connection: AsyncConnection, user: str, places: Collection[str], facts: set[FactWords]
) -> set[FactWords]:
    """Which of these facts somebody else stated in one of the places: in a memory, or in a message."""
    here = _inside(memory_owners.c.owner, places)
    query = select(memories.c.content).join(memory_owners).where(here, _told_by_others(user))
    texts = list((await connection.execute(query)).scalars()) if facts else []
    texts += [row.text async for row in _heard(connection, user, places) if facts and row.role == "user"]
    found: set[FactWords] = set()
    for text in texts:
        said = words(text)
        found |= {fact for fact in facts - found if fact.all <= said and fact.stated_by(text)}
    return found


def _told_by_others(user: str) -> ColumnElement[bool]:
    """True for memories that somebody else stated, first or too."""
    others = memory_owners.alias("others")
    too = (others.c.owner.startswith("user:"), others.c.owner != user_key(user))
    return or_(memories.c.user_id != user, memories.c.id.in_(select(others.c.memory_id).where(*too)))


def _inside(key: ColumnElement[str], places: Collection[str]) -> ColumnElement[bool]:
    """True for the keys of these places, and of the places in them."""
    inside = (key.startswith(f"{place}/", autoescape=True) for place in places)
    return or_(false(), key.in_(places), *inside)
