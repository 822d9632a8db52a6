"""What goes with a fact or a message that a person has forgotten. Nothing is changed here.

*A fact*: what it replaced, the person's own messages that state it, and Hachi's replies that answered those
or contain it. A reply that only was shown it goes if nothing else was shown; it is named otherwise. Other
facts, entries and tasks of the same messages stay.

*A message*: the facts, entries and tasks that no other message of the person states, and the replies to it.
What these facts had replaced holds again.

What others stated stays, in either case. What is hidden already goes too: another forgetting hides it, and
may be undone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Place, owners_of, user_key
from memory.forgetting.repeats import has_words_of, repeats, words
from memory.records import ForgetCandidate, Memory
from memory.sql.hidden import parts
from memory.sql.memories.memory_rows import fetch
from memory.sql.memories.owner_links import with_replaced
from memory.sql.memories.store import tellers
from memory.sql.messages.message_rows import kept
from memory.sql.rests_on import statements_of
from memory.sql.tables import (
    context_entries,
    memories,
    memory_owners,
    messages,
    rests_on,
    tasks,
)

TELLING = 3
"""A message of so many words is recognised in a reply that contains them all."""

Link = tuple[str, str]
"""A memory and an owner."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """The replies that were compared before the transaction, and which of them contain the fact."""

    upto: int = 0
    """`messages.seq`."""
    found: frozenset[str] = frozenset()


NOT_SCANNED = Scanned()


@dataclass(frozen=True, slots=True)
class Reach:
    person: str
    links: frozenset[Link] = frozenset()
    facts: tuple[Memory, ...] = ()
    """The memories that lose a link, as they are."""
    messages: frozenset[str] = frozenset()
    """The person's own."""
    replies: frozenset[str] = frozenset()
    shown: tuple[str, ...] = ()
    """The ids of the replies that stay although they were written with it in view."""
    tasks: frozenset[str] = frozenset()
    entries: frozenset[str] = frozenset()
    revives: bool = False
    """Whether what the facts had replaced holds again."""
    scanned: Scanned = NOT_SCANNED

    @property
    def ids(self) -> frozenset[str]:
        """Of everything that goes."""
        facts = {fact.id for fact in self.facts}
        return frozenset(facts | self.messages | self.replies | self.tasks | self.entries)

    @property
    def owners(self) -> frozenset[str]:
        """Who loses something of it: the locks of the transaction that hides it."""
        return frozenset({owner for _, owner in self.links} | {user_key(self.person)})


async def reach_of(
    connection: AsyncConnection, named: ForgetCandidate, user: str, scanned: Scanned = NOT_SCANNED
) -> Reach:
    """What goes with what the person names. Their message that asks for it goes too, but not what else it
    tells."""
    match named.kind:
        case "memory":
            return await of_fact(connection, named.id, user, named.asked_in, scanned)
        case "message":
            return await of_messages(connection, [named.id], user, named.asked_in, scanned)
        case _:
            asked = frozenset(await _own(connection, [named.asked_in], user))
            items = {kind: frozenset([named.id] if named.kind == kind else []) for kind in ("task", "entry")}
            return Reach(user, messages=asked, tasks=items["task"], entries=items["entry"])


async def of_fact(
    connection: AsyncConnection, id: str, user: str, asked_in: str = "", scanned: Scanned = NOT_SCANNED
) -> Reach:
    """What goes with a memory that the person stated. There is nothing to hide in `links` if they did not."""
    chain = await with_replaced(connection, [id])
    links, shared = await lost_links(connection, chain, user)
    facts = await facts_of(connection, links)
    own = await _own(connection, statements_of([fact.id for fact in facts]), user)
    own |= await _own(connection, [asked_in], user)
    lost = _Lost(user, frozenset(owner for _, owner in links), shared)
    return await _with_replies(connection, lost, links, facts, own, scanned, asked_in=asked_in)


async def of_messages(
    connection: AsyncConnection,
    ids: Collection[str],
    user: str,
    asked_in: str = "",
    scanned: Scanned = NOT_SCANNED,
) -> Reach:
    """What goes with these messages of the person, and replies to them."""
    own = await _own(connection, ids, user)
    answers = (messages.c.user_id == user, messages.c.role == "assistant")
    replies = set(await connection.scalars(select(messages.c.id).where(messages.c.id.in_(ids), *answers)))
    asked = await _own(connection, [asked_in], user)
    links, shared = await lost_links(connection, await _alone(connection, own, user, _FACTS), user)
    facts = await facts_of(connection, links)
    told = (await connection.execute(select(messages).where(messages.c.id.in_(own)))).all()
    places = {owner for row in told for owner in owners_of(user, Place.of_key(row.place))}
    lost = _Lost(user, frozenset({owner for _, owner in links} | places), shared)
    return await _with_replies(
        connection, lost, links, facts, own | asked, scanned, own, replies, asked_in=asked_in
    )


