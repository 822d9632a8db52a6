"""Parses and checks arguments from callers: users, places, memories, times, documents, a whole turn.

A bad value raises BadInput, which says what to pass instead.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from reprlib import repr as shown
from typing import Any, TypeVar, get_args

from agent.errors import BadInput
from agent.types import TurnRequest
from agent.types.client import ClientTurn
from memory.audience import GLOBAL, Audience, Place, user_key
from memory.facts.ttl import read_ttl
from memory.facts.writer import MAX_CONTENT
from memory.people.due_dates import read_due
from memory.people.tasks import Due
from memory.records import Draft, MemoryType, Role
from memory.text import storable

T = TypeVar("T")

FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Of a time. Databases and calendars disagree about what lies outside, and a lifetime may be added to it."""


def place_of(place: Place | str | None) -> Place:
    if not isinstance(place, Place | str | None):
        raise BadInput(f"place: {shown(place)} is no name of a place, such as acme/general")
    found = place if isinstance(place, Place) else Place.parse(place)
    for name in found.path:
        readable_name(name, "place")
    return found


def user_named(user: str) -> str:
    if not isinstance(user, str):
        raise BadInput("say who the user is: a name, as text; what is somebody's alone is nobody else's")
    return readable_name(user, "user")


def readable_name(text: str, what: str) -> str:
    """Return the name in the normal form for storage and comparison. Raises BadInput."""
    try:
        text.encode()  # an unpaired surrogate (from bytes that are not text) cannot be encoded
        if text.strip() and "\x00" not in text:
            return text.strip()
    except UnicodeEncodeError:
        pass
    raise BadInput(f"the {what} needs a name: some readable text that tells them from others")


def due_of(text: str | datetime | None, zone: tzinfo | None, now: datetime) -> Due:
    """Parse a due time in the person's `zone`: None keeps the current one, "never" removes it."""
    if isinstance(text, datetime):
        return checked("due", moment_of, text)
    if text is None or not text.strip():
        return None
    try:
        return read_due(text, zone, now)
    except ValueError as error:
        raise BadInput(f'due: {error}; "never" for none') from None


def moment_of(value: object) -> datetime:
    """Return an aware time in UTC, from one or from ISO 8601. Raises BadInput."""
    example = "such as 2026-01-10T09:30:00+00:00"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise BadInput(f"{shown(value)} is no ISO 8601 time, {example}")
    if moment.tzinfo is None:
        raise BadInput(f"{str(value)!r} needs a time zone, {example}")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise BadInput(f"{str(value)!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    return moment.astimezone(UTC)


def checked(name: str, read: Callable[[Any], T], value: object) -> T:
    """Return what `read` makes of the argument. Raises its BadInput with the argument's name before it."""
    try:
        return read(value)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def draft_of(**given: object) -> Draft:
    """Return a draft of what a caller gives, each field checked. Raises BadInput that names the field."""
    return Draft(**{name: checked(name, _READ[name], value) for name, value in given.items()})


def content_of(value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{shown(value)} is no text; write the fact as a sentence")
    if not value.strip():
        raise BadInput("it is empty; write the fact as a sentence")
    if len(value) > MAX_CONTENT:
        raise BadInput(f"longer than {MAX_CONTENT} characters; say it as single facts")
    return value


def subjects_of(value: object) -> tuple[str, ...]:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        found = tuple(value)
        if all(isinstance(subject, str) for subject in found):
            return found
    raise BadInput(f"{shown(value)} is no list of texts, such as ['sport']")


def ttl_of(value: object) -> Any:
    if not read_ttl(value).understood:
        raise BadInput(f"{shown(value)} is no length of time such as 1h, 7d, 2w or never")
    return value


def importance_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadInput(f"{shown(value)} is no number from 0 to 1")
    return float(value)


def switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{shown(value)} is neither True nor False")
    return value


def one_of(value: object, allowed: Sequence[str]) -> Any:
    if value not in allowed:
        raise BadInput(f"{shown(value)} is not one of {', '.join(map(repr, allowed))}")
    return value


def _type_of(value: object) -> MemoryType:
    found: MemoryType = one_of(value, get_args(MemoryType))
    return found


def _replaced(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadInput(f"{shown(value)} is no id of a memory")
    return value


_READ: Mapping[str, Callable[[Any], Any]] = {
    "content": content_of,
    "subjects": subjects_of,
    "ttl": ttl_of,
    "type": _type_of,
    "importance": importance_of,
    "replaces": _replaced,
}


def audience_of(user: str, place: Place | str | None) -> Audience:
    return Audience.of(user_named(user), place_of(place))


def owner_of_documents(user: str | None, place: Place | str | None) -> str:
    """Return the owner key: the user's, the place's, or everybody's if neither is named."""
    where = place_of(place)
    if user is not None and where.private:
        return user_key(user_named(user))
    if user is not None:
        raise BadInput("documents are a user's or a place's; name one of the two")
    if place is not None and where.private:
        raise BadInput(
            "what is for one person alone needs their name: give a user instead of a private place"
        )
    return GLOBAL if where.private else where.key


def paths_of(paths: Sequence[str | Path]) -> list[Path]:
    named = [paths] if isinstance(paths, str | Path) else paths
    if not isinstance(named, Sequence) or not all(isinstance(path, str | Path) for path in named):
        raise BadInput("name the files and folders to read, as text or paths")
    if not named or not all(os.fspath(path).strip() for path in named):
        raise BadInput("name the files and folders to read; one of them is empty, or there is none")
    return [Path(os.path.expanduser(path)) for path in named]


def turn_request(
    text: str,
    user: str | None,
    place: Place | str | None,
    conversation: str | None,
    author: str | None,
    instructions: str = "",
    earlier: Sequence[tuple[Role, str]] = (),
    origins: Sequence[str] = (),
    client: ClientTurn | None = None,
    *,
    now: datetime,
) -> TurnRequest:
    return TurnRequest(
        text,
        None if user is None else user_named(user),
        now,
        place_of(place),
        None if conversation is None else readable_name(conversation, "conversation"),
        None if author is None else readable_name(author, "author"),
        storable(instructions),
        tuple(earlier),
        tuple(origins),
        client,
    )
