"""Compute the cascade of a forgetting: the rows that go with a memory or a message. Changes nothing.

*A memory*: the memories that it superseded for the same owners, the person's messages that state it, and the
replies to those. Of later replies to the person, or written from it, those that contain it or have no other
source.

*A message*: the facts, entries and tasks that no other message of the person states, and the replies to it.
*A conversation*: all messages of the person in it, including those that a client has replaced.

*A person*: all their rows, and the replies to others that were written from one of these rows and contain it.

Statements of other people stay. Rows that are already hidden belong to the cascade too, because the other
forgetting may be undone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Place, owners_of, user_key
from memory.forgetting.repetition import TELLING, ForgottenTexts
from memory.forgetting.replies import (
    NONE_COMPARED,
    ComparedReplies,
    answers_to,
    compare,
    find_repeating,
    private_to_others,
    read_by,
    replies_shown,
    shown_to_others,
)
from memory.index.bm25 import stems
from memory.process.pace import unhurried
from memory.records import ForgetCandidate, Memory
from memory.sql import tables as t
from memory.sql.hidden import parts
from memory.sql.memories.memory_rows import fetch
from memory.sql.memories.replacements import Link, replaced_by, still_replaces
from memory.sql.memories.store import tellers
from memory.sql.messages.message_rows import is_visible
from memory.sql.rests_on import statements_of


@dataclass(frozen=True, slots=True)
class Cascade:
    person: str
    links: frozenset[Link] = frozenset()
    facts: tuple[Memory, ...] = ()
    """The memories of the links, as they are now."""
    messages: frozenset[str] = frozenset()
    """The person's own messages."""
    replies: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    """Those of the `replies` that went to others in private. Receipts do not mention them."""
    shown: tuple[str, ...] = ()
    """The ids of replies that stay although they were written from one of the rows."""
    tasks: frozenset[str] = frozenset()
    entries: frozenset[str] = frozenset()
    scanned: ComparedReplies = NONE_COMPARED

    @property
    def ids(self) -> frozenset[str]:
        """Return the ids of all rows."""
        facts = {fact.id for fact in self.facts}
        return frozenset(facts | self.messages | self.replies | self.tasks | self.entries)

    @property
    def owners(self) -> frozenset[str]:
        """Return the owners of the links and the person, to be locked while the cascade is hidden."""
        return frozenset({owner for _, owner in self.links} | {user_key(self.person)})


async def cascade_of(
    connection: AsyncConnection,
    named: ForgetCandidate,
    user: str,
    now: datetime,
    scanned: ComparedReplies = NONE_COMPARED,
) -> Cascade:
    """Return the cascade of the row that the person names, including their message that asks for it."""
    match named.kind:
        case "memory":
            return await of_fact(connection, named.id, user, now, named.asked_in, scanned)
        case "message":
            return await of_messages(connection, [named.id], user, now, named.asked_in, scanned)
        case "conversation":
            here = (t.messages.c.conversation_id == named.id, t.messages.c.user_id == user)
            ids = list(await connection.scalars(select(t.messages.c.id).where(*here)))
            return await of_messages(connection, ids, user, now, named.asked_in, scanned)
        case _:
            asked = frozenset(await _own(connection, [named.asked_in], user))
            items = {kind: frozenset([named.id] if named.kind == kind else []) for kind in ("task", "entry")}
            return Cascade(user, messages=asked, tasks=items["task"], entries=items["entry"])


async def of_fact(
    connection: AsyncConnection,
    id: str,
    user: str,
    now: datetime,
    asked_in: str = "",
    scanned: ComparedReplies = NONE_COMPARED,
) -> Cascade:
    """Return the cascade of a memory. Its `links` are empty if the person did not state the memory."""
    links, shared = await with_replaced(connection, [id], user, now)
    facts = await facts_of(connection, links, now)
    stay = await still_linked(connection, links) - {id}
    own = await _own(connection, statements_of([fact.id for fact in facts if fact.id not in stay]), user)
    own |= await _own(connection, [asked_in], user)
    cascade = Cascade(user, links, facts, frozenset(own), scanned=scanned)
    readers = read_by({owner for _, owner in links}, user, shared=shared)
    return await _with_replies(connection, cascade, readers, asked_in)


