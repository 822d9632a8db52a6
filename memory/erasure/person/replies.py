"""Finds Hachi's replies to others that were shown something of an erased person, by ids.

A reply that contains it goes (`memory.erasure.repeats`), unless a statement of somebody else that it was
shown too contains the same. The others stay, and the receipt counts them.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, false, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.erasure.message_removal import teller_words
from memory.erasure.person.memories import stated_alone
from memory.erasure.repeats import identifiers_in, repeats
from memory.erasure.repetition import TELLING, Words, words
from memory.facts.derived import HeldFacts
from memory.facts.derived.lost import links_of
from memory.facts.derived.replies import given_to
from memory.index.schema import slices
from memory.sql.message_rows import has_text
from memory.sql.tables import active_conversations, memories, messages, rests_on
from memory.text import sentences

IDS_AT_ONCE = 500
"""Ids in one statement."""
_Told = dict[str, set[str]]
"""What a person told: each text, with the ids of the messages, memories, summaries and replies with it."""


@dataclass(frozen=True, slots=True)
class ShownReplies:
    containing: list[str]
    """The ids of the replies to others that contain something of the person's, and are to be emptied."""
    others: int
    """How many other replies to others were shown something of theirs."""


async def shown_replies(connection: AsyncConnection, user: str, places: Collection[str]) -> ShownReplies:
    """Judge the replies in these places, and inside them, that were shown something of this person's."""
    told, theirs = await _told_in(connection, user, places)
    teller = await teller_words(connection, user)
    shown, containing = set[str](), dict[str, set[str]]()
    for row, given, texts in _containing(*await _replies(connection, places), told, teller):
        await asyncio.sleep(0)  # it may take long, and others have work to do
        if row.user_id != user:
            shown |= {row.id} if given & theirs else set()
            if texts and not await _said_by_others(connection, given, user, texts, teller):
                containing[row.id] = texts
    return ShownReplies(sorted(containing), len(shown - containing.keys()))


async def replies_left_behind(connection: AsyncConnection, user: str, held: HeldFacts) -> list[str]:
    """The ids of the replies to others that contain what places have lost of the facts `held` since, and that
    `shown_replies` cannot find by anything else that the person told."""
    left = await links_of(connection, [fact.id for fact in held.facts])
    told: _Told = defaultdict(set)
    places = set[str]()
    for fact in held.facts:
        lost = {key for key in fact.owners.keys() - left.get(fact.id, {}).keys() if key.startswith("place:")}
        if lost:
            told[fact.content] |= {fact.id, *fact.messages}
            places |= lost
    if not told:
        return []
    teller = await teller_words(connection, user)
    found = set[str]()
    for row, given, texts in _containing(*await _replies(connection, places), told, teller):
        if texts and row.user_id != user:
            others = await _said_by_others(connection, given, user, texts, teller)
            found |= set() if others else {row.id}
    still = (await shown_replies(connection, user, places)).containing if found else ()
    return sorted(found.difference(still))


def _containing(
    replies: list[Any], shown: Mapping[str, set[str]], told: _Told, teller: Words
) -> Iterator[tuple[Any, set[str], set[str]]]:
    """Yield each reply with the ids that it was shown, and with the texts among `told` that it was shown and
    contains. It tells these from then on, to the replies after it."""
    near: dict[Any, list[str]] = defaultdict(list)
    known = {text: words(text) - teller for text in told}
    common = Counter(word for found in known.values() for word in found)
    for text, found in known.items():
        for key in (*identifiers_in(text), min(found, key=common.__getitem__, default=None)):
            near[key].append(text)
    for row in replies:
        given = shown[row.id]
        keys = (None, *words(row.text), *identifiers_in(row.text))
        likely = {text for key in keys for text in near.get(key, ()) if told[text] & given}
        texts = {text for text in likely if repeats(row.text, text, teller)}
        for text in texts:
            told[text].add(row.id)
        yield row, given, texts


async def _replies(
    connection: AsyncConnection, places: Collection[str]
) -> tuple[list[Any], dict[str, set[str]]]:
    """Hachi's replies there of which it is known what they were shown, in order; and the ids of that."""
    query = select(messages.c.id, messages.c.user_id, messages.c.text).order_by(messages.c.seq)
    written = (messages.c.role == "assistant", _inside(messages.c.place, places), has_text())
    rows = (await connection.execute(query.where(*written))).all()
    shown = await given_to(connection, [row.id for row in rows])
    return [row for row in rows if row.id in shown], shown


async def _told_in(connection: AsyncConnection, user: str, places: Collection[str]) -> tuple[_Told, set[str]]:
    """What only this person told in these places; and the ids of all that tells something of theirs there."""
    told, talks = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    theirs = set[str]()
    columns = (messages.c.id, messages.c.role, messages.c.text, messages.c.conversation_id)
    said = select(*columns).where(messages.c.user_id == user, _inside(messages.c.place, places), has_text())
    for row in await connection.execute(said):
        theirs.add(row.id)
        parts = sentences(row.text) if row.role == "user" else ()
        telling = {text for text in parts if len(words(text)) >= TELLING or identifiers_in(text)}
        talks[row.conversation_id] |= telling
        for text in telling:
            told[text].add(row.id)
    stated = (rests_on.c.derived_id == memories.c.id) & (rests_on.c.how == "stated")
    facts = select(memories.c.id, memories.c.content, rests_on.c.source_id).where(stated_alone(user))
    facts = facts.outerjoin(rests_on, stated)
    for id, content, message in (await connection.execute(facts)).all():
        theirs.add(id)
        told[content] |= {id, message} if message in theirs else {id}
    active = active_conversations.c
    for id, talk in (await connection.execute(select(active.id, active.conversation_id))).all():
        if talk in talks:
            theirs.add(id)
            for text in talks[talk]:
                told[text].add(id)
    return told, theirs


async def _said_by_others(
    connection: AsyncConnection, ids: Collection[str], user: str, texts: Collection[str], teller: Words
) -> bool:
    """Whether what others said in these messages and memories contains each of the texts."""
    said = list[str]()
    for part in slices(sorted(ids), IDS_AT_ONCE):
        spoken = (messages.c.role == "user", messages.c.user_id != user, has_text())
        said += await connection.scalars(select(messages.c.text).where(messages.c.id.in_(part), *spoken))
        facts = select(memories.c.content).where(memories.c.id.in_(part), ~stated_alone(user))
        said += await connection.scalars(facts)
    return all(any(repeats(one, text, teller) for one in said) for text in texts)


def _inside(key: ColumnElement[str], places: Collection[str]) -> ColumnElement[bool]:
    """True for the keys of these places, and of the places in them."""
    inside = (key.startswith(f"{place}/", autoescape=True) for place in places)
    return or_(false(), key.in_(places), *inside)
