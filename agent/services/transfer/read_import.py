"""Imports a file that `export` or another program wrote, or a transcript.

The whole file is read before the first row is written. Unreadable parts are listed, and the rest is imported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from reprlib import repr as shown
from typing import Any, TypeVar

from agent.errors import BadInput
from agent.services.transfer.export import FORMAT, VERSION
from agent.services.transfer.formats import (
    UNREADABLE,
    facts_in,
    messages_in,
    require_storable,
    what_is_wrong,
)
from agent.types.arguments import User, choice_of, moment_of, place_of, read_value, short_text
from agent.types.checks import checks_call
from agent.types.meanings import new_memory_of
from memory.audience import PRIVATE, Place
from memory.facts.candidate import Provenance
from memory.records import DEFAULT_IMPORTANCE, NewMemory, Source
from memory.text.ttl import LONGEST

T = TypeVar("T")

OLD_PLACE = (
    "this export of a place does not say who said what; export the place again with this version, "
    "nothing was imported"
)


@dataclass(frozen=True, slots=True)
class ParsedImport:
    messages: list[Any]
    memories: Sequence[tuple[NewMemory, Provenance]] = ()
    ignored: Mapping[str, int] | None = None
    """Counts of the export's other entries by kind. They are not imported."""
    place: Place = PRIVATE
    """The place whose export it is."""
    unreadable: Sequence[str] = ()
    """A line for each part of the file that cannot be read. It is not imported."""


@dataclass(frozen=True, slots=True)
class ImportReceipt:
    """How many of the imported rows are new."""

    messages: int
    memories: int


def checked_import(parsed: ParsedImport, user: str, place: Place, for_others: bool) -> Place:
    """Return the place to import into. Raises BadInput if the export is of another place, if a message has no
    user, or if messages are other people's and `for_others` is not set."""
    if not parsed.place.private:
        if place not in (PRIVATE, parsed.place):
            raise BadInput(
                f"this is an export of {parsed.place}, and cannot become {place}; leave out --place"
            )
        place = parsed.place
    elif not place.private:
        _require_speakers(parsed.messages, user)
    others = speaks_for(parsed, user, place)
    if others and not for_others:
        raise BadInput(f"it speaks for {', '.join(others)}, and not for {user} alone; nothing was imported")
    return place


def speaks_for(parsed: ParsedImport, user: str, place: Place) -> list[str]:
    """Return the other people to whom the file attributes messages."""
    if parsed.place.private and place.private:
        return []
    return sorted({str(entry["user"]) for entry in parsed.messages if "user" in entry} - {user, ""})


def _require_speakers(messages: Sequence[Mapping[str, Any]], user: str) -> None:
    """Raise BadInput for a message in a place that would be attributed to the importer although somebody else
    wrote it."""
    for number, entry in enumerate(messages, start=1):
        if "user" not in entry and entry.get("role") != "assistant" and entry.get("author") != user:
            raise BadInput(
                f"message {number} does not say whose it is; give it a `user`, the id of who wrote it. "
                "Nothing was imported"
            )


@checks_call
def parse_import(export: Any, *, user: User) -> ParsedImport:
    """Parse an export of Hachi, ChatGPT, Claude or mem0, or a list of messages. Memories in a person's export
    become this user's. Of a place's export only the messages are imported, because memories are made from
    them. Raises BadInput for any other file, or if nothing in it is readable."""
    parsed = _parse(export, user)
    if parsed.unreadable and not (parsed.messages or parsed.memories):
        raise BadInput(f"{parsed.unreadable[0]}; nothing was imported")
    return parsed


def _parse(given: Any, user: str) -> ParsedImport:
    unreadable: list[str] = []
    as_memory = partial(_memory, user=user)
    if facts := facts_in(given):
        read = _readable("memory", facts, as_memory, unreadable)
        return ParsedImport([], read, unreadable=unreadable)
    if others := messages_in(given, user):
        return ParsedImport(others.messages, unreadable=others.unreadable)
    if isinstance(given, list):
        sent = _readable("message", given, _message, unreadable)
        return ParsedImport(sent, unreadable=unreadable)
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise BadInput("this is no export of hachi, ChatGPT, Claude or mem0, and no list of messages")
    if given.get("version") != VERSION:
        raise BadInput(
            f"this was written by a newer hachi (version {shown(given.get('version'))}); upgrade this one"
        )
    memories, messages = (given.get(key, []) for key in ("memories", "messages"))
    if not (isinstance(memories, list) and isinstance(messages, list)):
        raise BadInput("memories and messages must be lists")
    place = place_of(given.get("place"))
    named = all("user" in entry for entry in messages if isinstance(entry, dict))
    if not place.private and not named:
        raise BadInput(OLD_PLACE)
    read = _readable("memory", memories, as_memory, unreadable) if place.private else []
    sent = _readable("message", messages, _message, unreadable)
    imported = ("memories", "messages") if place.private else ("messages",)
    lists = {key: len(value) for key, value in given.items() if isinstance(value, list) and value}
    ignored = {key: count for key, count in lists.items() if key not in imported}
    return ParsedImport(sent, read, ignored, place, unreadable)


def _readable(name: str, entries: Sequence[Any], read: Callable[[Any], T], unreadable: list[str]) -> list[T]:
    """Return the entries as read, and add a line to `unreadable` for each that cannot be."""
    found: list[T] = []
    for number, entry in enumerate(entries, start=1):
        try:
            found.append(read(entry))
        except UNREADABLE as error:
            unreadable.append(f"{name} {number} cannot be read: {what_is_wrong(error)}")
    return found


def _message(entry: Any) -> Any:
    """Return the entry if it can be stored."""
    if not isinstance(entry, dict):
        raise BadInput("it is no object with author, text and sent_at")
    _ = entry["author"], entry["sent_at"]
    require_storable(entry)
    return entry


def _memory(entry: Any, user: str) -> tuple[NewMemory, Provenance]:
    created_at = read_value("created_at", moment_of, entry["created_at"])
    lasts = None
    if entry.get("expires_at"):
        lasts = min(read_value("expires_at", moment_of, entry["expires_at"]) - created_at, LONGEST)
        if lasts <= timedelta():
            raise BadInput("expires_at: it is not after created_at")
    new_memory = new_memory_of(
        entry["content"],
        entry.get("subjects", []),
        # `memory.text.ttl` reads this form with microseconds.
        f"PT{lasts.total_seconds():.6f}S" if lasts else "never",
        entry.get("type", "fact"),
        entry.get("importance", DEFAULT_IMPORTANCE),
    )
    message_id = entry.get("message_id")
    origin = Provenance(
        user=user,
        said_at=created_at,
        place=place_of(entry.get("place")),
        source=read_value("source", choice_of(Source).read, entry.get("source", "note")),
        message_id=None if message_id is None else read_value("message_id", short_text, message_id),
    )
    return new_memory, origin
