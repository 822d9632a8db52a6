"""Parses and checks arguments from callers: users, places, documents, a whole turn.

A bad value raises BadInput, which says what to pass instead.
"""

import os
from collections.abc import Sequence
from datetime import datetime, tzinfo
from pathlib import Path

from agent.errors import BadInput
from agent.types import TurnRequest
from agent.types.client import ClientTurn
from memory.audience import GLOBAL, Audience, Place, user_key
from memory.people.due_dates import read_due
from memory.people.tasks import Due
from memory.records import Role
from memory.text import storable


def place_of(place: Place | str | None) -> Place:
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


def due_of(text: str | None, zone: tzinfo | None, now: datetime) -> Due:
    """Parse a due time in the person's `zone`: None keeps the current one, "never" removes it."""
    if text is None or not text.strip():
        return None
    try:
        return read_due(text, zone, now)
    except ValueError as error:
        raise BadInput(f'due: {error}; "never" for none') from None


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
