"""Exports everything about a person as one JSON document that people can read and `import` accepts."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Table, select

from agent.types import TurnRequest
from agent.types.arguments import place_of
from agent.types.meanings import audience_of
from agent.types.records_json import memory_json
from memory.audience import Audience, Place, user_key
from memory.documents.library import DocumentLibrary
from memory.process.pace import unhurried
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.hidden import ENTRY_IS_HIDDEN, TASK_IS_HIDDEN, link_is_hidden
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.summaries import outlived
from memory.sql.readable import messages_readable
from memory.sql.tables import (
    active_conversations,
    api_keys,
    context_entries,
    memories,
    memory_owners,
    memory_updates,
    messages,
    rests_on,
    tasks,
)

FORMAT, VERSION = "hachi-export", 1
"""Raise the version when readers of the previous one could not read the new one."""

AT_ONCE = 500
"""Memories that one statement reads: some 5 ms."""
_MESSAGE = ("id", "role", "author", "text", "sent_at")
_TALK = ("place", "conversation_id")
_SUMMARY = ("conversation_id", "mode", "summary", "updated_at")
_ENTRY = ("place", "field", "item", "value", "said_at")
_TASK = ("id", "description", "status", "due", "created_at", "last_updated", "place")
_KEY = ("name", "created_at", "last_used_at", "revoked_at")


async def export_person(
    database: Database, store: MemoryStore, documents: DocumentLibrary, now: datetime, user: str
) -> dict[str, Any]:
    """Return the person's data as JSON values, without other people's messages and without what everybody may
    read.

    `import` reads `memories` and `messages` (of the private conversation). `conversations` has those in
    places: the person's messages there, and the replies to them.
    """
    own_audience = Audience(frozenset({user_key(user)}))
    owned = await _memories(store, own_audience, now)
    own = TurnRequest("", user, now).conversation_id
    talks = defaultdict[tuple[str, str], list[Any]](list)
    async for line in unhurried(await _messages(database, messages.c.user_id == user)):
        talks[line["place"], line["conversation_id"]].append({field: line[field] for field in _MESSAGE})
    private = talks.pop(("dm", own), [])
    stored = await documents.documents(own_audience)
    of_them = active_conversations.c.owner == user_key(user)
    told_by_them = context_entries.c.user_id == user
    parts = {
        "memories": [_own(m) async for m in unhurried(owned)],
        "messages": private,
        "conversations": [
            {"place": place, "conversation": conversation, "messages": lines}
            for (place, conversation), lines in talks.items()
        ],
        "summaries": await _rows(database, active_conversations, _SUMMARY, of_them, ~outlived(now)),
        "context": await _rows(database, context_entries, _ENTRY, told_by_them, ~ENTRY_IS_HIDDEN),
        "tasks": await _rows(database, tasks, _TASK, tasks.c.user_id == user, ~TASK_IS_HIDDEN),
        "history": await _history(database, user),
        "documents": [{"path": d.path, "title": d.title, "added_at": d.added_at.isoformat()} for d in stored],
        "keys": await _rows(database, api_keys, _KEY, api_keys.c.user_id == user),
    }
    return _document(now, user, "dm", parts)


async def export_place(
    database: Database, store: MemoryStore, now: datetime, place: Place | str | None, user: str
) -> dict[str, Any]:
    """Return the memories and messages of a place, each with its user, so that `import` can attribute them.
    Places around it and inside it are not included."""
    where = place_of(place)
    audience = audience_of(user, where)
    found = [m for m in reversed(await _memories(store, audience, now)) if where.key in m.owners]
    sources = await _sources(database, audience)
    lines = await _messages(database, messages.c.place == where.key, messages_readable(audience))
    parts = {
        "memories": [
            _plain(memory_json(m)) | {"owners": _owners(m, where), "sources": sources[m.id]}
            async for m in unhurried(sorted(found, key=lambda m: (m.created_at, m.id)))
        ],
        "messages": [
            {field: line[field] for field in _MESSAGE}
            | {"user": line["user_id"], "conversation": line["conversation_id"]}
            async for line in unhurried(lines)
        ],
    }
    return _document(now, user, str(where), parts)


def _own(memory: Memory) -> dict[str, Any]:
    """Return the memory without its user: the importer may have another id."""
    return {name: value for name, value in _plain(memory_json(memory)).items() if name != "user"}


def _document(now: datetime, user: str, place: str, parts: dict[str, Any]) -> dict[str, Any]:
    head = {"format": FORMAT, "version": VERSION, "exported_at": now.isoformat(), "user": user}
    return head | {"place": place} | parts


async def _memories(store: MemoryStore, audience: Audience, now: datetime) -> list[Memory]:
    """Return what the audience may read, oldest first, read in parts that others hardly wait for."""
    found: list[Memory] = []
    after: tuple[datetime, str] | None = None
    while part := await store.newest(audience, now, AT_ONCE, after=after):
        found += part
        after = part[-1].created_at, part[-1].id
    return found[::-1]


async def _messages(database: Database, *said: ColumnElement[bool]) -> list[dict[str, Any]]:
    """Return the messages that are not hidden, in order, each with its user and place."""
    return await _rows(database, messages, (*_MESSAGE, "user_id", *_TALK), *said, is_visible(), order="seq")


async def _sources(database: Database, audience: Audience) -> dict[str, list[str]]:
    """Return the ids of the messages that stated each memory, by the memory's id."""
    found: dict[str, list[str]] = defaultdict(list)
    said = select(messages.c.id).where(messages_readable(audience), is_visible())
    stated = select(rests_on).where(rests_on.c.source_id.in_(said), rests_on.c.how == "stated")
    async for row in unhurried(await database.rows(stated)):
        found[row.derived_id].append(row.source_id)
    return found


