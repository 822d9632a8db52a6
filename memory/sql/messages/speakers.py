"""Display names of people. If two people use the same name in a place, the second is shown with their id."""

from collections.abc import Collection
from functools import partial

from sqlalchemy import ColumnElement, or_, select

from memory.audience import PRIVATE, Audience, Place, user_key
from memory.sql.engine import Database
from memory.sql.messages.message_rows import name_in
from memory.sql.readable import people_and_places
from memory.sql.tables import messages, speakers, users
from memory.text.names import spelled

HACHI = "hachi"
"""The author of replies."""
MOST_CACHED = 1_000
"""Entries per cache. A full cache is emptied."""


class Speakers:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._authors: dict[frozenset[str], frozenset[str]] = {}
        self._bearers: dict[tuple[str, str], str] = {}
        """The id of the first person who used a name, by outermost place and normalized name."""

    def new_author(self) -> None:
        """Empty the cache of authors, because somebody has written under a new name."""
        self._authors = {}  # not the one that a read in progress will write to

    def clear(self) -> None:
        """Empty the caches, after an erasure."""
        self.new_author()
        self._bearers.clear()

    async def authors(self, audience: Audience) -> frozenset[str]:
        """Return the names of all authors of messages that this audience may read. The result is cached,
        so a new name from another process may be missing."""
        authors = (cache := self._authors).get(audience.keys)
        if authors is None:
            query = select(speakers.c.author).where(speakers.c.owner.in_(audience.keys))
            authors = frozenset(row.author for row in await self._database.rows(query))
            if len(cache) >= MOST_CACHED:
                cache.clear()
            cache[audience.keys] = authors
        return authors

    async def label(self, name: str, user: str | None, place: Place) -> str:
        """Return a person's display name in and around the place: with their id if somebody else used the
        name there first."""
        if place.private:
            return name
        me, outermost = user or "anonymous", place.containing()[-1]
        known = (outermost.key, spelled(name))
        bearer = self._bearers.get(known) or await self._bearer(name, outermost)
        if bearer is None:
            return name
        if len(self._bearers) >= MOST_CACHED:
            self._bearers.clear()
        self._bearers[known] = bearer
        return _told_apart(name, me, bearer)

    async def _bearer(self, name: str, outermost: Place) -> str | None:
        """Return the id of the first person who used this name there. Hachi's name is reserved."""
        if spelled(name) == HACHI:
            return HACHI
        there = partial(_inside, outermost.key)
        async with self._database.read() as connection:
            used = await connection.scalars(select(speakers.c.author).where(there(speakers.c.owner)))
            forms = {author for author in used if spelled(author) == spelled(name)}
            first = select(messages.c.user_id).where(messages.c.role == "user", there(messages.c.place))
            bears = or_(messages.c.author.in_(forms), messages.c.user_id == name)
            return await connection.scalar(first.where(bears).order_by(messages.c.seq).limit(1))

    async def names(self, people: Collection[str], audience: Audience | None = None) -> dict[str, str]:
        """Return the display names of these people for the audience: the name on their newest message
        there, else the name noted there, else their id. Without an audience, return the name on their
        newest message anywhere, for an operator; people without a message are left out."""
        if not people:
            return {}
        if audience is None:
            return await self._names_anywhere(people)
        places = people_and_places(audience)[1]
        around = Place.of_key(min(places, key=len)) if places else PRIVATE
        async with self._database.read() as connection:
            last = select(users.c.id, name_in(users.c.id, places)).where(users.c.id.in_(people))
            signed = {id: name for id, name in await connection.execute(last) if name}
            keys = {user_key(id): id for id in people if id not in signed}
            here = select(speakers.c.author).where(speakers.c.owner.in_(places))
            own = select(speakers).where(speakers.c.owner.in_(keys), speakers.c.author.in_(here))
            own = own.order_by(speakers.c.author.desc())
            noted = await connection.execute(own) if keys else ()
            signed |= {keys[row.owner]: row.author for row in noted}
        return {id: await self.label(signed.get(id, id), id, around) for id in people}

    async def _names_anywhere(self, people: Collection[str]) -> dict[str, str]:
        last = select(users.c.id, name_in(users.c.id)).where(users.c.id.in_(people))
        borne = select(speakers.c.author, users.c.id).join(users, speakers.c.owner == "user:" + users.c.id)
        first: dict[str, str] = {}
        for name, id in await self._database.rows(borne.order_by(users.c.created_at, users.c.id)):
            first.setdefault(spelled(name), id)
        signed = [(id, name) for id, name in await self._database.rows(last) if name]
        return {id: _told_apart(name, id, first.get(spelled(name), id)) for id, name in signed}


def _told_apart(name: str, user: str, bearer: str) -> str:
    """Add a person's id to their name unless they are its first `bearer`. Names differ by letters and
    digits alone."""
    return name if user == bearer else f"{name} ({' '.join(user.split(':'))})"


def _inside(outermost: str, column: ColumnElement[str]) -> ColumnElement[bool]:
    return or_(column == outermost, column.startswith(f"{outermost}/", autoescape=True))
