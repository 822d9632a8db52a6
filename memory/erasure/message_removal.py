"""Forgets messages: finds the messages and replies that show what is forgotten, and empties their texts.

A forgotten message keeps its row, so that the transcript shows where it was. Each function runs in the
caller's transaction.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Place
from memory.erasure.repeats import repeats
from memory.erasure.repetition import FactWords, Words, words
from memory.index.schema import slices
from memory.sql.changes import changed
from memory.sql.message_rows import has_text, index_neighbours_again, talk_of
from memory.sql.rests_on import resting_on, statements_of
from memory.sql.tables import active_conversations, messages, rests_on

IDS_AT_ONCE = 500
"""Ids in one statement."""


@dataclass(frozen=True, slots=True)
class ForgottenTexts:
    """The texts of the messages that were forgotten, by id."""

    messages: dict[str, str]
    """The person's own."""
    replies: dict[str, str]
    """Hachi's."""
    kept: tuple[str, ...] = ()
    """The ids of the replies that stay although they were written with it in view."""

    @property
    def all(self) -> dict[str, str]:
        return self.messages | self.replies


@dataclass(frozen=True, slots=True)
class Readers:
    """Who can no longer read a forgotten fact."""

    user: str
    owners: frozenset[str]
    """The owner keys that lost it."""

    @property
    def rows(self) -> Any:
        """Selects the person's messages and the replies to them, and those of places that lost the fact."""
        if GLOBAL in self.owners:
            return true()
        places = [owner for owner in self.owners if owner.startswith("place:")]
        inside = (messages.c.place.startswith(f"{place}/", autoescape=True) for place in places)
        return or_(messages.c.user_id == self.user, messages.c.place.in_(places), *inside)

    def lost(self, row: Any, shared: bool) -> bool:
        """Whether nobody who reads this message knows the fact any more. If it is `shared`, somebody else
        told it too."""
        above = {place.key for place in Place.of_key(row.place).containing()} if row.place else set()
        if self.owners & (above | {GLOBAL}):
            return True
        return row.user_id == self.user and (row.place == "" or not shared)


async def teller_words(connection: AsyncConnection, user: str) -> Words:
    """The words of the person's id and of the names under which they spoke."""
    spoke = (messages.c.user_id == user, messages.c.role == "user")
    names = (await connection.execute(select(messages.c.author).where(*spoke).distinct())).scalars()
    return words(" ".join([user, *names]))


async def sources_of(connection: AsyncConnection, ids: Collection[str], user: str) -> set[str]:
    """The person's messages that stated these memories."""
    own = select(messages.c.id).where(messages.c.id.in_(statements_of(ids)), messages.c.user_id == user)
    return set((await connection.execute(own.where(messages.c.role == "user"))).scalars())


async def heard_by(connection: AsyncConnection, readers: Readers) -> list[Any]:
    """The messages that may show what these readers lose, in order."""
    columns = ("seq", "id", "conversation_id", "user_id", "place", "role", "author", "text")
    query = select(*(messages.c[name] for name in columns)).where(readers.rows, has_text())
    return list(await connection.execute(query.order_by(messages.c.seq)))


def own(
    heard: Iterable[Any], user: str, named: Collection[str], stated: Sequence[FactWords]
) -> dict[str, str]:
    """The person's messages to forget: those `named`, and those that show one of the facts `stated`."""
    return {
        row.id: row.text
        for row in heard
        if row.role == "user" and row.user_id == user
        if row.id in named or any(fact.shown_by_own(row.text) for fact in stated)
    }


async def replies(
    connection: AsyncConnection,
    heard: Iterable[Any],
    readers: Readers,
    lost: Collection[str],
    facts: Collection[str],
    teller: Words,
    *,
    shared: bool,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The replies to forget: those that answered one of the messages that are `lost`, and others that contain
    one of the `facts`. And the ids of those that stay although they were written from what is lost, from such
    a reply, or from a summary of it."""
    found: dict[str, str] = {}
    others: set[str] = set()
    answering = set(await connection.scalars(resting_on(lost, "answered")))
    for row in heard:
        if row.role == "user":
            continue
        gone = readers.lost(row, shared)
        if row.id in answering or (gone and any(repeats(row.text, fact, teller) for fact in facts)):
            found[row.id] = row.text
        elif gone:
            others.add(row.id)
    told_in = select(messages.c.conversation_id).where(messages.c.id.in_(lost))
    summaries = select(active_conversations.c.id).where(active_conversations.c.conversation_id.in_(told_in))
    shown = {*lost, *found, *await connection.scalars(summaries)}
    written = select(rests_on.c.derived_id).where(rests_on.c.source_id.in_(shown), rests_on.c.how == "found")
    return found, tuple(sorted(others.intersection(await connection.scalars(written))))


async def empty(connection: AsyncConnection, ids: Iterable[str], now: datetime) -> None:
    """Empty the texts of these messages, and tell every index."""
    for part in slices(sorted(ids), IDS_AT_ONCE):
        these = messages.c.id.in_(part)
        await connection.execute(select(messages.c.id).where(these).with_for_update())
        gone = update(messages).where(these).values(text="", client_items=None, forgotten_at=now)
        await connection.execute(gone)
        await changed(connection, "message", part, gone=True)


async def leave_places(
    connection: AsyncConnection, ids: Collection[str], replies: Collection[str], now: datetime
) -> None:
    """Take these messages of a person out of the places where they were said, and the `replies` to them: the
    person alone has them then. The replies, which may repeat others, are in no search and no prompt of theirs
    either, as if they had been replaced. The neighbours that they had are indexed again."""
    told, answers = messages.c.id.in_(ids), messages.c.id.in_(replies)
    rows = (await connection.execute(select(messages).where(or_(told, answers)).with_for_update())).all()
    for (conversation, place), lines in groupby(sorted(rows, key=talk_of), key=talk_of):
        await index_neighbours_again(connection, conversation, place, [line.seq for line in lines])
    await connection.execute(update(messages).where(told).values(place=""))
    await connection.execute(update(messages).where(answers).values(place="", replaced_at=now))
    await changed(connection, "message", {*ids, *replies})


async def drop_client_items(connection: AsyncConnection, where: ColumnElement[bool]) -> None:
    """Remove the calls of clients' tools, which may repeat any fact, from messages that wait for their
    results."""
    waiting = update(messages).where(messages.c.client_items.is_not(None), where)
    await connection.execute(waiting.values(client_items=None))


async def restore(connection: AsyncConnection, texts: dict[str, str]) -> None:
    """Give forgotten messages their texts back. Skips those that an erasure has deleted since."""
    for id, text in sorted(texts.items()):
        here = and_(messages.c.id == id, messages.c.forgotten_at.is_not(None))
        back = update(messages).where(here).values(text=text, forgotten_at=None)
        await connection.execute(back)
    await changed(connection, "message", texts)