def _owners(memory: Memory, place: Place) -> list[str]:
    """Return the memory's owners without other places, so that the file does not reveal them."""
    return sorted(owner for owner in memory.owners if owner == place.key or owner.startswith("user:"))


async def _history(database: Database, user: str) -> list[dict[str, Any]]:
    """Return the person's replacements of memories, with the replaced texts."""
    steps, held = memory_updates, memory_owners
    mine = select(held.c.memory_id).where(held.c.owner == user_key(user), ~link_is_hidden())
    touching = select(steps).where(steps.c.old_id.in_(mine)).order_by(steps.c.created_at, steps.c.id)
    contents = select(memories.c.id, memories.c.content).where(memories.c.id.in_(mine))
    texts = {row.id: row.content async for row in unhurried(await database.rows(contents))}
    rows = [row async for row in unhurried(await database.rows(touching)) if user_key(user) in row.owners]
    rows = [row for row in rows if row.new_id is None or row.new_id in texts]
    return [
        {
            "at": row.created_at.isoformat(),
            "was": texts.get(row.old_id),
            "became": texts.get(row.new_id),
            "why": row.reason,
            "old_id": row.old_id,
            "new_id": row.new_id,
        }
        async for row in unhurried(rows)
    ]


async def _rows(
    database: Database, table: Table, fields: Sequence[str], *shown: ColumnElement[bool], order: str = ""
) -> list[dict[str, Any]]:
    """Return these fields of the rows as JSON values, places as people write them, ordered by a column or by
    their JSON."""
    query = select(*(table.c[field] for field in fields)).where(*shown)
    query = query.order_by(table.c[order]) if order else query
    rows = [_plain(row._mapping) async for row in unhurried(await database.rows(query))]
    if "place" in fields:
        rows = [row | {"place": str(Place.of_key(row["place"]))} async for row in unhurried(rows)]
    if order:
        return rows
    keyed = [(json.dumps(row), row) async for row in unhurried(rows)]
    return [row for _, row in sorted(keyed, key=itemgetter(0))]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with JSON values."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