async def of_messages(
    connection: AsyncConnection,
    ids: Collection[str],
    user: str,
    now: datetime,
    asked_in: str = "",
    scanned: ComparedReplies = NONE_COMPARED,
) -> Cascade:
    """Return the cascade of these messages of the person, and of replies to them."""
    cascade, shared = await _of_said(connection, ids, user, now)
    own = cascade.messages
    asked = await _own(connection, [asked_in], user)
    cascade = replace(cascade, messages=own | asked, scanned=scanned)
    losing = {owner for _, owner in cascade.links} | await _owners_of(connection, own, user)
    return await _with_replies(connection, cascade, read_by(losing, user, shared=shared), asked_in)


async def of_edit(connection: AsyncConnection, ids: Collection[str], user: str, now: datetime) -> Cascade:
    """Return the cascade of messages and replies that a client or the person has edited."""
    cascade, _ = await _of_said(connection, ids, user, now)
    owners = await _owners_of(connection, ids, user)
    links = frozenset(link for link in cascade.links if link[1] in owners)
    return replace(cascade, links=links, facts=await facts_of(connection, links, now))


async def _of_said(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> tuple[Cascade, bool]:
    """Return the cascade of messages or replies, without the replies that contain them, and whether other
    people stated one of the facts too."""
    own = await _own(connection, ids, user)
    answers = (t.messages.c.user_id == user, t.messages.c.role == "assistant")
    replies = await connection.scalars(select(t.messages.c.id).where(t.messages.c.id.in_(ids), *answers))
    links, shared = await links_to_hide(connection, await _alone(connection, own, user, _FACTS), user, now)
    cascade = Cascade(
        user,
        links,
        await facts_of(connection, links, now),
        frozenset(own),
        frozenset(replies),
        tasks=frozenset(await _alone(connection, own, user, _TASKS)),
        entries=frozenset(await _alone(connection, own, user, _ENTRIES)),
    )
    return cascade, shared


async def of_person(
    connection: AsyncConnection,
    user: str,
    places: Collection[str],
    now: datetime,
    scanned: ComparedReplies = NONE_COMPARED,
) -> Cascade:
    """Return all rows of a person, and the replies to others in these places that were written from one of
    them and contain it."""
    own = user_key(user)
    linked = select(t.memory_owners.c.memory_id).where(t.memory_owners.c.owner == own)
    stated = select(t.memories.c.id).where(or_(t.memories.c.user_id == user, t.memories.c.id.in_(linked)))
    links, _ = await links_to_hide(connection, list(await connection.scalars(stated)), user, now)
    facts = await facts_of(connection, links, now)
    shared = await still_linked(connection, links)
    alone = [fact for fact in facts if fact.id not in shared]
    columns = (t.messages.c[name] for name in ("id", "role", "conversation_id", "text", "sent_at"))
    own_messages = await connection.execute(select(*columns).where(t.messages.c.user_id == user))
    mine = [row async for row in unhurried(own_messages)]
    said = [row for row in mine if row.role == "user"]
    active = t.active_conversations.c
    talks = active.conversation_id.in_({row.conversation_id async for row in unhurried(mine)})
    summaries = await connection.scalars(select(active.id).where(talks))
    theirs = {*(fact.id for fact in alone), *(row.id for row in mine), *summaries}
    others = await shown_to_others(connection, user, theirs, places)
    whole = [row.text async for row in unhurried(said) if len(stems(row.text)) >= TELLING]
    told = ForgottenTexts(
        user, [*(fact.content for fact in alone), *whole], at=await _first_stated(alone, said)
    )
    scanned = await compare(connection, told, others.values(), scanned)
    told_in = frozenset(row.id for row in said)
    elsewhere = await private_to_others(connection, others, user)
    everybodys = {id for id, owner in links if owner == GLOBAL}
    return Cascade(
        user,
        frozenset(link for link in links if link[0] not in everybodys or link[1] == own),
        facts,
        told_in,
        (frozenset(row.id for row in mine) - told_in) | scanned.repeating,
        elsewhere & scanned.repeating,
        tuple(sorted(others.keys() - scanned.repeating - elsewhere)),
        frozenset(await connection.scalars(_TASKS.where(t.tasks.c.user_id == user))),
        frozenset(await connection.scalars(_ENTRIES.where(t.context_entries.c.user_id == user))),
        scanned=scanned,
    )


async def still_linked(connection: AsyncConnection, links: Collection[Link]) -> set[str]:
    """Return the memories of these links that also have other links."""
    query, found = select(t.memory_owners.c.memory_id, t.memory_owners.c.owner), set[str]()
    for part in parts(id for id, _ in links):
        rows = await connection.execute(query.where(t.memory_owners.c.memory_id.in_(part)))
        found |= {row.memory_id for row in rows if tuple(row) not in links}
    return found


async def _with_replies(
    connection: AsyncConnection, cascade: Cascade, readers: ColumnElement[bool], asked_in: str
) -> Cascade:
    """Add to the cascade the replies that belong to it, out of those that `readers` matches."""
    own = cascade.messages
    text = select(t.messages.c.text, t.messages.c.sent_at).where(t.messages.c.id.in_(own - {asked_in}))
    said = (await connection.execute(text)).all()
    contents = [fact.content for fact in cascade.facts]
    told = ForgottenTexts(
        cascade.person, contents, [row.text for row in said], await _first_stated(cascade.facts, said)
    )
    gone = own.union(fact.id for fact in cascade.facts)
    answers = cascade.replies | await answers_to(connection, own)
    counted = cascade.scanned.most is not None
    given = set() if counted else gone | answers | await _summaries_of(connection, gone)
    scanned = await find_repeating(connection, told, given, readers, cascade.scanned)
    replies, others = answers | scanned.repeating, set[str]()
    if not counted:
        alone, others = await replies_shown(connection, gone, replies, readers)
        replies |= alone
    elsewhere = await private_to_others(connection, {*replies, *others}, cascade.person)
    stay = tuple(sorted(others - elsewhere))
    scanned = cascade.scanned if counted else scanned
    return replace(cascade, replies=replies, elsewhere=elsewhere & replies, shown=stay, scanned=scanned)


async def _first_stated(facts: Iterable[Memory], said: Iterable[Any]) -> dict[str, datetime]:
    """Return when each text of these facts and messages was first stated."""
    first = dict[str, datetime]()
    dated = chain(((f.content, f.created_at) for f in facts), ((row.text, row.sent_at) for row in said))
    async for text, at in unhurried(dated):
        first[text] = min(at, first.get(text, at))
    return first


async def _summaries_of(connection: AsyncConnection, ids: Collection[str]) -> set[str]:
    """Return the summaries of the conversations with these messages, and those that cover these facts."""
    talks = select(t.messages.c.conversation_id).where(t.messages.c.id.in_(ids))
    active = t.active_conversations.c
    here = select(active.id).where(active.conversation_id.in_(talks))
    covering = select(t.rests_on.c.derived_id).where(
        t.rests_on.c.source_id.in_(ids), t.rests_on.c.how == "covered"
    )
    return {*await connection.scalars(here), *await connection.scalars(covering)}


async def _owners_of(connection: AsyncConnection, ids: Collection[str], user: str) -> set[str]:
    """Return the owner keys of facts that the person states in these messages."""
    places = await connection.scalars(select(t.messages.c.place).where(t.messages.c.id.in_(ids)).distinct())
    return {owner for place in places for owner in owners_of(user, Place.of_key(place))}


async def _own(connection: AsyncConnection, ids: Collection[str] | Select[str], user: str) -> set[str]:
    """Return those of these messages that the person wrote."""
    if isinstance(ids, Select):  # as a subquery, SQLite would read all messages of the person
        ids = list(await connection.scalars(ids))
    mine = (t.messages.c.user_id == user, t.messages.c.role == "user")
    return set(await connection.scalars(select(t.messages.c.id).where(t.messages.c.id.in_(ids), *mine)))


_FACTS = select(t.memories.c.id).where(t.memories.c.message_id.is_not(None))
"""Only facts from messages, because a fact that a program added does not depend on its messages alone."""
_TASKS = select(t.tasks.c.id)
_ENTRIES = select(t.context_entries.c.id)


def stated_only_by(ids: Collection[str], user: str, items: Select[Any]) -> Select[Any]:
    """Select the `items` that these messages state and no other visible message of the person states."""
    id, source, other = items.selected_columns[0], t.rests_on.c, t.rests_on.alias("other").c
    stated = select(source.derived_id).where(source.source_id.in_(ids), source.how == "stated")
    by_another = (other.derived_id == id, other.how == "stated", other.source_id.not_in(ids))
    left = (t.messages.c.id == other.source_id, t.messages.c.user_id == user, is_visible())
    return items.where(id.in_(stated), ~exists().where(*by_another, *left))


async def _alone(
    connection: AsyncConnection, ids: Collection[str], user: str, items: Select[str]
) -> set[str]:
    return set(await connection.scalars(stated_only_by(ids, user, items))) if ids else set()


async def with_replaced(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> tuple[frozenset[Link], bool]:
    """Return the `links_to_hide` of these memories and of those that they superseded for the same owners."""
    links, shared = await links_to_hide(connection, ids, user, now)
    olds = await replaced_by(connection, links)
    theirs, also_shared = await links_to_hide(connection, {id for id, _ in olds}, user, now)
    return links | (theirs & olds), shared or also_shared


async def links_to_hide(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> tuple[frozenset[Link], bool]:
    """Return the links to hide, and whether somebody else stated one of these memories. All links are hidden,
    but of a memory that somebody else stated only the person's and those of places where nobody else did."""
    own, found, shared = user_key(user), set[Link](), False
    teller, links = dict[str, str](), dict[str, list[Any]]()
    for part in parts(ids):
        first = select(t.memories.c.id, t.memories.c.user_id).where(t.memories.c.id.in_(part))
        teller |= {row.id: row.user_id for row in await connection.execute(first)}
        for row in await connection.execute(
            select(t.memory_owners).where(t.memory_owners.c.memory_id.in_(part))
        ):
            links.setdefault(row.memory_id, []).append(row)
    async for id, rows in unhurried(links.items()):
        told = tellers({row.owner for row in rows}, teller[id])
        others = told - {own}
        if own not in told:
            continue
        gone = {row.owner for row in rows}
        if others:
            shared = True
            places = {owner for owner in gone if owner.startswith("place:")}
            still = others - await _superseded_for(connection, id, places, now)
            gone = {own} | places - (await _places_of_tellers(connection, still, places) if still else set())
        found |= {(id, row.owner) for row in rows if row.owner in gone}
    return frozenset(found), shared


async def _superseded_for(
    connection: AsyncConnection, id: str, places: Collection[str], now: datetime
) -> set[str]:
    """Return the owners for whom this memory is superseded by a memory of one of these places."""
    newer, pair = t.memory_owners.c, t.replacements.c
    there = exists().where(newer.memory_id == pair.new_id, newer.owner.in_(places))
    query = select(pair.owner).where(pair.old_id == id, there, still_replaces())
    return set(await connection.scalars(query, {"now": now}))


async def _places_of_tellers(
    connection: AsyncConnection, tellers: Collection[str], places: set[str]
) -> set[str]:
    """Return the places where one of these people may have stated a memory: a single place as it is, of
    several places those where one of them wrote messages."""
    if len(places) < 2:
        return places
    people = [teller.removeprefix("user:") for teller in tellers]
    spoke = select(t.messages.c.place).where(t.messages.c.user_id.in_(people), t.messages.c.place.in_(places))
    return set(await connection.scalars(spoke.distinct())) or places


async def facts_of(connection: AsyncConnection, links: Iterable[Link], now: datetime) -> tuple[Memory, ...]:
    found = [await fetch(connection, t.memories.c.id.in_(part), now) for part in parts(id for id, _ in links)]
    return tuple(fact for part in found for fact in part)
