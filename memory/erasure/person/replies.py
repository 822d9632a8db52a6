"""Finds Hachi's replies to others that tell what an erased person told, by their words and by what they were
written from.

A reply in a place may repeat what the person told there, or in a place around it, since nobody there could
read more. What somebody else told there or around too is theirs, and a reply that repeats no more stays. A
reply that was written with something of the person in view goes if it speaks of them, answers a question
about them, was written from what a search found of theirs, or has a word of theirs, unless something else
that the model was given explains all its words.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, false, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.erasure.message_removal import teller_words
from memory.erasure.person.listing import places_of
from memory.erasure.repetition import FactWords, Wording, Words, facts_in, telling_sentences, words
from memory.facts.derived import HeldFacts
from memory.facts.derived.lost import links_of
from memory.facts.derived.replies import WrittenReply, source_texts
from memory.sql.message_rows import has_text
from memory.sql.tables import active_conversations, memories, memory_owners, messages
from memory.text import sentences
from memory.text.names import fold

AT_ONCE = 200
"""Messages that are compared before other work gets a turn."""

_Facts = Mapping[str, set[FactWords]]
"""What the person told in each place, by its key; or in each message and memory, by its id."""
_THIRD_PERSON = re.compile(
    r"\b(?:she|he|her|hers|him|his|sie|er|ihr|ihre|ihm|ihn|elle|lui|ella|lei|ela|ele|она|он|ее|его|ей|ему)\b"
    r"|היא|הוא|她|他|彼女|彼"
)


@dataclass(frozen=True, slots=True)
class TellingReplies:
    ids: Collection[str]
    unverified: Collection[str] = ()
    """Those of which words cannot tell it: they were written with something of the person in view."""


async def telling_replies(connection: AsyncConnection, user: str, places: Collection[str]) -> TellingReplies:
    """The replies to others, in these places and inside them, that tell what only this person told there."""
    told, sources = await _told_in(connection, user, places), await _sources(connection, user, places)
    return await _telling(connection, user, told, sources)


async def replies_left_behind(connection: AsyncConnection, user: str, held: HeldFacts) -> list[str]:
    """The ids of the replies to others that tell what places have lost of the facts `held` since, and that
    `telling_replies` cannot find by anything else that the person told."""
    left = await links_of(connection, [fact.id for fact in held.facts])
    lost = [
        (owner, fact)
        for fact in held.facts
        for owner in fact.owners.keys() - left.get(fact.id, {}).keys()
        if owner.startswith("place:")
    ]
    if not lost:
        return []
    teller = await teller_words(connection, user)
    told: dict[str, set[FactWords]] = defaultdict(set)
    sources: dict[str, set[FactWords]] = {}
    for owner, fact in lost:
        sources[fact.id] = {FactWords.of(fact.content, teller)}
        told[owner] |= sources[fact.id]
    places = told.keys() | await places_of(connection, user)
    found = await _telling(connection, user, told, sources)
    still = await telling_replies(connection, user, places) if found.ids else found
    return sorted(set(found.ids).difference(still.ids))


@dataclass(frozen=True, slots=True)
class _Repetition:
    """A reply that repeats facts of the person."""

    place: str
    facts: set[FactWords]
    exchange: Words
    """The words of the reply, of the question, and of the asker's names."""

    def told_in(self, statement: "_Statement") -> set[FactWords]:
        """The facts that this statement tells too: it states them, or has a sentence that tells all that the
        exchange says of them. The exchange contains this sentence as a whole, and names the speaker."""
        speaker = statement.speaker
        whole = [part | speaker for part in statement.sentences if part <= self.exchange]
        if speaker.isdisjoint(self.exchange) and speaker:
            whole = []
        return {
            fact
            for fact in self.facts
            if (fact.all <= statement.words and fact.stated_by(statement.text))
            or any(fact.all & self.exchange <= part for part in whole)
        }


@dataclass(frozen=True, slots=True)
class _Statement:
    """What somebody else told."""

    text: str
    words: Words
    sentences: tuple[Words, ...]
    speaker: Words
    """The names of who says "I" in it; none in a memory."""

    @classmethod
    def of(cls, text: str, speaker: str = "") -> "_Statement":
        return cls(text, words(text), tuple(map(words, sentences(text))), words(speaker))


async def _telling(connection: AsyncConnection, user: str, told: _Facts, sources: _Facts) -> TellingReplies:
    if not any(told.values()):
        return TellingReplies(())
    named, teller = set(), await teller_words(connection, user)
    repeated: dict[str, _Repetition] = {}
    asked: dict[tuple[str, str], Any] = {}
    written: list[WrittenReply] = []
    async for row in _heard(connection, user, _inside(messages.c.place, told.keys())):
        talk = (row.conversation_id, row.user_id)
        question = asked.get(talk)
        heard = words(question.text) if question else frozenset()
        if row.role == "user":
            asked[talk] = row
        elif found := _repeated(_readable_in(row.place, told), words(row.text), heard):
            asker = words(f"{row.user_id} {question.author if question else ''}")
            repeated[row.id] = _Repetition(row.place, found, words(row.text) | heard | asker)
            if not teller.isdisjoint(words(row.text)):
                named.add(row.id)
        elif row.sources:
            written.append(WrittenReply.of(row, [question] if question else []))
    theirs = await _also_told(connection, user, repeated)
    ids = {id for id, reply in repeated.items() if id in named or reply.facts - theirs[id]}
    known = dict(sources) | {id: repeated[id].facts for id in ids}
    reworded = await _reworded(connection, written, known, await _summaries(connection, user), teller)
    return TellingReplies(sorted(ids.union(reworded.ids)), reworded.unverified)


