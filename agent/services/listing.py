"""Lists and reads memories from the database, without a search or a model."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from reprlib import repr as shown
from uuid import UUID

from agent.errors import BadInput
from agent.types.arguments import (
    MOST_LISTED,
    Limit,
    MemoryId,
    Moment,
    Page,
    ShortText,
    Subjects,
    User,
    Where,
    moment_of,
    place_of,
)
from agent.types.checks import checks_arguments
from agent.types.meanings import bound_of
from memory.audience import Audience
from memory.people.links import Links
from memory.people.profile_store import ProfileStore
from memory.process.pace import unhurried
from memory.records import Memory, MemoryType
from memory.sql.engine import Database
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.transcript import Transcript
from memory.text.names import fold

READ_AT_ONCE = 500
"""Memories that a list reads in one query."""


class ListParts:
    """The components that listing needs."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database, self.clock = database, clock
        self.store, self.transcript = MemoryStore(database), Transcript(database)
        self.profiles, self.links = ProfileStore(database), Links(database)


@checks_arguments
@dataclass(frozen=True)
class ListService:
    parts: ListParts

    async def _zone(self, user: str, place: Where) -> tzinfo:
        """Return the person's time zone; this machine's if it is unknown."""
        return await self.parts.profiles.zone(user, place_of(place), self.parts.clock())

    async def _audience(self, user: str, place: Where) -> Audience:
        """Return what the person may read in the place; in private this includes their linked accounts."""
        return await self.parts.links.audience(user, place_of(place))

    async def get(self, id: MemoryId, *, user: User, place: Where = None) -> Memory:
        """Return one memory, by its id or the first eight characters of it. Raises NotFound."""
        return await self.parts.store.get(id, await self._audience(user, place), self.parts.clock())

    async def months(self, *, user: User, place: Where = None) -> dict[str, int]:
        """Count the memories stated in each month of the person's calendar, as ``2026-11``, newest month
        first."""
        zone = await self._zone(user, place)
        times = await self.parts.store.times(await self._audience(user, place), self.parts.clock())
        return dict(Counter([f"{time.astimezone(zone):%Y-%m}" async for time in unhurried(times)]))

    async def list(
        self,
        *,
        user: User,
        place: Where = None,
        limit: Limit = MOST_LISTED,
        subjects: Subjects = (),
        since: Moment = None,
        until: Moment = None,
        author: ShortText = "",
        kind: MemoryType | None = None,
        cursor: ShortText | None = None,
    ) -> Page[Memory]:
        """List memories, newest first: all, or only those with one of these `subjects`, from this time,
        stated by this `author` (a name or an id), or of this `kind` (fact, preference, insight). `cursor` is
        the `next` of the previous page; memories added meanwhile do not move it."""
        tags, audience = {*subjects}, await self._audience(user, place)
        zone, after = await self._zone(user, place) if since or until else UTC, _key(cursor)
        times = {"since": bound_of(since, zone), "until": bound_of(until, zone, end=True)}
        found: Page[Memory] = Page()
        while rows := await self.parts.store.newest(
            audience, self.parts.clock(), min(READ_AT_ONCE, limit - len(found) + 1), after=after, **times
        ):
            users = {row.user_id for row in rows} if author else ()
            names = await self.parts.transcript.speakers.names(users, audience)
            for row in rows:
                told = not author or fold(author) in (fold(row.user_id), fold(names.get(row.user_id, "")))
                if told and kind in (None, row.type) and not (tags and tags.isdisjoint(row.subjects)):
                    if len(found) == limit:
                        found.next = f"{found[-1].created_at.isoformat()}~{found[-1].id}"
                        return found
                    found.append(row)
            after = rows[-1].created_at, rows[-1].id
        return found


def _key(cursor: ShortText | None) -> tuple[datetime, str] | None:
    """Return the time and the id of the previous page's last memory. Raises BadInput."""
    if cursor is None:
        return None
    at, _, id = cursor.partition("~")
    try:
        return moment_of(at), str(UUID(id))
    except (BadInput, ValueError):
        raise BadInput(f"cursor: {shown(cursor)} is no `next` of a page") from None