async def of_edit(connection: AsyncConnection, ids: Collection[str], user: str) -> Reach:
    """What goes with messages and replies that a client has replaced in its history, or a person has edited
    on a platform."""
    links, _ = await lost_links(connection, await _alone(connection, ids, user, _FACTS), user)
    here = await connection.scalars(select(messages.c.place).where(messages.c.id.in_(ids)).distinct())
    owners = {owner for place in here for owner in owners_of(user, Place.of_key(place))}
    links = frozenset(link for link in links if link[1] in owners)
    own = await _own(connection, ids, user)
    return Reach(
        user,
        links,
        tuple(await facts_of(connection, links)),
        frozenset(own),
        frozenset(ids) - own,
        tasks=frozenset(await _alone(connection, ids, user, _TASKS)),
        entries=frozenset(await _alone(connection, ids, user, _ENTRIES)),
        revives=True,
    )


@dataclass(frozen=True, slots=True)
class _Lost:
    """Who can no longer read what goes."""

    user: str
    owners: frozenset[str]
    shared: bool
    """Whether somebody else stated the same."""

    @property
    def replies(self) -> ColumnElement[bool]:
        """True for the replies that may tell it to somebody who has lost it."""
        places = [owner for owner in self.owners if owner.startswith("place:")]
        inside = [messages.c.place.startswith(f"{place}/", autoescape=True) for place in places]
        own = messages.c.user_id == self.user
        own = and_(own, messages.c.place == "") if self.shared else own
        everywhere = [true()] if GLOBAL in self.owners else []
        readers = or_(own, messages.c.place.in_(places), *inside, *everywhere)
        return and_(messages.c.role == "assistant", readers)


async def _with_replies(
    connection: AsyncConnection,
    lost: _Lost,
    links: frozenset[Link],
    facts: Iterable[Memory],
    own: set[str],
    scanned: Scanned,
    told: Collection[str] = (),
    named: Collection[str] = (),
    *,
    asked_in: str,
) -> Reach:
    """`told` are the messages of which the items go too, `named` replies that go in any case."""
    facts = tuple(facts)
    said = select(messages.c.text).where(messages.c.id.in_(own - {asked_in}))
    whole = [text for text in await connection.scalars(said) if len(words(text)) >= TELLING]
    found, upto = await _containing(connection, lost, [fact.content for fact in facts], whole, scanned)
    gone = {fact.id for fact in facts} | own
    replies = found.union(named, await _answers(connection, own))
    alone, shown = await _shown(connection, lost, gone, replies)
    return Reach(
        lost.user,
        links,
        facts,
        frozenset(own),
        frozenset(replies | alone),
        tuple(sorted(shown)),
        frozenset(await _alone(connection, told, lost.user, _TASKS)),
        frozenset(await _alone(connection, told, lost.user, _ENTRIES)),
        bool(told),
        Scanned(upto, frozenset(found)),
    )


async def _own(connection: AsyncConnection, ids: Collection[str] | Select[str], user: str) -> set[str]:
    """Those of these messages that the person wrote."""
    mine = (messages.c.user_id == user, messages.c.role == "user")
    return set(await connection.scalars(select(messages.c.id).where(messages.c.id.in_(ids), *mine)))


_FACTS = select(memories.c.id).where(memories.c.message_id.is_not(None))
"""A fact that was noted rests on more than its messages."""
_TASKS = select(tasks.c.id)
_ENTRIES = select(context_entries.c.id)


def stated_alone(ids: Collection[str], user: str, items: Select[Any]) -> Select[Any]:
    """Those of the `items`, whose first column is their id, that these messages state, and no other one of
    the person that is left."""
    source = rests_on.c
    left = select(messages.c.id).where(messages.c.id.not_in(ids), messages.c.user_id == user, kept())
    stated = select(source.derived_id).where(source.source_id.in_(ids), source.how == "stated")
    also = select(source.derived_id).where(source.source_id.in_(left), source.how == "stated")
    id = items.selected_columns[0]
    return items.where(id.in_(stated), id.not_in(also))


async def _alone(
    connection: AsyncConnection, ids: Collection[str], user: str, items: Select[str]
) -> set[str]:
    return set(await connection.scalars(stated_alone(ids, user, items))) if ids else set()


