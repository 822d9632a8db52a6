"""What the arguments of the API mean together, or with what is known of the person. What each may be is in
`agent.types.arguments`, by its type. Raises BadInput."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from agent.errors import BadInput
from agent.types.arguments import Content, Importance, MemoryId, Moment, Subjects, Ttl, Type, place_of
from agent.types.checks import read_fields
from memory.audience import GLOBAL, Audience, Place, user_key
from memory.people.due_dates import read_due
from memory.records import Draft

if TYPE_CHECKING:
    from memory.people.places import Places
    from memory.people.tasks import Due


class NewFact(TypedDict, total=False):
    """A fact as callers write it."""

    content: Content
    subjects: Subjects
    ttl: Ttl
    type: Type
    importance: Importance
    replaces: MemoryId | None


def draft_of(given: Mapping[str, Any]) -> Draft:
    if "content" not in given:
        raise BadInput("content: it is missing; write the fact as a sentence")
    return Draft(**read_fields(NewFact, given))


def due_of(text: str | datetime | None, zone: tzinfo | None, now: datetime) -> "Due":
    """Parse a due time in the person's `zone`: None keeps the current one, "never" removes it."""
    if not isinstance(text, str):
        return text
    try:
        return read_due(text, zone, now) if text.strip() else None
    except ValueError as error:
        raise BadInput(f'due: {error}; "never" for none') from None


def bound_of(value: Moment, zone: tzinfo, *, end: bool = False) -> datetime | None:
    """Return the moment; of a date alone the beginning of that day in the person's zone, or its `end`."""
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


async def require_kept(places: "Places", user: str, place: Place) -> None:
    """Raises BadInput if the person wants nothing of theirs kept there."""
    if not await places.keeps(user, place):
        raise BadInput(f"{user} wants nothing kept of what they say here, and has to take that back first")
