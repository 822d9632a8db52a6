"""Checks the arguments of the API, for every surface.

A bad value raises BadInput, which names the argument and says what to pass instead. What an argument's type
tells is checked by `agent.types.checks`; here is what needs a reading of its own.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from pathlib import Path
from reprlib import repr as shown
from typing import Any, TypeVar, get_args

from agent.errors import BadInput
from agent.types.arguments import MAX_QUERY, MAX_SUBJECT, MOST_SUBJECTS
from agent.types.checks import moment_of
from memory.audience import GLOBAL, Audience, Place, user_key
from memory.facts.decide import MAX_CONTENT
from memory.people.due_dates import read_due
from memory.people.places import Places
from memory.people.tasks import Due
from memory.records import Draft, MemoryType, TaskStatus
from memory.text import storable
from memory.text.ttl import read_ttl

T = TypeVar("T")


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
    if not isinstance(text, str):
        raise BadInput(f"{what}: {shown(text)} is no text")
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
    if text is not None and not isinstance(text, str):
        raise BadInput(f"due: {shown(text)} is no time; write it as 2026-01-10T09:30")
    if text is None or not text.strip():
        return None
    try:
        return read_due(text, zone, now)
    except ValueError as error:
        raise BadInput(f'due: {error}; "never" for none') from None


def bound_of(name: str, value: object, zone: tzinfo, *, end: bool = False) -> datetime | None:
    """Return the moment; of a date alone the beginning of that day in the person's zone, or its `end`. Raises
    BadInput that names the argument."""
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if value is None:
        return None
    if day is None:
        return checked(name, moment_of, value)
    return checked(name, moment_of, datetime.combine(day, time(), zone)) + timedelta(days=end)


def checked(name: str, read: Callable[[Any], T], value: object) -> T:
    """Return what `read` makes of the argument. Raises its BadInput with the argument's name before it."""
    try:
        return read(value)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def draft_of(**given: object) -> Draft:
    """Return a draft of what a caller gives, each field checked. Raises BadInput that names the field."""
    for name in given.keys() - _READ.keys():
        raise BadInput(f"{shown(name)}: a memory has no such field; it has {', '.join(_READ)}")
    if "content" not in given:
        raise BadInput("content: it is missing; write the fact as a sentence")
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
    listed = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    found = tuple(value) if listed and isinstance(value, Iterable) else ()
    if not listed or not all(isinstance(subject, str) for subject in found):
        raise BadInput(f"{shown(value)} is no list of texts, such as ['sport']")
    if len(found) > MOST_SUBJECTS or any(len(subject) > MAX_SUBJECT for subject in found):
        raise BadInput(f"more than {MOST_SUBJECTS} texts, or one of more than {MAX_SUBJECT} characters")
    return found


def ttl_of(value: object) -> Any:
    if not read_ttl(value).understood:
        raise BadInput(f"{shown(value)} is no length of time such as 1h, 7d, 2w or never")
    return value


def importance_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        told = f"{value:g}" if type(value) is float else shown(value)
        raise BadInput(f"{told} is no number from 0 to 1")
    return float(value)


def mapping_of(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BadInput(f"{name}: {shown(value)} is no mapping of names to values")
    return value


def query_of(value: object) -> str:
    """Raises BadInput that names the argument."""
    if not isinstance(value, str):
        raise BadInput(f"query: {shown(value)} is no text")
    if len(value) > MAX_QUERY:
        raise BadInput(f"query: longer than {MAX_QUERY} characters; ask in fewer words")
    return storable(value)


def status_of(value: object) -> TaskStatus | None:
    """Raises BadInput that names the argument."""
    found: TaskStatus | None = None
    if value is not None:
        found = checked("status", lambda given: one_of(given, get_args(TaskStatus)), value)
    return found


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


def name_of_file(value: object) -> str:
    """The name as text; bytes of it that are no text stand in it as surrogates."""
    try:
        if isinstance(value, str | Path):
            os.fsencode(value)
            return os.fspath(value)
    except UnicodeEncodeError:
        pass
    raise BadInput(f"{shown(value)} is no name of a file, and no id of a document")


def paths_of(paths: Sequence[str | Path] | str | Path) -> list[Path]:
    named = [paths] if isinstance(paths, str | Path) else paths
    if not isinstance(named, Sequence) or not all(isinstance(path, str | Path) for path in named):
        raise BadInput("name the files and folders to read, as text or paths")
    if not named or not all(name_of_file(path).strip() for path in named):
        raise BadInput("name the files and folders to read; one of them is empty, or there is none")
    return [Path(os.path.expanduser(path)) for path in named]


async def require_kept(places: Places, user: str, place: Place) -> None:
    """Raises BadInput if the person wants nothing of theirs kept there."""
    if not await places.keeps(user, place):
        raise BadInput(f"{user} wants nothing kept of what they say here, and has to take that back first")