async def _reworded(
    connection: AsyncConnection,
    written: Sequence[WrittenReply],
    sources: dict[str, set[FactWords]],
    summaries: Collection[str],
    teller: Words,
) -> TellingReplies:
    written = [one for one in written if not one.given.isdisjoint(summaries) or one.given & sources.keys()]
    said = {id: words(text) for id, text in (await source_texts(connection, written)).items()}
    ids, unverified = [], []
    for reply in written:
        in_view = reply.given & sources.keys()
        rest = (said[id] for id in reply.given - in_view if id in said)
        wording = Wording.of(reply.text, words(reply.question).union(*rest))
        if not wording.own:
            continue
        facts = {fact for id in in_view for fact in sources[id]}
        if (
            not teller.isdisjoint(wording.said | words(reply.question))
            or (facts and _THIRD_PERSON.search(fold(f"{reply.question} {reply.text}")))
            or any(sources[id] for id in in_view & reply.found)
            or wording.telling(facts)
        ):
            ids.append(reply.id)
            sources[reply.id] = facts_in(reply.text, teller)
        elif facts or not reply.given.isdisjoint(summaries):
            unverified.append(reply.id)
    return TellingReplies(ids, unverified)


def _repeated(facts: Iterable[FactWords], reply: Words, question: Words) -> set[FactWords]:
    return {fact for fact in facts if not fact.all.isdisjoint(reply) and fact.repeated_in(reply, question)}


def _readable_in(place: str, told: _Facts) -> set[FactWords]:
    """What the person told in this place and the places around it."""
    return set().union(*(told.get(around.key, set()) for around in Place.of_key(place).containing()))


async def _sources(connection: AsyncConnection, user: str, places: Collection[str]) -> _Facts:
    """The person's messages in these places, the replies to them and the person's memories, by id, each with
    what it tells."""
    teller = await teller_words(connection, user)
    here = (messages.c.user_id == user, _inside(messages.c.place, places), has_text())
    rows = await connection.execute(select(messages.c.id, messages.c.text).where(*here))
    found = {row.id: facts_in(row.text, teller) for row in rows}
    own = select(memories.c.id, memories.c.content).where(memories.c.user_id == user, ~_told_by_others(user))
    rows = await connection.execute(own)
    return found | {row.id: {FactWords.of(row.content, teller)} for row in rows}


async def _summaries(connection: AsyncConnection, user: str) -> set[str]:
    """The ids of the summaries of conversations in which the person spoke."""
    talks = select(messages.c.conversation_id).where(messages.c.user_id == user)
    here = active_conversations.c.conversation_id.in_(talks)
    return set(await connection.scalars(select(active_conversations.c.id).where(here)))


async def _told_in(connection: AsyncConnection, user: str, places: Collection[str]) -> _Facts:
    teller = await teller_words(connection, user)
    told: dict[str, set[FactWords]] = defaultdict(set)
    spoke = (messages.c.user_id == user, messages.c.role == "user", messages.c.place.in_(places), has_text())
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


async def _heard(connection: AsyncConnection, user: str, here: ColumnElement[bool]) -> Any:
    """The messages of others there and the replies to them, in order."""
    columns = ("id", "conversation_id", "user_id", "place", "role", "author", "text", "sources")
    query = select(*(messages.c[name] for name in columns)).order_by(messages.c.seq)
    query = query.where(here, has_text(), messages.c.user_id != user)
    for number, row in enumerate((await connection.execute(query)).all()):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        yield row


async def _also_told(
    connection: AsyncConnection, user: str, repeated: Mapping[str, _Repetition]
) -> Mapping[str, set[FactWords]]:
    """By reply: which of its facts somebody else told too where it was given, or around."""
    found: dict[str, set[FactWords]] = defaultdict(set)
    readers: dict[str, list[str]] = defaultdict(list)
    for id, reply in repeated.items():
        for place in Place.of_key(reply.place).containing():
            readers[place.key].append(id)
    here = (memory_owners.c.owner.in_(readers), _told_by_others(user))
    known = select(memory_owners.c.owner, memories.c.content).join(memories).where(*here)
    for row in await connection.execute(known):
        statement = _Statement.of(row.content)
        for id in readers[row.owner]:
            found[id] |= repeated[id].told_in(statement)
    async for row in _heard(connection, user, messages.c.place.in_(readers)):
        if row.role == "user":
            statement = _Statement.of(row.text, f"{row.user_id} {row.author}")
            for id in readers[row.place]:
                found[id] |= repeated[id].told_in(statement)
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
