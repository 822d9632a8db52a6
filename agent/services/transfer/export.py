"""Exports everything about a person as one JSON document that people can read and `import` accepts."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, select

from agent.services.arguments import audience_of
from agent.types import TurnRequest
from agent.types.arguments import place_of
from agent.types.records_json import memory_json
from memory.audience import Audience, Place, user_key
from memory.documents.library import DocumentLibrary
from memory.records import Memory
from memory.sql import tables
from memory.sql.engine import Database
from memory.sql.hidden import ENTRY_IS_HIDDEN, TASK_IS_HIDDEN, link_is_hidden
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import kept, readable
from memory.sql.messages.summaries import outlived

FORMAT, VERSION = "hachi-export", 1
"""Raise the version when readers of the previous one could not read the new one."""

_MESSAGE_FIELDS = ("id", "role", "author", "text", "sent_at")


async def export_person(
    database: Database, store: MemoryStore, documents: DocumentLibrary, now: datetime, user: str
) -> dict[str, Any]:
    """Return the person's data as JSON values, without other people's messages and without data of
    everybody.

    `import` reads `memories` and `messages` (of the private conversation). `conversations` holds the
    conversations in places: what the person said there and the answers to it.
    """
    own_audience = Audience(frozenset({user_key(user)}))
    owned = await store.newest(own_audience, now)
    own = TurnRequest("", user, now).conversation_id
    talks = await _conversations(database, user)
    private = [talk for talk in talks if talk["place"] == "dm" and talk["conversation"] == own]
    stored = await documents.documents(own_audience)
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": now,
        "user": user,
        "place": "dm",
        "memories": [memory_json(m) for m in sorted(owned, key=lambda m: (m.created_at, m.id))],
        "messages": private[0]["messages"] if private else [],
        "conversations": [talk for talk in talks if talk not in private],
        "summaries": await _summaries(database, user, now),
        "context": [entry | {"place": _shown(entry["place"])} for entry in await _context(database, user)],
        "tasks": await _tasks(database, user),
        "history": await _history(database, user),
        "documents": [{"path": d.path, "title": d.title, "added_at": d.added_at} for d in stored],
        "keys": await _rows(database, tables.api_keys, "user_id", user, _KEY),
    }
    return _plain(whole)


async def export_place(
    database: Database, store: MemoryStore, now: datetime, place: Place | str, user: str
) -> dict[str, Any]:
    """Return the memories and messages of a place, each with whose it is, so that `import` restores them.
    What is known around the place or inside it is not part of it."""
    where = place_of(place)
    audience = audience_of(user, where)
    found = [m for m in await store.newest(audience, now) if where.key in m.owners]
    sources = await _sources(database, audience)
    return _plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "exported_at": now,
            "user": user,
            "place": str(where),
            "memories": [
                {**memory_json(m), "user": m.user_id, "owners": _owners(m, where), "sources": sources[m.id]}
                for m in sorted(found, key=lambda m: (m.created_at, m.id))
            ],
            "messages": await _messages_of(database, where, audience),
        }
    )


def _plain(whole: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(whole, default=_as_json))
    return plain


_SUMMARY = ("conversation_id", "mode", "summary", "updated_at")
_KEY = ("name", "created_at", "last_used_at", "revoked_at")
_TASK = ("id", "description", "status", "due", "created_at", "last_updated", "place")


async def _conversations(database: Database, user: str) -> list[dict[str, Any]]:
    """Return what the person said and was answered, by conversation, in order, without what is forgotten."""
    told = tables.messages.c
    query = select(tables.messages).where(told.user_id == user, kept())
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in await database.rows(query.order_by(told.seq)):
        line = {field: row._mapping[field] for field in _MESSAGE_FIELDS}
        found.setdefault((row.place, row.conversation_id), []).append(line)
    return [
        {"place": _shown(place), "conversation": conversation, "messages": lines}
        for (place, conversation), lines in found.items()
    ]


async def _messages_of(database: Database, place: Place, audience: Audience) -> list[dict[str, Any]]:
    """Return all messages of the place, in order."""
    said = (tables.messages.c.place == place.key, readable(audience), kept())
    rows = await database.rows(select(tables.messages).where(*said).order_by(tables.messages.c.seq))
    return [
        {field: row._mapping[field] for field in _MESSAGE_FIELDS}
        | {"user": row.user_id, "conversation": row.conversation_id}
        for row in rows
    ]


async def _sources(database: Database, audience: Audience) -> dict[str, list[str]]:
    """Return the ids of the messages that stated each memory, by the memory's id."""
    found: dict[str, list[str]] = defaultdict(list)
    source = tables.rests_on
    said = select(tables.messages.c.id).where(readable(audience), kept())
    stated = select(source).where(source.c.source_id.in_(said), source.c.how == "stated")
    for row in await database.rows(stated):
        found[row.derived_id].append(row.source_id)
    return found


def _owners(memory: Memory, place: Place) -> list[str]:
    """Return who owns the memory, without other places: the file does not say what is known there."""
    return sorted(owner for owner in memory.owners if owner == place.key or owner.startswith("user:"))


async def _context(database: Database, user: str) -> list[dict[str, Any]]:
    fields = ("place", "field", "item", "value", "said_at")
    return await _rows(database, tables.context_entries, "user_id", user, fields, ~ENTRY_IS_HIDDEN)


async def _summaries(database: Database, user: str, now: datetime) -> list[dict[str, Any]]:
    query = select(tables.active_conversations).where(
        tables.active_conversations.c.owner == user_key(user), ~outlived(now)
    )
    rows = [{field: row._mapping[field] for field in _SUMMARY} for row in await database.rows(query)]
    return sorted(rows, key=lambda row: str(row["conversation_id"]))


async def _tasks(database: Database, user: str) -> list[dict[str, Any]]:
    found = await _rows(database, tables.tasks, "user_id", user, _TASK, ~TASK_IS_HIDDEN)
    return [task | {"place": _shown(task["place"])} for task in found]


async def _history(database: Database, user: str) -> list[dict[str, Any]]:
    """Return the person's replacements of memories, with the replaced texts."""
    steps, held = tables.memory_updates, tables.memory_owners
    mine = select(held.c.memory_id).where(held.c.owner == user_key(user), ~link_is_hidden())
    touching = select(steps).where(steps.c.old_id.in_(mine)).order_by(steps.c.created_at, steps.c.id)
    contents = select(tables.memories.c.id, tables.memories.c.content).where(tables.memories.c.id.in_(mine))
    texts = {row.id: row.content for row in await database.rows(contents)}
    rows = [row for row in await database.rows(touching) if user_key(user) in row.owners]
    rows = [row for row in rows if row.new_id is None or row.new_id in texts]
    return [
        {
            "at": row.created_at,
            "was": texts.get(row.old_id),
            "became": texts.get(row.new_id),
            "why": row.reason,
            "old_id": row.old_id,
            "new_id": row.new_id,
        }
        for row in rows
    ]


async def _rows(
    database: Database,
    table: Table,
    column: str,
    value: str,
    fields: Sequence[str],
    *shown: ColumnElement[bool],
) -> list[dict[str, Any]]:
    query = select(*(table.c[field] for field in fields)).where(table.c[column] == value, *shown)
    rows = [dict(row._mapping) for row in await database.rows(query)]
    return sorted(rows, key=lambda row: json.dumps(row, default=str))


def _shown(place: str) -> str:
    return str(Place.of_key(place))


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    assert isinstance(value, frozenset), type(value)
    return sorted(value)