async def lost_links(
    connection: AsyncConnection, ids: Collection[str], user: str
) -> tuple[frozenset[Link], bool]:
    """The links that go with those of these memories that the person stated: all of them, or, where somebody
    else stated the memory too, the person's own and those of places where nobody else still says so. And
    whether somebody else stated one of them."""
    own, found, shared = user_key(user), set[Link](), False
    first = select(memories.c.id, memories.c.user_id).where(memories.c.id.in_(ids))
    teller = {row.id: row.user_id for row in await connection.execute(first)}
    query = select(memory_owners).where(memory_owners.c.memory_id.in_(ids))
    links: dict[str, list[Any]] = {}
    for row in await connection.execute(query):
        links.setdefault(row.memory_id, []).append(row)
    for id, rows in links.items():
        told = tellers({row.owner for row in rows}, teller[id])
        others = told - {own}
        if own not in told:
            continue
        gone = {row.owner for row in rows}
        if others:
            shared = True
            active = {row.owner for row in rows if row.superseded_by is None}
            still = others - await _gave_up(connection, id, active)
            places = {owner for owner in gone if owner.startswith("place:")}
            gone = {own} | places - (await _told_there(connection, still, places) if still else set())
        found |= {(id, row.owner) for row in rows if row.owner in gone}
    return frozenset(found), shared


async def _gave_up(connection: AsyncConnection, id: str, active: Collection[str]) -> set[str]:
    """Those for whom the memory gave way to what holds in one of the places where it is still known."""
    newer = memory_owners.alias("newer")
    places = [owner for owner in active if owner.startswith("place:")]
    query = select(memory_owners.c.owner).join(newer, newer.c.memory_id == memory_owners.c.superseded_by)
    return set(
        await connection.scalars(query.where(memory_owners.c.memory_id == id, newer.c.owner.in_(places)))
    )


async def _told_there(connection: AsyncConnection, tellers: Collection[str], places: set[str]) -> set[str]:
    """The places where one of these tellers can have stated a memory. A single place is certain, because they
    have it through that one; of several, those where they have spoken."""
    if len(places) < 2:
        return places
    people = [teller.removeprefix("user:") for teller in tellers]
    spoke = select(messages.c.place).where(messages.c.user_id.in_(people), messages.c.place.in_(places))
    return set(await connection.scalars(spoke.distinct())) or places


async def facts_of(connection: AsyncConnection, links: Iterable[Link]) -> list[Memory]:
    ids = {id for id, _ in links}
    return await fetch(connection, memories.c.id.in_(ids)) if ids else []


async def _answers(connection: AsyncConnection, own: Collection[str]) -> set[str]:
    answered = select(rests_on.c.derived_id).where(
        rests_on.c.source_id.in_(own), rests_on.c.how == "answered"
    )
    replies = select(messages.c.id).where(messages.c.id.in_(answered), messages.c.role == "assistant")
    return set(await connection.scalars(replies))


async def _containing(
    connection: AsyncConnection,
    lost: _Lost,
    facts: Collection[str],
    whole: Collection[str],
    scanned: Scanned,
) -> tuple[set[str], int]:
    """The replies that contain one of the facts or all words of one of the `whole` messages, besides those
    that were `scanned` already."""
    names = await names_of(connection, lost.user)
    query = select(messages.c.seq, messages.c.id, messages.c.text).where(lost.replies)
    found, upto = set(scanned.found), scanned.upto
    for row in await connection.execute(query.where(messages.c.seq > upto).order_by(messages.c.seq)):
        upto = row.seq
        if any(repeats(row.text, fact, names) for fact in facts) or any(
            has_words_of(row.text, text, names) for text in whole
        ):
            found.add(row.id)
    still = await connection.scalars(select(messages.c.id).where(messages.c.id.in_(found)))
    return set(still), upto


async def names_of(connection: AsyncConnection, user: str) -> str:
    """The person's id and the names under which they spoke."""
    spoke = (messages.c.user_id == user, messages.c.role == "user")
    names = await connection.scalars(select(messages.c.author).where(*spoke).distinct())
    return " ".join([user, *names])


async def _shown(
    connection: AsyncConnection, lost: _Lost, gone: Collection[str], replies: Collection[str]
) -> tuple[set[str], set[str]]:
    """Of the replies that were shown something of what goes: those that were shown nothing else, and the
    others."""
    given: dict[str, set[str]] = {}
    found = rests_on.alias("found")
    for part in parts({*gone, *replies}):
        shown = select(found.c.derived_id).where(found.c.source_id.in_(part), found.c.how == "found")
        theirs = select(messages.c.id).where(messages.c.id.in_(shown), lost.replies, kept())
        rests = select(rests_on).where(rests_on.c.derived_id.in_(theirs), rests_on.c.how == "found")
        for row in await connection.execute(rests):
            given.setdefault(row.derived_id, set()).add(row.source_id)
    left = {id: sources.difference(gone, replies) for id, sources in given.items() if id not in replies}
    return {id for id, other in left.items() if not other}, {id for id, other in left.items() if other}
