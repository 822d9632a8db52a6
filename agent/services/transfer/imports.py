"""Imports a file that `export` or another program wrote, or a transcript.

All is read before the first row is written. What cannot be read is named, and the rest comes in.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from reprlib import repr as shown
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.errors import BadInput
from agent.services.transfer.export import FORMAT, VERSION
from agent.services.transfer.formats import (
    UNREADABLE,
    facts_in,
    messages_in,
    require_storable,
    what_is_wrong,
)
from agent.types.arguments import User, moment_of, one_of, place_of, user_named
from agent.types.checks import read_of, reads_arguments
from agent.types.meanings import draft_of
from memory.audience import PRIVATE, Place
from memory.facts.aliases import links_of
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import content_key
from memory.index.sync import Progress
from memory.records import DEFAULT_IMPORTANCE, Draft, Memory, Source
from memory.sql.engine import Database
from memory.sql.memories.owner_links import link
from memory.sql.memories.store import MemoryStore
from memory.sql.rests_on import record
from memory.sql.tables import memory_owners
from memory.text.ttl import LONGEST

MEMORIES_AT_ONCE = 50
"""Memories of a place that are restored in one transaction."""

_ID = read_of(str | None)
OLD_PLACE = (
    "this export of a place does not say who said what; export the place again with this version, "
    "nothing was imported"
)


@dataclass(frozen=True, slots=True)
class ParsedImport:
    messages: list[Any]
    memories: Sequence[tuple[Draft, Provenance]] = ()
    ignored: Mapping[str, int] | None = None
    """Counts of the export's other entries by kind. They are not imported."""
    place: Place = PRIVATE
    """The place that the export is of."""
    restored: Sequence[tuple[Memory, Sequence[str]]] = ()
    """The memories of a place, which stay those of who told them, with the ids of the messages that did."""
    unreadable: Sequence[str] = ()
    """A line for each part of the file that cannot be read. It is not imported."""

    @property
    def count(self) -> int:
        """The number of memories."""
        return len(self.memories) + len(self.restored)


@dataclass(frozen=True, slots=True)
class Imported:
    """How many of what was read are new."""

    messages: int
    memories: int


def checked_import(parsed: ParsedImport, user: str, place: Place, for_others: bool) -> Place:
    """Return the place that the import goes to. Raises BadInput for one that it cannot go to, for a message
    that the file does not attribute, and for what is somebody else's unless `for_others` allows it."""
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
    """Return who else would own what the file holds, or would have said it."""
    tellers = {memory.user_id for memory, _ in parsed.restored}
    owners = {owner for memory, _ in parsed.restored for owner in memory.owners}
    named = tellers | {owner.removeprefix("user:") for owner in owners if owner.startswith("user:")}
    if not (parsed.place.private and place.private):
        named |= {str(entry["user"]) for entry in parsed.messages if "user" in entry}
    return sorted(named - {user, ""})


async def restore_all(
    database: Database,
    store: MemoryStore,
    restored: Sequence[tuple[Memory, Sequence[str]]],
    now: datetime,
    progress: Progress | None,
) -> int:
    """Store the memories of a place as they were. Returns how many are new."""
    new = 0
    for start in range(0, len(restored), MEMORIES_AT_ONCE):
        part = restored[start : start + MEMORIES_AT_ONCE]
        owners = {owner for memory, _ in part for owner in memory.owners}
        async with database.write(lock=owners) as connection:
            for memory, sources in part:
                if memory.expires_at is None or memory.expires_at > now:
                    new += await _restore(connection, store, memory, sources)
        if progress:
            progress(len(part))
    return new


def _require_speakers(messages: Sequence[Mapping[str, Any]], user: str) -> None:
    """Raise BadInput for a message in a place that would become the importer's, though somebody else wrote
    it."""
    for number, entry in enumerate(messages, start=1):
        if "user" not in entry and entry.get("role") != "assistant" and entry.get("author") != user:
            raise BadInput(
                f"message {number} does not say whose it is; give it a `user`, the id of who wrote it. "
                "Nothing was imported"
            )


@reads_arguments
def parse_import(given: Any, *, user: User) -> ParsedImport:
    """Parse an export of ours, what `formats` reads, or a list of messages. The memories of a person's export
    become this user's; those of a place's stay those of who told them. Raises BadInput for a file that is
    none of these, and for one of which nothing can be read."""
    parsed = _parse(given, user)
    if parsed.unreadable and not (parsed.messages or parsed.count):
        raise BadInput(f"{parsed.unreadable[0]}; nothing was imported")
    return parsed


