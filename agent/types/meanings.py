"""Checks across several arguments of the API, and defaults from the person's profile. `agent.types.arguments`
checks single values by type. Raises BadInput."""

import re
from datetime import date, datetime, time, timedelta, tzinfo
from reprlib import repr as shown
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from agent.errors import BadInput
from agent.types.arguments import (
    Content,
    Importance,
    Instant,
    MemoryId,
    Moment,
    Name,
    Subjects,
    Ttl,
    Type,
    User,
    place_of,
)
from agent.types.checks import checks_call
from memory.audience import GLOBAL, PRIVATE, Audience, Place, user_key
from memory.errors import NotFound
from memory.people.due_dates import read_due
from memory.records import DEFAULT_IMPORTANCE, Memory, NewMemory
from memory.sql.memories.store import tellers

if TYPE_CHECKING:
    from memory.people.places import Places
    from memory.people.tasks import Due


class MemoryChanges(TypedDict, total=False):
    """What a correction may change: the arguments of `remember`."""

    subjects: Subjects
    ttl: Ttl
    type: Type
    importance: Importance
    said_at: Instant | None
    everybody: bool
    author: Name | None


HOW_STATED = ("said_at", "everybody", "author")
"""The fields that say how a correction was stated; the others belong to the fact."""


@checks_call
def new_memory_of(
    content: Content,
    subjects: Subjects = (),
    ttl: Ttl = None,
    type: Type = "fact",
    importance: Importance = DEFAULT_IMPORTANCE,
    replaces: MemoryId | None = None,
) -> NewMemory:
    """Return a fact as callers write it."""
    return NewMemory(content, (*subjects,), ttl, type, importance, replaces)


def due_of(text: str | datetime | None, zone: tzinfo | None, now: datetime) -> "Due":
    """Parse a due time in the person's `zone`: None keeps the current due time, "never" removes it."""
    if not isinstance(text, str):
        return text
    try:
        return read_due(text, zone, now) if text.strip() else None
    except ValueError as error:
        raise BadInput(f'due: {error}; "never" for none') from None


def bound_of(value: Moment, zone: tzinfo, *, end: bool = False) -> datetime | None:
    """Return a time unchanged; for a date, the beginning of that day in the person's zone, or its `end`."""
    if isinstance(value, str):
        return datetime.combine(date.fromisoformat(value), time(), zone) + timedelta(days=end)
    return value


def audience_of(user: str, place: Place | str | None) -> Audience:
    return Audience.of(user, place_of(place))


def owner_of_documents(user: str | None, place: Place | str | None) -> str:
    """Return the owner key: the user's, the place's, or everybody's if neither is named."""
    where = place_of(place)
    if user is not None and where.private:
        return user_key(user)
    if user is not None:
        raise BadInput("documents are a user's or a place's; name one of the two")
    if place is not None and where.private:
        raise BadInput(
            "what is for one person alone needs their name: give a user instead of a private place"
        )
    return GLOBAL if where.private else where.key


async def require_consent(places: "Places", user: str, place: Place) -> None:
    """Raise BadInput if the person wants nothing stored in the place."""
    if not await places.keeps(user, place):
        raise BadInput(f"{user} wants nothing kept of what they say here, and has to take that back first")


def position_of(cursor: str | None) -> int:
    """Return the number of hits on previous pages, from a cursor. Raises BadInput."""
    if cursor is not None and not re.fullmatch(r"\d{1,5}", cursor, re.ASCII):
        raise BadInput(f"cursor: {shown(cursor)} is no `next` of a page")
    return int(cursor or 0)


def place_of_correction(memory: Memory, user: User, asked_in: Place) -> Place:
    """Return the place where a correction of the memory is stated: the place of the memory, if it is still
    known and only the user stated it; otherwise private. In a place, raises NotFound if the correction does
    not apply there."""
    alone = tellers(memory.owners, memory.user_id) == {user_key(user)}
    where = [Place.parse(memory.place)] if asked_in.private else asked_in.containing()
    found = next((place for place in where if alone and place.key in memory.owners), PRIVATE)
    if found.private and not asked_in.private:
        raise NotFound(f"cannot change memory {memory.id!r} here: somebody else stated it")
    return found