def _parse(given: Any, user: str) -> ParsedImport:
    unreadable: list[str] = []
    if facts := facts_in(given):
        return ParsedImport([], _read_memories(facts, PRIVATE, user, unreadable)[0], unreadable=unreadable)
    if others := messages_in(given, user):
        return ParsedImport(others.messages, unreadable=others.unreadable)
    if isinstance(given, list):
        return ParsedImport(_messages(given, unreadable), unreadable=unreadable)
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
    named = all("user" in entry for entry in [*memories, *messages] if isinstance(entry, dict))
    if not place.private and not named:
        raise BadInput(OLD_PLACE)
    read, restored = _read_memories(memories, place, user, unreadable)
    sent = _messages(messages, unreadable)
    imported = ("memories", "messages")
    lists = {key: len(value) for key, value in given.items() if isinstance(value, list) and value}
    ignored = {key: count for key, count in lists.items() if key not in imported}
    return ParsedImport(sent, read, ignored, place, restored, unreadable)


def _read_memories(
    memories: Sequence[Any], place: Place, user: str, unreadable: list[str]
) -> tuple[list[tuple[Draft, Provenance]], list[tuple[Memory, Sequence[str]]]]:
    """Return those of a person as drafts, and those of a place as they were."""
    read: list[tuple[Draft, Provenance]] = []
    restored: list[tuple[Memory, Sequence[str]]] = []
    for number, entry in enumerate(memories, start=1):
        try:
            if place.private:
                read.append(_memory(entry, user))
            else:
                restored.append(_memory_of(place, entry))
        except UNREADABLE as error:
            unreadable.append(f"memory {number} cannot be read: {what_is_wrong(error)}")
    return read, restored


def _messages(entries: Sequence[Any], unreadable: list[str]) -> list[Any]:
    """Return the entries that can be stored."""
    messages: list[Any] = []
    for number, entry in enumerate(entries, start=1):
        try:
            if not isinstance(entry, dict):
                raise BadInput("it is no object with author, text and sent_at")
            _ = entry["author"], entry["sent_at"]
            require_storable(entry)
            messages.append(entry)
        except UNREADABLE as error:
            unreadable.append(f"message {number} cannot be read: {what_is_wrong(error)}")
    return messages


def _memory(entry: Any, user: str) -> tuple[Draft, Provenance]:
    created_at = moment_of("created_at", entry["created_at"])
    lasts = None
    if entry.get("expires_at"):
        lasts = min(moment_of("expires_at", entry["expires_at"]) - created_at, LONGEST)
        if lasts <= timedelta():
            raise BadInput("expires_at: it is not after created_at")
    draft = draft_of(
        {
            "content": entry["content"],
            "subjects": entry.get("subjects", []),
            # In a form that `memory.text.ttl` reads back to the microsecond.
            "ttl": f"PT{lasts.total_seconds():.6f}S" if lasts else "never",
            "type": entry.get("type", "fact"),
            "importance": entry.get("importance", DEFAULT_IMPORTANCE),
        }
    )
    origin = Provenance(
        user=user,
        said_at=created_at,
        place=place_of(entry.get("place")),
        source=one_of(*get_args(Source))("source", entry.get("source", "note")),
        message_id=_ID("message_id", entry.get("message_id")),
    )
    return draft, origin


def _memory_of(place: Place, entry: Any) -> tuple[Memory, Sequence[str]]:
    """Return a memory of a place as it was, and the ids of the messages that stated it."""
    draft, origin = _memory(
        entry, entry["user"] if entry["user"] == "" else user_named("user", entry["user"])
    )
    owners = frozenset(owner for owner in entry["owners"] if owner.startswith("user:")) | {place.key}
    memory = CandidateFact(draft, replace(origin, place=place), None, origin.said_at).memory(owners)
    return replace(memory, id=str(UUID(entry["id"]))), [str(UUID(id)) for id in entry["sources"]]


async def _restore(
    connection: AsyncConnection, store: MemoryStore, memory: Memory, sources: Collection[str]
) -> bool:
    """Store a memory of a place in the caller's transaction, with the ids of the messages that stated it.
    Owners who have this memory or the same words, or had it replaced, keep what they have. Returns whether
    it is new."""
    place, key = Place.parse(memory.place), content_key(memory.content)
    held = (await store.known(connection, memory.owners, key, memory.created_at)).worded_so
    here = held[place.key].id if place.key in held else memory.id
    owners = await _keys(connection, here)
    if owners and key not in owners.values():
        return False  # another memory has this id
    lacking = memory.owners - held.keys() - owners.keys()
    if owners:
        await link(connection, here, sorted(lacking), key)
    elif lacking:
        aliases = await links_of(connection, place, memory.user_id, memory.content)
        await store.insert(connection, {key: replace(memory, owners=lacking)}, aliases)
    if owners or lacking:
        await record(connection, here, sources, "stated")
    return bool(lacking) and not owners


async def _keys(connection: AsyncConnection, id: str) -> dict[str, str]:
    """The owners of this memory, also those for whom it was replaced, with the keys of its words."""
    links = select(memory_owners.c.owner, memory_owners.c.content_key).where(memory_owners.c.memory_id == id)
    return {row.owner: row.content_key for row in await connection.execute(links)}
